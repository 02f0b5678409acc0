/** Everything that a database can do to its clients, in one run. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { administer, type LoadPostgres, resumeLoadPostgres } from '../support/postgres.ts'
import type { OwnService } from './stage.ts'
import type { Trouble } from './trouble.ts'

const standbyDeadlineMs = 60_000

export async function failOver(trouble: Trouble): Promise<void> {
  const { stage, note, until } = trouble
  const { own } = stage
  if (own === undefined) return
  const { postgres, proxy } = own
  // A statement of the hot path is its own transaction, so its answer is the commit's.
  const loseCommit = (statement: string) => {
    void proxy.loseAnswer(statement, 'SELECT').then(() => note(`the answer to the commit of ${statement} lost`))
  }
  const rough = async (from: number, to: number) => {
    for (const [at, statement] of [
      [0.2, 'claim_checkouts'],
      [0.5, 'settle_orders'],
    ] as const) {
      if (!(await until(from + at * (to - from)))) return
      loseCommit(statement)
    }
    if (!(await until(from + 0.8 * (to - from)))) return
    note(`${proxy.cutAll()} connections to Postgres cut`)
  }

  await rough(0.05, 0.25)
  if (!(await until(0.25))) return
  note('Postgres restarts')
  await postgres.restart()
  await rough(0.3, 0.45)
  if (!(await until(0.45))) return
  note('Postgres killed')
  await postgres.kill()
  await rough(0.55, 0.7)
  if (!(await until(0.7))) return
  await promoteStandby(own, note)
  await rough(0.75, 0.95)
}

/** Adds a standby that every commit waits for; the server stops while its files are copied. */
export async function addStandby(postgres: LoadPostgres, folder: string): Promise<LoadPostgres> {
  const dataDir = join(folder, 'standby')
  await mkdir(join(dataDir, 'postgres'), { recursive: true })
  const copy = join(dataDir, 'postgres', 'data')
  await postgres.copyTo(copy)
  const { username, password, hostname, port } = new URL(postgres.url)
  const primary = `user=${username} password=${decodeURIComponent(password)} host=${hostname} port=${port}`
  await writeFile(join(copy, 'standby.signal'), '')
  await writeFile(
    join(copy, 'postgresql.auto.conf'),
    [
      `primary_conninfo = '${primary} application_name=standby'`,
      // After a restart of the primary every commit waits for the standby to be back.
      "wal_retrieve_retry_interval = '200ms'",
      "shared_preload_libraries = 'pg_stat_statements'",
      '',
    ].join('\n'),
  )
  const standby = await resumeLoadPostgres(dataDir)
  await administer(postgres.url, "ALTER SYSTEM SET synchronous_standby_names = 'standby'")
  await administer(postgres.url, 'SELECT pg_reload_conf()')
  const deadline = Date.now() + standbyDeadlineMs
  while (!(await isSynchronous(postgres))) {
    if (Date.now() > deadline) throw new Error('the standby did not become synchronous')
    await delay(100)
  }
  return standby
}

async function isSynchronous(postgres: LoadPostgres): Promise<boolean> {
  const { rows } = await administer(postgres.url, "SELECT FROM pg_stat_replication WHERE sync_state = 'sync'")
  return rows.length > 0
}

async function promoteStandby(own: OwnService, note: (what: string) => void): Promise<void> {
  const { standby, proxy } = own
  if (standby === undefined) return
  // Nobody may reach the old one again: with two in charge, no client is safe.
  note('the server of Postgres is lost')
  proxy.refuse()
  proxy.cutAll()
  await own.postgres.killForGood()
  await administer(standby.url, 'SELECT pg_promote()')
  proxy.target(standby.url)
  own.moveTo(standby.url)
  await proxy.accept()
  note('the standby is in charge')
}
