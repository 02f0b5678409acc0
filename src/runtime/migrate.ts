import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { BaseLogger } from 'pino'
import { codeOf, hasCode } from './error-code.ts'

/** The database and the folder of migrations do not fit together, or a migration failed; the message says how. */
export class MigrationError extends Error {}

type Migration = { name: string; sql: string; checksum: string }
type Applied = { name: string; checksum: string }
type Connection = Pick<pg.ClientBase, 'query'>

const FILE_NAME = /^\d{4}_[a-z0-9_]+\.sql$/
// Any constant does that nobody else in the database uses.
const LOCK_KEY = 7_236_498_117
// A migration queues behind running transactions for the table's lock, and everybody else behind the migration: rather
// give up and try again.
const LOCK_TIMEOUT_MS = 2_000
const LOCK_ATTEMPTS_MAX = 30

const CREATE_TABLE = `create table schema_migrations (
  name text primary key,
  checksum text not null,
  applied_at timestamptz not null default clock_timestamp()
)`

/** Applies the folder's `NNNN_name.sql` files that the database lacks, in order, each in a transaction of its own, and
 * returns their names. Any number of processes may do this at once: each step is taken under one advisory lock, which
 * belongs to the transaction, so that it also holds behind PgBouncer. No time limit of the role applies.
 *
 * Throws a `MigrationError` and changes nothing when the database is newer than the folder, when an applied file has
 * been changed since, when a new file sorts before an applied one, or when a file's SQL fails. Where nothing is missing,
 * reading `schema_migrations` is all that it does, so that those who serve need no right to change the schema. */
export async function migrate(url: string, folder: string, log: Pick<BaseLogger, 'info' | 'warn'>): Promise<string[]> {
  const migrations = await readMigrations(folder)
  return await withConnection(url, async (connection) => {
    const done: string[] = []
    for (let attempt = 1; ; ) {
      try {
        const name = await applyNext(connection, migrations)
        if (name === undefined) return done
        done.push(name)
        attempt = 1
        log.info({ migration: name }, 'migration applied')
      } catch (error) {
        if (!hasCode(error, '55P03') || attempt++ >= LOCK_ATTEMPTS_MAX) throw error
        log.warn({ attempt }, 'a migration waits for a lock that a running transaction holds')
        await delay(Math.random() * 1_000)
      }
    }
  })
}

/** Names of the folder's migrations that the database lacks, in order. Changes nothing; says nothing about a database
 * that is newer, so that the old version keeps serving while the new one is rolled out. */
export async function pendingMigrations(pool: pg.Pool, folder: string): Promise<string[]> {
  const migrations = await readMigrations(folder)
  const applied = new Set((await readApplied(pool)).map(({ name }) => name))
  return migrations.filter(({ name }) => !applied.has(name)).map(({ name }) => name)
}

/** A connection of its own: a pool's gives up statements that take longer than a request may. */
async function withConnection<Result>(url: string, work: (connection: Connection) => Promise<Result>): Promise<Result> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000 })
  client.on('error', () => {}) // the statement under way fails with the same error
  try {
    await client.connect()
    return await work(client)
  } finally {
    await client.end()
  }
}

/** One transaction: look under the lock what is missing, apply the first of it. */
async function applyNext(connection: Connection, migrations: Migration[]): Promise<string | undefined> {
  await connection.query('begin; set local statement_timeout = 0; set local lock_timeout = 0')
  try {
    await connection.query('select pg_advisory_xact_lock($1)', [LOCK_KEY])
    const hasTable = await isManaged(connection)
    const next = firstMissing(migrations, hasTable ? await readApplied(connection) : [])
    if (next) {
      if (!hasTable) await createTable(connection)
      await connection.query(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`)
      await runFile(connection, next)
      await connection.query('insert into schema_migrations (name, checksum) values ($1, $2)', [
        next.name,
        next.checksum,
      ])
    }
    await connection.query('commit')
    return next?.name
  } catch (error) {
    await connection.query('rollback').catch(() => {}) // the first error tells more
    throw error
  }
}

async function isManaged(connection: Connection): Promise<boolean> {
  const { rows } = await connection.query<{ found: string | null }>(`select to_regclass('schema_migrations') as found`)
  return rows[0]?.found != null
}

async function createTable(connection: Connection): Promise<void> {
  try {
    await connection.query(CREATE_TABLE)
  } catch (error) {
    if (!hasCode(error, '42501')) throw error
    throw new MigrationError(`the database is empty, and ${notOwner}`, { cause: error })
  }
}

/** insufficient_privilege: those who serve need not be those who may change the schema. */
const notOwner =
  'this database user may not change its schema; apply the migrations as its owner (cli migrate), then start again'

async function runFile(connection: Connection, { name, sql }: Migration): Promise<void> {
  try {
    await connection.query(sql)
  } catch (error) {
    if (hasCode(error, '55P03')) throw error
    if (hasCode(error, '42501'))
      throw new MigrationError(`migration ${name} is missing, and ${notOwner}`, { cause: error })
    const line = lineOf(sql, error)
    throw new MigrationError(
      `migration ${name}${line ? ` line ${line}` : ''}: ${error instanceof Error ? error.message : String(error)}` +
        ` (${codeOf(error) ?? 'no code'})`,
      { cause: error },
    )
  }
}

/** Postgres reports a position in characters, counted from 1. */
function lineOf(sql: string, error: unknown): number | undefined {
  const position = Number((error as { position?: string }).position)
  return position > 0 ? sql.slice(0, position).split('\n').length : undefined
}

function firstMissing(migrations: Migration[], applied: Applied[]): Migration | undefined {
  const byName = new Map(migrations.map((migration) => [migration.name, migration]))
  for (const { name, checksum } of applied) {
    const migration = byName.get(name)
    if (!migration) {
      throw new MigrationError(
        `the database is newer than this version: it has the migration ${name}, which is not in the folder; ` +
          'start a version that knows it',
      )
    }
    if (migration.checksum !== checksum) {
      throw new MigrationError(`migration ${name} has been changed since it was applied; put it back, add a new one`)
    }
  }
  const next = migrations.find(({ name }) => !applied.some((one) => one.name === name))
  const last = applied.at(-1)
  if (next && last && next.name < last.name) {
    throw new MigrationError(`migration ${next.name} sorts before ${last.name}, which has been applied; renumber it`)
  }
  return next
}

/** In the order of their names; none where nothing has ever been applied. */
async function readApplied(connection: Connection): Promise<Applied[]> {
  try {
    const { rows } = await connection.query<Applied>(
      'select name, checksum from schema_migrations order by name collate "C"',
    )
    return rows
  } catch (error) {
    if (hasCode(error, '42P01')) return [] // undefined_table
    throw error
  }
}

async function readMigrations(folder: string): Promise<Migration[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sql')).sort()
  const misnamed = names.find((name) => !FILE_NAME.test(name))
  if (misnamed) throw new MigrationError(`migration ${misnamed} must be named like 0001_what_it_does.sql`)
  const twin = names.find((name, i) => name.slice(0, 4) === names[i - 1]?.slice(0, 4))
  if (twin) throw new MigrationError(`two migrations have the number ${twin.slice(0, 4)}; renumber one`)
  return await Promise.all(
    names.map(async (name) => {
      const sql = (await readFile(join(folder, name), 'utf8')).replaceAll('\r\n', '\n')
      return { name, sql, checksum: createHash('sha256').update(sql).digest('hex') }
    }),
  )
}
