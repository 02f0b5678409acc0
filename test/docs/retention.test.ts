/** docs/retention.md against the catalog: nothing that could hold a person or a secret is missing from it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Kysely, sql } from 'kysely'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config.ts'
import { createDatabase, createPool } from '../../src/runtime/database.ts'
import type { Tables } from '../../src/store/tables.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { sectionOf, tableRows } from '../support/markdown.ts'

const root = join(import.meta.dirname, '../..')
const page = readFileSync(join(root, 'docs/retention.md'), 'utf8')

let database: TestDatabase
let pool: pg.Pool
let db: Kysely<Tables>
beforeAll(async () => {
  database = await createTestDatabase()
  const own = createPool(database.url, { max: 1, applicationName: 'test' })
  pool = own
  db = createDatabase<Tables>(own)
})
afterAll(async () => {
  await pool.end()
  await database.drop()
})

/** Numbers, flags and times hold neither a person nor a secret; everything else might. */
const harmless = ['bigint', 'integer', 'smallint', 'boolean', 'timestamp with time zone']

async function columnsThatHoldText(): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    SELECT table_name || '.' || column_name AS name FROM information_schema.columns
    WHERE table_schema = 'public' AND data_type <> ALL (${harmless}) ORDER BY 1`.execute(db)
  return rows.map(({ name }) => name).sort()
}

function columnsOf(heading: string): string[] {
  return tableRows(sectionOf(page, heading)).map(([name = '']) => name.replaceAll('`', ''))
}

const single = ['About a customer', 'Secrets', "The shop's own texts, and names of its staff"]

describe('docs/retention.md', () => {
  it('names every column that holds text, once, and none that is not there', async () => {
    const listed = tableRows(sectionOf(page, 'Ids and words')).flatMap(([table = '', ids = '', words = '']) =>
      `${ids} ${words}`
        .split(/\s+/)
        .filter((column) => column !== '')
        .map((column) => `${table.replaceAll('`', '')}.${column}`),
    )
    const named = [...single.flatMap(columnsOf), ...listed].sort()
    expect(named).toEqual(await columnsThatHoldText())
  })

  it('calls personal just what the test of the erasure searches', () => {
    const test = readFileSync(join(root, 'test/flows/erasure.test.ts'), 'utf8')
    // Digests hold no text to search for; that they are null afterwards is looked at there.
    const searched = columnsOf('About a customer').filter((name) => !name.startsWith('attempts.digest'))
    expect(searched.filter((name) => !test.includes(`'${name}'`))).toEqual([])
    expect([...test.matchAll(/^ {8}'([a-z_]+\.[a-z_]+)',$/gm)].map(([, name]) => name).sort()).toEqual(searched.sort())
  })

  it('says of every table how long it is kept', async () => {
    const { rows } = await sql<{ name: string }>`
      SELECT relname AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')`.execute(
      db,
    )
    const said = tableRows(sectionOf(page, 'How long')).flatMap(([, tables = '']) => tables.split(' '))
    expect([...new Set(said)].map((name) => name.replaceAll('`', '')).sort()).toEqual(
      rows.map(({ name }) => name).sort(),
    )
  })

  it('has the times that the service has', () => {
    const { config } = loadConfig({})
    const times = sectionOf(page, 'How long')
    expect(times).toContain(`\`IDEMPOTENCY_RETENTION_HOURS\` (${config.retentionMs / 3_600_000})`)
    expect(times).toContain(`\`RECORDS_RETENTION_DAYS\` (${config.recordsRetentionMs / 86_400_000})`)
    const [jobs, events] = ['sweep-jobs', 'sweep-events'].map((file) =>
      readFileSync(join(root, `src/workers/${file}.ts`), 'utf8'),
    )
    expect(jobs).toContain('jobsKeptMs = 7 * day')
    expect(jobs).toContain('eventsKeptMs = 45 * day')
    expect(events).toContain('keptDays = 45')
  })
})
