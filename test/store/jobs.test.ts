import type { Kysely } from 'kysely'
import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createDatabase, createPool, type DatabasePool } from '../../src/runtime/database.ts'
import {
  buryJob,
  deleteOldJobs,
  discardJob,
  finishJob,
  jobId,
  listJobs,
  readJob,
  requeueJob,
  takeJobs,
} from '../../src/store/jobs.ts'
import { deleteOldEvents } from '../../src/store/merchant-events.ts'
import type { Tables } from '../../src/store/tables.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

let database: TestDatabase
let pool: DatabasePool
let db: Kysely<Tables>
beforeAll(async () => {
  database = await createTestDatabase()
  pool = createPool(database.url, { max: 4, applicationName: 'test' })
  db = createDatabase<Tables>(pool)
})
afterAll(async () => {
  await pool.end()
  await database.drop()
})
beforeEach(async () => {
  await db.deleteFrom('jobs').execute()
})

async function put(
  ...jobs: Partial<{
    tenant_id: string
    topic: string
    business_id: string
    state: 'ready' | 'done' | 'dead' | 'discarded'
    finished_at: Date
  }>[]
) {
  await db
    .insertInto('jobs')
    .values(
      jobs.map((job) => ({
        tenant_id: 'ten_a',
        topic: 'work',
        business_id: '1',
        lease_token: null,
        last_error: null,
        finished_at: null,
        ...job,
      })),
    )
    .execute()
}

async function take() {
  const lanes = [{ topic: 'work', slots: 10, share: 10, after: '', busy: {} }]
  return (await takeJobs(pool, lanes, { leaseToken: crypto.randomUUID(), leaseMs: 60_000, tenantsMax: 100 })).jobs
}

describe('a dead job', () => {
  it('runs again under its business id when it is requeued, from its first try on', async () => {
    await put({})
    const [job] = await take()
    if (job === undefined) throw new Error('nothing was taken')
    expect(await buryJob(db, job, 'always_fails')).toBe(true)
    expect(await readJob(db, 'ten_a', 'work', '1')).toMatchObject({
      state: 'dead',
      attempts: 1,
      last_error: 'always_fails',
    })
    expect(await requeueJob(db, 'ten_a', 'work', '1')).toMatchObject({ state: 'ready', attempts: 0, running: false })
    expect(await take()).toMatchObject([{ businessId: '1', attempts: 1 }])
    // The first owner's word no longer counts.
    expect(await finishJob(db, job)).toBe(false)
  })

  it('is not run any more once it is discarded, unless it is requeued', async () => {
    await put({ state: 'dead' })
    expect(await discardJob(db, 'ten_a', 'work', '1')).toMatchObject({ state: 'discarded' })
    expect(await take()).toEqual([])
    expect(await discardJob(db, 'ten_a', 'work', '1')).toBeNull()
    expect(await requeueJob(db, 'ten_a', 'work', '1')).toMatchObject({ state: 'ready', finished_at: null })
  })

  it('is another tenant’s to nobody', async () => {
    await put({ state: 'dead' })
    expect(await requeueJob(db, 'ten_b', 'work', '1')).toBeNull()
    expect(await discardJob(db, 'ten_b', 'work', '1')).toBeNull()
    expect(await readJob(db, 'ten_b', 'work', '1')).toBeNull()
    expect(await listJobs(db, 'ten_b', { limit: 10, after: null })).toEqual([])
  })
})

describe('a job that runs this moment', () => {
  it('can be neither requeued nor discarded; once its lease has ended, it can', async () => {
    await put({})
    await take()
    expect(await readJob(db, 'ten_a', 'work', '1')).toMatchObject({ running: true })
    expect(await requeueJob(db, 'ten_a', 'work', '1')).toBeNull()
    expect(await discardJob(db, 'ten_a', 'work', '1')).toBeNull()
    await db
      .updateTable('jobs')
      .set({ run_at: new Date(0) })
      .execute()
    expect(await requeueJob(db, 'ten_a', 'work', '1')).toMatchObject({ state: 'ready', running: false })
  })
})

describe('the list of jobs', () => {
  it('comes in pages, newest first within a topic, of one state where asked', async () => {
    await put(
      ...['1', '2', '3', '4', '5'].map((business_id) => ({ business_id, state: 'dead' as const })),
      { topic: 'mail', business_id: 'ord_1:refunded:ref_1', state: 'dead' },
      { business_id: '9' },
      { business_id: '8', state: 'done' },
      { business_id: '7', state: 'discarded' },
      { tenant_id: 'ten_b', business_id: '6', state: 'dead' },
    )
    const seen: string[] = []
    let after: string | null = null
    for (;;) {
      const page: Awaited<ReturnType<typeof listJobs>> = await listJobs(db, 'ten_a', { limit: 2, after }, 'dead')
      seen.push(...page.slice(0, 2).map(jobId))
      const last = page[1]
      if (page.length <= 2 || last === undefined) break
      after = jobId(last)
    }
    expect(seen).toEqual(['work:5', 'work:4', 'work:3', 'work:2', 'work:1', 'mail:ord_1:refunded:ref_1'])
    expect((await listJobs(db, 'ten_a', { limit: 10, after: null }, 'ready')).map(jobId)).toEqual(['work:9'])
    expect((await listJobs(db, 'ten_a', { limit: 10, after: null })).map(jobId)).toEqual([
      'work:9',
      'work:8',
      'work:7',
      'work:5',
      'work:4',
      'work:3',
      'work:2',
      'work:1',
      'mail:ord_1:refunded:ref_1',
    ])
  })

  it('finds the few that are dead without a walk over the many that are done', async () => {
    await sql`INSERT INTO jobs (tenant_id, topic, business_id, state, finished_at)
              SELECT 'ten_a', 'work', 'done' || n, 'done', now() FROM generate_series(1, 20000) n`.execute(db)
    await put({ business_id: 'aaa', state: 'dead' })
    await sql`ANALYZE jobs`.execute(db)
    const query = sql`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)
      SELECT * FROM jobs WHERE tenant_id = 'ten_a' AND state = 'dead' ORDER BY topic DESC, business_id DESC LIMIT 21`
    const { rows } = await query.execute(db)
    const [{ Plan }] = (rows as [{ 'QUERY PLAN': [{ Plan: Record<string, number> }] }])[0]['QUERY PLAN']
    expect((Plan['Shared Hit Blocks'] ?? 0) + (Plan['Shared Read Blocks'] ?? 0)).toBeLessThan(50)
  })
})

describe('the sweep', () => {
  it('deletes what ended long ago in batches; the dead and the waiting stay', async () => {
    const old = new Date(Date.now() - 8 * 24 * 3_600_000)
    await put(
      ...['1', '2', '3'].map((business_id) => ({ business_id, state: 'done' as const, finished_at: old })),
      { business_id: '4', state: 'discarded', finished_at: old },
      { business_id: '5', state: 'dead', finished_at: old },
      { business_id: '6', state: 'done', finished_at: new Date() },
      { business_id: '7' },
    )
    const week = 7 * 24 * 3_600_000
    expect(await deleteOldJobs(pool, week, 3)).toBe(3)
    expect(await deleteOldJobs(pool, week, 3)).toBe(1)
    expect(await deleteOldJobs(pool, week, 3)).toBe(0)
    const left = await db.selectFrom('jobs').select('business_id').orderBy('business_id').execute()
    expect(left.map(({ business_id }) => business_id)).toEqual(['5', '6', '7'])
  })

  it('deletes old events with their deliveries', async () => {
    for (const [event_id, created_at] of [
      ['evt_old', new Date(0)],
      ['evt_new', new Date()],
    ] as const) {
      await db
        .insertInto('merchant_events')
        .values({
          tenant_id: 'ten_a',
          event_id,
          order_id: event_id,
          type: 'order.paid',
          transition: 'paid',
          body: '{}',
          created_at,
        })
        .execute()
      await db
        .insertInto('event_deliveries')
        .values({
          tenant_id: 'ten_a',
          delivery_id: `dlv_${event_id}`,
          event_id,
          attempt: 1,
          delivered: true,
          http_status: 200,
          error: null,
          duration_ms: 1,
        })
        .execute()
    }
    expect(await deleteOldEvents(pool, 45 * 24 * 3_600_000, 10)).toBe(1)
    expect(await db.selectFrom('event_deliveries').select('event_id').execute()).toEqual([{ event_id: 'evt_new' }])
  })
})
