/** What is forgotten is found by its age: a sweep that reads what is young reads all that there is, every few seconds. */
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDatabase, createPool } from '../../src/runtime/database.ts'
import type { Tables } from '../../src/store/tables.ts'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { sweep } from '../../src/workers/sweep.ts'
import { type Audience, startAudience } from '../support/effects.ts'
import { unhurried } from '../support/money-back.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { until } from '../support/until.ts'

const many = 300
/** The table, and what tells its copies from the row that they are copies of. */
const grown = {
  attempts: 'key',
  jobs: 'business_id',
  provider_events: 'event_id',
  merchant_events: 'event_id',
  provider_calls: 'order_id',
} as const

let scene: Scene
let audience: Audience
beforeAll(async () => {
  audience = await startAudience()
  scene = await startScene({ settings: audience.settings })
  await scene.backend.put('/v1/webhook-endpoint', { url: audience.merchant.url })
  expect((await scene.shop.checkout(newKey())).status).toBe(201)
  const deps = unhurried(scene.service)
  await until(
    async () => {
      await runJobs(deps)
      const done = await scene.db.selectFrom('jobs').select('topic').where('state', '=', 'done').execute()
      return done.length >= 3 && (await scene.db.selectFrom('merchant_events').select('event_id').execute()).length > 0
    },
    { what: 'a row of each kind' },
  )
  for (const [table, name] of Object.entries(grown)) {
    const copy = sql`to_jsonb(t) || jsonb_build_object(${sql.lit(name)}, t.${sql.ref(name)} || n, 'transition', 't' || n)`
    await sql`INSERT INTO ${sql.table(table)}
      SELECT (jsonb_populate_record(NULL::${sql.table(table)}, ${copy})).*
      FROM (SELECT * FROM ${sql.table(table)} LIMIT 1) t, generate_series(1, ${sql.lit(many)}) n`.execute(scene.db)
  }
})
afterAll(async () => {
  await scene.stop()
  await audience.stop()
})

describe('a sweep', () => {
  it('reads nothing of what is young', async () => {
    // One connection, and all in one transaction: its own counts are told by Postgres at once.
    const pool = createPool(scene.databaseUrl, { max: 1, applicationName: 'test' })
    try {
      // So few rows would be read as a whole otherwise.
      await pool.query('BEGIN; SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off')
      const db = createDatabase<Tables>(pool)
      expect(await sweep({ ...scene.service.deps, pool, db })).toBe(0)
      const { rows } = await pool.query<{ relname: string; read: number }>(
        `SELECT relname, (coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::integer AS read
         FROM pg_stat_xact_user_tables WHERE relname = ANY ($1)`,
        [Object.keys(grown)],
      )
      expect(rows.filter(({ read }) => read >= many)).toEqual([])
      expect(rows).toHaveLength(Object.keys(grown).length)
    } finally {
      await pool.end()
    }
  })
})
