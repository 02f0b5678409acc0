/** What Postgres does meanwhile: statements by count and time, and what its sessions wait for, sampled. */
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'

interface StatementFigures {
  statement: string
  calls: number
  totalMs: number
  meanMs: number
}

export interface PostgresFigures {
  commits: number
  rollbacks: number
  deadlocks: number
  /** The busiest first; empty without pg_stat_statements. */
  statements: StatementFigures[]
  samples: number
  /** Sessions found waiting, on average over the samples, by what they waited for. */
  waits: Record<string, number>
  /** Some of the counts are missing: the server lost them when it was killed, or could not be asked. */
  incomplete: boolean
}

interface Counters {
  commits: number
  rollbacks: number
  deadlocks: number
}

const sampleEveryMs = 100

// A session that waits for a row queues on the row's tuple lock first; one that waits for another transaction's end
// without holding such a lock has found that transaction's entry in a unique index.
const waitsSql = `
  SELECT CASE
      WHEN a.wait_event_type = 'Lock' AND a.wait_event IN ('transactionid', 'spectoken')
        THEN CASE WHEN EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid AND l.locktype = 'tuple' AND l.granted)
                  THEN 'row lock' ELSE 'unique index' END
      WHEN a.wait_event_type = 'Lock' AND a.wait_event = 'tuple' THEN 'row lock'
      WHEN a.wait_event_type = 'Lock' THEN 'lock on ' || a.wait_event
      ELSE a.wait_event_type || ': ' || a.wait_event END AS wait,
    count(*)::integer AS sessions
  FROM pg_stat_activity a
  WHERE a.datname = current_database() AND a.state = 'active' AND a.pid <> pg_backend_pid()
    AND a.wait_event_type IS NOT NULL
  GROUP BY 1`

const countersSql = `
  SELECT xact_commit AS commits, xact_rollback AS rollbacks, deadlocks
  FROM pg_stat_database WHERE datname = current_database()`

const statementsSql = `
  SELECT regexp_replace(query, '\\s+', ' ', 'g') AS statement, sum(calls)::bigint AS calls,
    sum(total_exec_time) AS "totalMs"
  FROM pg_stat_statements
  WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND query NOT ILIKE '%pg_stat_%'
  GROUP BY 1 ORDER BY 3 DESC LIMIT 12`

/** Watches until `stop`. `poolNow` gives the connections of the server in charge. */
export class PostgresWatch {
  readonly #poolNow: () => pg.Pool
  readonly #before: Counters | undefined
  readonly #waits = new Map<string, number>()
  readonly #stopping = new AbortController()
  #samples = 0
  #missed = 0
  readonly #sampling: Promise<void>

  private constructor(poolNow: () => pg.Pool, before: Counters | undefined) {
    this.#poolNow = poolNow
    this.#before = before
    this.#sampling = this.#sample()
  }

  static async start(poolNow: () => pg.Pool): Promise<PostgresWatch> {
    await poolNow()
      .query('SELECT pg_stat_statements_reset()')
      .catch(() => {}) // not installed, or not ours to reset
    return new PostgresWatch(poolNow, await counters(poolNow()))
  }

  async stop(): Promise<PostgresFigures> {
    this.#stopping.abort()
    await this.#sampling
    const after = await counters(this.#poolNow())
    const statements = await this.#poolNow()
      .query<{ statement: string; calls: number; totalMs: number }>(statementsSql)
      .then(({ rows }) => rows)
      .catch(() => [])
    const grown = (name: keyof Counters) => (after?.[name] ?? 0) - (this.#before?.[name] ?? 0)
    const lost = after === undefined || this.#before === undefined || grown('commits') < 0
    const since = (name: keyof Counters) => (grown('commits') < 0 ? (after?.[name] ?? 0) : grown(name))
    return {
      commits: since('commits'),
      rollbacks: since('rollbacks'),
      deadlocks: since('deadlocks'),
      statements: statements.map(({ statement, calls, totalMs }) => ({
        statement: statement.slice(0, 120),
        calls,
        totalMs: Math.round(totalMs),
        meanMs: Math.round((totalMs / calls) * 1000) / 1000,
      })),
      samples: this.#samples,
      waits: Object.fromEntries(
        [...this.#waits]
          .sort(([, a], [, b]) => b - a)
          .map(([wait, sessions]) => [wait, Math.round((sessions / Math.max(1, this.#samples)) * 1000) / 1000]),
      ),
      incomplete: lost || this.#missed > 0,
    }
  }

  async #sample(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      try {
        const { rows } = await this.#poolNow().query<{ wait: string; sessions: number }>(waitsSql)
        this.#samples += 1
        for (const { wait, sessions } of rows) this.#waits.set(wait, (this.#waits.get(wait) ?? 0) + sessions)
      } catch {
        this.#missed += 1
      }
      await delay(sampleEveryMs, undefined, { signal }).catch(() => {})
    }
  }
}

async function counters(pool: pg.Pool): Promise<Counters | undefined> {
  const { rows } = await pool.query<Counters>(countersSql).catch(() => ({ rows: [] }))
  return rows[0]
}
