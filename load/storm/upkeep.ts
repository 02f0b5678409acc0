/** What a long run must not let grow: memory of the processes, tables, stored answers. */
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { residentBytes } from '../support/proc.ts'

export interface UpkeepSample {
  second: number
  /** MB by process. */
  memory: Record<string, number>
  /** MB by table, indexes included. */
  tables: Record<string, number>
  attempts: number
  /** Attempts whose answer is still stored. */
  storedAnswers: number
  jobsReady: number
}

const everyMs = 5000
const megabyte = 1024 * 1024

export class Upkeep {
  readonly samples: UpkeepSample[] = []
  readonly #pool: () => pg.Pool
  readonly #pids: () => ReadonlyMap<string, number>

  constructor(pool: () => pg.Pool, pids: () => ReadonlyMap<string, number>) {
    this.#pool = pool
    this.#pids = pids
  }

  /** Until the signal. */
  async watch(over: AbortSignal): Promise<void> {
    const startedMs = performance.now()
    while (!over.aborted) {
      try {
        this.samples.push(await this.#sample(Math.round((performance.now() - startedMs) / 1000)))
      } catch {
        // Postgres is away; the next look may find it.
      }
      await delay(everyMs, undefined, { signal: over }).catch(() => {})
    }
  }

  async #sample(second: number): Promise<UpkeepSample> {
    const memory: Record<string, number> = {}
    for (const [name, pid] of this.#pids()) {
      const bytes = await residentBytes(pid)
      if (bytes !== null) memory[name] = Math.round(bytes / megabyte)
    }
    const sizes = await this.#pool().query<{ name: string; bytes: number }>(
      `SELECT relname AS name, pg_total_relation_size(oid) AS bytes FROM pg_class
       WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND pg_total_relation_size(oid) > 1000000
       ORDER BY 2 DESC`,
    )
    const counts = await this.#pool().query<{ attempts: number; stored: number; ready: number }>(
      `SELECT (SELECT count(*) FROM attempts) AS attempts,
         (SELECT count(*) FROM attempts WHERE response_body IS NOT NULL) AS stored,
         (SELECT count(*) FROM jobs WHERE state = 'ready') AS ready`,
    )
    return {
      second,
      memory,
      tables: Object.fromEntries(sizes.rows.map(({ name, bytes }) => [name, Math.round((bytes / megabyte) * 10) / 10])),
      attempts: counts.rows[0]?.attempts ?? 0,
      storedAnswers: counts.rows[0]?.stored ?? 0,
      jobsReady: counts.rows[0]?.ready ?? 0,
    }
  }
}

/** What grew from the run's second quarter to its last, though it should be flat; empty where all is well or the run was
 * too short to tell. */
export function growth(samples: readonly UpkeepSample[]): string[] {
  if (samples.length < 12) return []
  const quarter = Math.floor(samples.length / 4)
  const early = samples.slice(quarter, 2 * quarter)
  const late = samples.slice(-quarter)
  const told: string[] = []
  const judge = (what: string, of: (sample: UpkeepSample) => number | undefined, slack: number) => {
    const before = mean(early, of)
    const after = mean(late, of)
    if (after > before * 1.3 + slack) told.push(`${what} grew from ${Math.round(before)} to ${Math.round(after)}`)
  }
  for (const name of Object.keys(late[0]?.memory ?? {}))
    judge(`memory of ${name} (MB)`, ({ memory }) => memory[name], 20)
  judge('stored answers', ({ storedAnswers }) => storedAnswers, 1000)
  judge('jobs that wait', ({ jobsReady }) => jobsReady, 1000)
  return told
}

function mean(samples: readonly UpkeepSample[], of: (sample: UpkeepSample) => number | undefined): number {
  const values = samples.map(of).filter((value) => value !== undefined)
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)
}
