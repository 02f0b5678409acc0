/** A load, and what it has cost the programs and Postgres. */
import { administer, type LoadPostgres } from '../support/postgres.ts'
import { cpuSeconds } from '../support/proc.ts'
import type { Contestant } from './contestants.ts'
import type { Run } from './drive.ts'

export interface Cost {
  /** CPU seconds per 1000 first attempts, or requests where there are none; null where /proc is missing. */
  programCpu: number | null
  postgresCpu: number | null
}

/** Until the compiler has optimised what is hot; until then a process takes a fifth more for the same. */
export const warmUpSeconds = 10

export async function measured(
  postgres: LoadPostgres,
  fleet: readonly Contestant[],
  run: () => Promise<Run>,
): Promise<Run & Cost> {
  // Nobody pays for the writes of the one before.
  await administer(postgres.url, 'CHECKPOINT')
  const postmaster = await postgres.pid()
  const spent = async () =>
    [await sumOf(fleet.map(({ program }) => program.pid)), await cpuSeconds(postmaster)] as const
  const before = await spent()
  const result = await run()
  const after = await spent()
  const thousands = ((result.firsts > 0 ? result.firsts : result.requests) * result.seconds) / 1000
  const per = (from: number | null, to: number | null) =>
    from === null || to === null || thousands === 0 ? null : (to - from) / thousands
  return { ...result, programCpu: per(before[0], after[0]), postgresCpu: per(before[1], after[1]) }
}

async function sumOf(pids: readonly number[]): Promise<number | null> {
  const all = await Promise.all(pids.map(cpuSeconds))
  return all.reduce<number | null>((sum, each) => (sum === null || each === null ? null : sum + each), 0)
}
