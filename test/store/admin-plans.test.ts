/** What operators look for is found by an index, also on tables that nobody has analysed: their pages must not cost the shop. */
import { Kysely, PostgresDialect, sql } from 'kysely'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createPool } from '../../src/runtime/database.ts'
import { findOrders } from '../../src/store/admin-orders.ts'
import { listEvents } from '../../src/store/inbox.ts'
import { listDeliveries } from '../../src/store/merchant-events.ts'
import { readStarted, readWaiting } from '../../src/store/operator-figures.ts'
import type { Tables } from '../../src/store/tables.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

/** Enough that a walk over all of them is no oversight. */
const many = 20_000

let database: TestDatabase
let pool: pg.Pool
let db: Kysely<Tables>
/** Of the statements that ran since it was emptied. */
const seen: { sql: string; parameters: readonly unknown[] }[] = []

beforeAll(async () => {
  database = await createTestDatabase()
  pool = createPool(database.url, { max: 2, applicationName: 'test' })
  db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }), log: ({ query }) => void seen.push(query) })
  await fill()
})
afterAll(async () => {
  await pool?.end()
  await database?.drop()
})

async function fill(): Promise<void> {
  // No statistics before the test says so.
  for (const table of ['orders', 'customers', 'provider_events', 'event_deliveries', 'jobs', 'attempts']) {
    await sql`ALTER TABLE ${sql.table(table)} SET (autovacuum_enabled = false)`.execute(db)
  }
  await sql`INSERT INTO customers (tenant_id, customer_id, email)
    SELECT 'ten_a', 'cus_' || n, n || '@example.com' FROM generate_series(1, ${many}::int) n`.execute(db)
  await sql`INSERT INTO orders (tenant_id, order_id, attempt_key, kind, status, currency, total, capture, lines, customer_id,
      payment_method, provider_account, livemode, api_version, parameter_version, last_send_before, next_ask_at, expires_at)
    SELECT 'ten_a', 'ord_' || lpad(n::text, 8, '0'), 'key' || n, 'checkout', 'paid', 'EUR', 100, 'automatic', '[]',
      'cus_' || n, 'pm', 'acct', false, 'v', 1, now(), now(), now() FROM generate_series(1, ${many}::int) n`.execute(db)
  await sql`INSERT INTO attempts (tenant_id, key, kind, object_id, state)
    SELECT 'ten_a', 'key' || n, 'checkout', 'ord_' || lpad(n::text, 8, '0'), 'settled'
    FROM generate_series(1, ${many}::int) n`.execute(db)
  await sql`INSERT INTO provider_events (provider, event_id, type, livemode, created_at, object, readable, tenant_id, state)
    SELECT 'stripe', 'evt_' || n, 't', false, now(), 'o', true, 'ten_a', CASE n WHEN 7 THEN 'foreign' ELSE 'done' END
    FROM generate_series(1, ${many}::int) n`.execute(db)
  await sql`INSERT INTO merchant_events (tenant_id, event_id, order_id, type, transition, body)
    SELECT 'ten_a', 'evt_' || n, 'ord_' || n, 't', 'paid', '' FROM generate_series(1, ${many}::int) n`.execute(db)
  await sql`INSERT INTO event_deliveries (tenant_id, delivery_id, event_id, attempt, delivered, duration_ms)
    SELECT 'ten_a', 'dlv_' || n, 'evt_' || n, 1, n <> 7, 1 FROM generate_series(1, ${many}::int) n`.execute(db)
  await sql`INSERT INTO jobs (tenant_id, topic, business_id, state, finished_at)
    SELECT 'ten_a', 'send_email', n::text, 'done', now() FROM generate_series(1, ${many}::int) n`.execute(db)
  await sql`INSERT INTO jobs (tenant_id, topic, business_id, run_at)
    VALUES ('ten_a', 'order_news', 'one', now() - interval '1 minute'), ('ten_b', 'send_email', 'two', now())`.execute(
    db,
  )
}

/** What `read` finds, and how many blocks its statements touch. */
async function costOf<Found>(read: () => Promise<Found>): Promise<{ found: Found; blocks: number }> {
  seen.length = 0
  const found = await read()
  let blocks = 0
  for (const statement of [...seen]) {
    const { rows } = await pool.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${statement.sql}`, [
      ...statement.parameters,
    ])
    const [{ Plan }] = rows[0]['QUERY PLAN'] as [{ Plan: Record<string, number> }]
    blocks += (Plan['Shared Hit Blocks'] ?? 0) + (Plan['Shared Read Blocks'] ?? 0)
  }
  return { found, blocks }
}

const page = { limit: 20, after: null }
const looks: Record<string, () => Promise<unknown[]>> = {
  'an order by email': () => findOrders(db, 'ten_a', page, { email: '4711@example.com' }),
  'the later orders of an email': () =>
    findOrders(db, 'ten_a', { limit: 20, after: 'ord_z' }, { email: '4711@example.com' }),
  'an order by idempotency key': () => findOrders(db, 'ten_a', page, { key: 'key4711' }),
  'an event that fits no order': () => listEvents(db, page, { tenantId: 'ten_a', state: 'foreign' }),
  'a delivery that failed': () => listDeliveries(db, 'ten_a', page, { undelivered: true }),
}

describe.each([false, true])('with statistics: %s', (analysed) => {
  beforeAll(async () => {
    if (analysed) await sql`ANALYZE`.execute(db)
  })

  it.each(Object.keys(looks))('%s costs a few blocks', async (name) => {
    const { found, blocks } = await costOf(looks[name] as () => Promise<unknown[]>)
    expect(found).toHaveLength(1)
    expect(blocks).toBeLessThan(60)
  })

  it('the figures cost as little, whatever has been settled', async () => {
    const { found, blocks } = await costOf(() =>
      readWaiting(db, { provider: 'stripe', tenantId: 'ten_a', account: null }),
    )
    expect(found).toMatchObject({ foreign_events: 1, undelivered: 1, due_jobs: 1, dead_jobs: 0, needs_reconcile: 0 })
    expect(blocks).toBeLessThan(100)
    const started = await costOf(() => readStarted(db, 'ten_a', 2, new Date()))
    expect(started.found.map(({ orders }) => orders)).toEqual([0, 0])
    expect(started.blocks).toBeLessThan(30)
  })
})
