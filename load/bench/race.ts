/** Runs that are compared take turns, A B A B, so that what drifts (heat, neighbours, growing tables) drifts for all. */

import type { LoadPostgres } from '../support/postgres.ts'
import { administer } from '../support/postgres.ts'
import { cpuSeconds } from '../support/proc.ts'
import type { Contestant } from './contestants.ts'
import { drive, type Run, type Shape } from './drive.ts'

export interface Entry {
  name: string
  contestant: Contestant
  shape: Shape
  connections: number
}

/** Medians over the rounds. */
export interface Result extends Run {
  name: string
  /** CPU seconds per 1000 first attempts, or requests where there are none; null where /proc is missing. */
  programCpu: number | null
  postgresCpu: number | null
}

interface RaceOptions {
  rounds: number
  /** Of each run. */
  seconds: number
  postgres: LoadPostgres
  say(what: string): void
}

/** Until the compiler has optimised what is hot; until then a process takes a fifth more for the same. */
const warmUpSeconds = 10

export async function race(entries: readonly Entry[], options: RaceOptions): Promise<Result[]> {
  const { rounds, seconds, postgres, say } = options
  for (const { name, contestant, shape, connections } of entries) {
    say(`${name}: warming up`)
    await drive(contestant.url, shape, { connections, seconds: warmUpSeconds })
  }
  const runs = new Map<string, Omit<Result, 'name'>[]>(entries.map(({ name }) => [name, []]))
  for (let round = 1; round <= rounds; round++) {
    for (const { name, contestant, shape, connections } of entries) {
      // Nobody pays for the writes of the one before.
      await administer(postgres.url, 'CHECKPOINT')
      const postmaster = await postgres.pid()
      const before = [await cpuSeconds(contestant.program.pid), await cpuSeconds(postmaster)] as const
      const run = await drive(contestant.url, shape, { connections, seconds })
      const after = [await cpuSeconds(contestant.program.pid), await cpuSeconds(postmaster)] as const
      const thousands = ((run.firsts > 0 ? run.firsts : run.requests) * seconds) / 1000
      const per = (from: number | null, to: number | null) =>
        from === null || to === null || thousands === 0 ? null : (to - from) / thousands
      runs.get(name)?.push({ ...run, programCpu: per(before[0], after[0]), postgresCpu: per(before[1], after[1]) })
      say(`${name}: round ${round} of ${rounds}: ${Math.round(run.firsts > 0 ? run.firsts : run.requests)}/s`)
    }
  }
  return [...runs].map(([name, all]) => ({
    name,
    requests: median(all.map((run) => run.requests)),
    firsts: median(all.map((run) => run.firsts)),
    p50Ms: median(all.map((run) => run.p50Ms)),
    p99Ms: median(all.map((run) => run.p99Ms)),
    refused: median(all.map((run) => run.refused)),
    refusedP99Ms: median(all.map((run) => run.refusedP99Ms)),
    failures: all.reduce((sum, run) => sum + run.failures, 0),
    programCpu: medianKnown(all.map((run) => run.programCpu)),
    postgresCpu: medianKnown(all.map((run) => run.postgresCpu)),
  }))
}

function medianKnown(values: (number | null)[]): number | null {
  const known = values.filter((value) => value !== null)
  return known.length === 0 ? null : median(known)
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  const upper = sorted[middle] ?? 0
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? 0) + upper) / 2
}
