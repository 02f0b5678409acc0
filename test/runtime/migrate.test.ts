import { randomBytes } from 'node:crypto'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { MigrationError, migrate, pendingMigrations } from '../../src/runtime/migrate.ts'
import { advisoryLocks } from '../support/advisory-locks.ts'
import { createEmptyDatabase, type TestDatabase } from '../support/database.ts'
import { quiet } from '../support/quiet.ts'
import { until } from '../support/until.ts'

const FIRST = 'create table goods (id int primary key, name text)'
const SECOND = 'alter table goods add column price bigint; insert into goods values (1, $$a;b$$, 5)'

let database: TestDatabase
let pool: pg.Pool
let folder: string

beforeAll(async () => {
  database = await createEmptyDatabase()
  pool = new pg.Pool({ connectionString: database.url, max: 5 })
})

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'migrations-'))
  await add('0001_goods', FIRST)
  await add('0002_price', SECOND)
})

afterEach(async () => {
  await rm(folder, { recursive: true })
  await pool.query('drop schema public cascade; create schema public')
})

afterAll(async () => {
  await pool.end()
  await database.drop()
})

async function add(name: string, text: string): Promise<void> {
  await writeFile(join(folder, `${name}.sql`), text)
}

async function refusal(): Promise<string> {
  const error = await migrate(database.url, folder, quiet).then(
    () => expect.fail('should have refused'),
    (thrown) => thrown,
  )
  expect(error).toBeInstanceOf(MigrationError)
  return error.message
}

async function applied(): Promise<string[]> {
  const { rows } = await pool.query<{ name: string }>('select name from schema_migrations order by applied_at, name')
  return rows.map(({ name }) => name)
}

test('applies what is missing, in order, once', async () => {
  expect(await pendingMigrations(pool, folder)).toEqual(['0001_goods.sql', '0002_price.sql'])
  expect(await migrate(database.url, folder, quiet)).toEqual(['0001_goods.sql', '0002_price.sql'])
  expect(await migrate(database.url, folder, quiet)).toEqual([])
  await add('0003_more', 'insert into goods values (2, null, 1)')
  expect(await pendingMigrations(pool, folder)).toEqual(['0003_more.sql'])
  expect(await migrate(database.url, folder, quiet)).toEqual(['0003_more.sql'])
  expect(await pendingMigrations(pool, folder)).toEqual([])
  expect((await pool.query('select id from goods order by id')).rows).toEqual([{ id: 1 }, { id: 2 }])
})

test('an empty folder is fine', async () => {
  await Promise.all(['0001_goods', '0002_price'].map((name) => rm(join(folder, `${name}.sql`))))
  expect(await migrate(database.url, folder, quiet)).toEqual([])
})

test('twenty processes that start together apply each migration once, and all of them succeed', async () => {
  const results = await Promise.all(Array.from({ length: 20 }, () => migrate(database.url, folder, quiet)))
  expect(results.flat().sort()).toEqual(['0001_goods.sql', '0002_price.sql'])
  expect(await applied()).toEqual(['0001_goods.sql', '0002_price.sql'])
})

test('no lock stays behind', async () => {
  await migrate(database.url, folder, quiet)
  expect(await advisoryLocks(pool)).toEqual([])
})

test('a migration that fails names its file, line and cause, and leaves nothing of itself', async () => {
  await add('0003_wrong', 'create table half (id int);\ninsert into nowhere values (1);')
  expect(await refusal()).toMatch(/0003_wrong\.sql line 2: relation "nowhere" does not exist \(42P01\)/)
  expect(await applied()).toEqual(['0001_goods.sql', '0002_price.sql'])
  expect((await pool.query("select to_regclass('half') as half")).rows).toEqual([{ half: null }])
})

test('a database newer than the folder is refused', async () => {
  await add('0003_more', 'select 1')
  await migrate(database.url, folder, quiet)
  await rm(join(folder, '0003_more.sql'))
  expect(await refusal()).toMatch(/newer than this version.*0003_more\.sql/)
  expect(await pendingMigrations(pool, folder)).toEqual([])
})

test('a file changed after it was applied is refused; other line ends are no change', async () => {
  await add('0001_goods', `${FIRST}\n`)
  await migrate(database.url, folder, quiet)
  await add('0001_goods', `${FIRST}\r\n`)
  expect(await migrate(database.url, folder, quiet)).toEqual([])
  await add('0001_goods', `${FIRST} -- changed`)
  expect(await refusal()).toMatch(/0001_goods\.sql has been changed/)
})

test('a new file that sorts before an applied one is refused', async () => {
  await rename(join(folder, '0002_price.sql'), join(folder, '0003_price.sql'))
  await migrate(database.url, folder, quiet)
  await add('0002_late', 'select 1')
  expect(await refusal()).toMatch(/0002_late\.sql sorts before 0003_price\.sql/)
})

test('two files with one number and a file without one are refused before anything is applied', async () => {
  await add('0002_other', 'select 1')
  expect(await refusal()).toMatch(/two migrations have the number 0002/)
  await rm(join(folder, '0002_other.sql'))
  await add('fix', 'select 1')
  expect(await refusal()).toMatch(/fix\.sql must be named like/)
  await expect(pendingMigrations(pool, folder)).rejects.toThrow(MigrationError)
  expect((await pool.query("select to_regclass('schema_migrations') as found")).rows).toEqual([{ found: null }])
})

test("the role's time limits do not end a migration", async () => {
  const { rows } = await pool.query<{ name: string }>('select quote_ident(current_database()) as name')
  await pool.query(`alter database ${rows[0]?.name} set statement_timeout = 20`)
  try {
    await add('0003_slow', 'select pg_sleep(0.2)')
    expect(await migrate(database.url, folder, quiet)).toContain('0003_slow.sql')
  } finally {
    await pool.query(`alter database ${rows[0]?.name} reset statement_timeout`)
  }
})

test('a migration that finds its table locked lets the others pass and tries again', async () => {
  await migrate(database.url, folder, quiet)
  await add('0003_column', 'alter table goods add column note text')
  const reader = await pool.connect()
  try {
    await reader.query('begin; select * from goods')
    const warnings: unknown[] = []
    const log = { info: () => {}, warn: (...told: unknown[]) => warnings.push(told) }
    const migrating = migrate(database.url, folder, log)
    await until(() => warnings.length > 0, { what: 'the migration gave way once' })
    await reader.query('commit')
    expect(await migrating).toEqual(['0003_column.sql'])
  } finally {
    reader.release()
  }
})

test('a user without the right to change the schema starts where nothing is missing, and is told what is', async () => {
  const role = `reader_${randomBytes(6).toString('hex')}`
  const url = new URL(database.url)
  url.username = role
  url.password = 'secret'
  const asReader = () => migrate(url.href, folder, quiet)
  await pool.query(`create role ${role} login password 'secret'; grant usage on schema public to ${role}`)
  try {
    await expect(asReader()).rejects.toThrow(/the database is empty, and this database user may not change its schema/)
    await migrate(database.url, folder, quiet)
    await pool.query(`grant select on schema_migrations to ${role}`)
    expect(await asReader()).toEqual([])
    await add('0003_more', 'create table more (id int)')
    await expect(asReader()).rejects.toThrow(/0003_more\.sql is missing, and this database user may not/)
    expect(await applied()).toEqual(['0001_goods.sql', '0002_price.sql'])
  } finally {
    await pool.query(`drop owned by ${role}; drop role ${role}`)
  }
})
