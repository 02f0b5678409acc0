/** What Postgres alone carries, by pgbench where it is installed: no service, no HTTP, the same rows and commits. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { administer, type LoadPostgres } from '../support/postgres.ts'
import { cpuSeconds } from '../support/proc.ts'

const run = promisify(execFile)

export interface PgbenchResult {
  name: string
  /** Checkouts, or reads, a second. */
  perSecond: number
  /** CPU seconds of Postgres per 1000. */
  postgresCpu: number | null
}

const scripts = [
  { name: 'one statement after the other', file: 'statements.sql', group: 1 },
  { name: 'one statement a commit', file: 'saga.sql', group: 1 },
  { name: '16 in one statement', file: 'saga.sql', group: 16 },
  { name: 'the read of a replay', file: 'replay.sql', group: 1 },
] as const

/** Null where pgbench is not installed. */
export async function pgbench(
  postgres: LoadPostgres,
  databaseUrl: string,
  seconds: number,
): Promise<PgbenchResult[] | null> {
  try {
    await run('pgbench', ['--version'])
  } catch {
    return null
  }
  await administer(
    databaseUrl,
    `INSERT INTO attempts (tenant_id, key, kind, object_id, state, digest, response_status, response_body, settled_at)
     SELECT 'ten_demo', 'replay-' || n, 'checkout', 'ord_replay_' || n, 'settled', '\\x00', 201, repeat('x', 600), now()
     FROM generate_series(1, 1000) n`,
  )
  const results: PgbenchResult[] = []
  for (const { name, file, group } of scripts) {
    await administer(databaseUrl, 'CHECKPOINT')
    const postmaster = await postgres.pid()
    const before = await cpuSeconds(postmaster)
    const perSecond = (await transactions(databaseUrl, file, group, seconds)) * group
    const after = await cpuSeconds(postmaster)
    const thousands = (perSecond * seconds) / 1000
    results.push({
      name,
      perSecond,
      postgresCpu: before === null || after === null || thousands === 0 ? null : (after - before) / thousands,
    })
  }
  return results
}

/** Runs of the script a second. */
async function transactions(databaseUrl: string, file: string, group: number, seconds: number): Promise<number> {
  const { username, password, hostname, port, pathname } = new URL(databaseUrl)
  const { stdout } = await run(
    'pgbench',
    [
      ...['--no-vacuum', '--protocol=prepared', '--max-tries=10', '--client=8', '--jobs=1'],
      ...[`--time=${seconds}`, `--define=group=${group}`, `--file=${join(import.meta.dirname, 'pgbench', file)}`],
      ...[`--host=${hostname}`, `--port=${port}`, `--username=${username}`, pathname.slice(1)],
    ],
    { env: { ...process.env, PGPASSWORD: decodeURIComponent(password) } },
  )
  const tps = /^tps = ([\d.]+)/m.exec(stdout)?.[1]
  if (tps === undefined) throw new Error(`pgbench told no rate:\n${stdout}`)
  return Number(tps)
}
