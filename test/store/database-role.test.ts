/** The rights that docs/security.md gives to the database user of the service are enough for it, and no more than it needs. */
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { administer } from '../support/administer.ts'
import { orderOf } from '../support/aging.ts'
import { type Client, cart, keys } from '../support/client.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { sectionOf } from '../support/markdown.ts'
import { deliver, notification, providerObject } from '../support/notifications.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { activeRun, finalize, makeRunDue, use } from '../support/runs.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { type ServiceProcess, startServiceProcess } from '../support/service-process.ts'
import { until } from '../support/until.ts'

const root = join(import.meta.dirname, '../..')
const page = readFileSync(join(root, 'docs/security.md'), 'utf8')
const [, grants = ''] = /```sql\n(.*?)```/s.exec(sectionOf(page, 'The database user')) ?? []

/** Roles are those of the whole server, which other tests use too. */
const role = `app_${randomBytes(6).toString('hex')}`

let database: TestDatabase
let scene: Scene
let merchant: Receiver
let service: ServiceProcess
let shop: Client
let backend: Client
let admin: Client
beforeAll(async () => {
  database = await createTestDatabase()
  // Seeds the demo as the owner; what follows is done by the other user's process.
  scene = await startScene({ databaseUrl: database.url })
  merchant = await startReceiver()
  await administer(database.url, grants.replaceAll('checkout_app', role).replace('choose one', 'secret'))
  const url = new URL(database.url)
  url.username = role
  url.password = 'secret'
  service = await startServiceProcess(
    scene.env({
      DATABASE_URL: url.href,
      SEED_DEMO: 'false',
      ROLES: 'api,worker',
      LOG_LEVEL: 'info',
      MERCHANT_WEBHOOK_ALLOW_PRIVATE: 'true',
      RECONCILE_AFTER_MS: '100',
      SWEEP_INTERVAL_MS: '50',
      IDEMPOTENCY_RETENTION_HOURS: '0',
      RECORDS_RETENTION_DAYS: '0',
    }),
  )
  shop = service.shop
  backend = shop.withKey(keys.backend)
  admin = shop.withKey(keys.admin)
})
afterAll(async () => {
  await service.stop()
  await administer(database.url, `drop owned by ${role}; drop role ${role}`)
  await scene.stop()
  await merchant.stop()
  await database.drop()
})

describe('the database user of the service', () => {
  it('may do everything that the service does, from a checkout to an erasure', async () => {
    const get = async (status: number, reply: Promise<{ status: number; text: string; json: { id: string } }>) => {
      const { status: got, text, json } = await reply
      expect([got, text]).toEqual([status, expect.anything()])
      return json
    }
    const order = async (status: number, more: Record<string, unknown> = {}) => {
      const key = newKey()
      const reply = await shop.checkout(key, cart({ cart_id: key, ...more }))
      expect([reply.status, reply.text]).toEqual([status, expect.anything()])
      return { key, id: reply.json.id as string, json: reply.json }
    }
    const mug = { name: 'Mug', unit_price: 1250, currency: 'EUR', available: 1000 }
    await get(200, backend.put('/v1/products/mug', mug))
    await get(200, backend.put('/v1/meters/pages', { price: 1, per: 1, currency: 'EUR' }))
    await get(200, backend.put('/v1/webhook-endpoint', { url: merchant.url }))

    const paid = await order(201, {
      shipping_address: { line1: 'A 1', city: 'B', country: 'DE' },
      metadata: { a: 'b' },
    })
    await order(402, { payment_method: 'pm_card_chargeDeclined' })
    await order(409, { items: [{ sku: 'mug', quantity: 5000 }] })
    const waiting = await order(202, { payment_method: 'pm_card_threeDSecure2Required' })
    await get(200, shop.post(`/v1/checkouts/${waiting.key}/cancel`))
    const held = await order(201, { capture: 'manual' })
    await get(200, backend.post(`/v1/orders/${held.id}/capture`, { amount: 500 }))
    const letGo = await order(201, { capture: 'manual' })
    await get(200, backend.post(`/v1/orders/${letGo.id}/cancel`))
    await get(
      201,
      backend.post(`/v1/orders/${paid.id}/refunds`, { amount: 100, reason: 'x' }, { 'idempotency-key': newKey() }),
    )
    const run = await activeRun(backend)
    await get(201, use(backend, run, 'input_tokens', 1_000_000))
    await get(200, finalize(backend, run))
    const expired = await activeRun(backend)
    await makeRunDue(scene.db, expired)

    await scene.books.fault({ method: 'POST', path: '/v1/payment_intents', fault: 'error_after', times: 1 })
    const unclear = newKey()
    // Its notification may be faster than its answer.
    expect([201, 202]).toContain((await shop.checkout(unclear)).status)
    await scene.books.fault({ method: 'POST', path: '/v1/refunds', fault: 'drop_after', times: 10 })
    await backend.post(`/v1/orders/${paid.id}/refunds`, { amount: 50 }, { 'idempotency-key': newKey() })
    await scene.books.noFaults()
    await until(async () => (await orderOf(scene.db, unclear)).status === 'paid', { what: 'recovery' })
    const disputed = await order(201, { payment_method: 'pm_card_createDispute' })
    await until(async () => (await orderOf(scene.db, disputed.key)).disputed, { what: 'the dispute' })
    const payment = await providerObject(scene, `payment_intents/${paid.json.payment.reference}`)
    const foreign = notification('payment_intent.succeeded', { ...payment, metadata: {}, id: 'pi_of_nobody' })
    await get(200, deliver(service.url, foreign))

    await get(200, admin.post(`/v1/admin/orders/${paid.id}/reconcile`))
    const period = { from: new Date(Date.now() - 3_600_000).toISOString(), to: new Date().toISOString() }
    await get(202, admin.post('/v1/admin/reports', period))
    await get(200, backend.delete(`/v1/customers/${paid.json.customer_id}/personal-data`))
    await get(204, backend.delete('/v1/webhook-endpoint'))

    const left = () =>
      sql<{ jobs: number; reports: number; runs: number; refunds: number }>`SELECT
        (SELECT count(*) FROM jobs WHERE state = 'ready' AND topic <> 'deliver_event') AS jobs,
        (SELECT count(*) FROM reports) AS reports, (SELECT count(*) FROM runs WHERE finished_at IS NULL) AS runs,
        (SELECT count(*) FROM refunds WHERE status = 'pending') AS refunds`.execute(scene.db)
    await until(
      async () => {
        // What is swept in weeks and days is swept now.
        await sql`UPDATE jobs SET finished_at = finished_at - interval '8 days' WHERE state <> 'ready'`.execute(
          scene.db,
        )
        await sql`UPDATE merchant_events SET created_at = created_at - interval '46 days'`.execute(scene.db)
        await sql`UPDATE provider_events SET received_at = received_at - interval '46 days'
          WHERE state <> 'waiting'`.execute(scene.db)
        return Object.values((await left()).rows[0] ?? {}).every((count) => count === 0)
      },
      { what: 'the workers to have nothing left to do' },
    )
    const denied = service.log.filter((line) => line.includes('permission denied') || line.includes('42501'))
    expect(denied).toEqual([])
    expect(service.log.filter((line) => line.includes('"level":50'))).toEqual([])
  })

  it('may write what some statement writes, and nothing else', async () => {
    const { rows } = await sql<{ table: string; verb: string }>`
      SELECT DISTINCT table_name AS table, privilege_type AS verb FROM information_schema.column_privileges
        WHERE grantee = ${role} AND privilege_type IN ('INSERT', 'UPDATE')
      UNION SELECT table_name, privilege_type FROM information_schema.table_privileges
        WHERE grantee = ${role} AND privilege_type = 'DELETE'`.execute(scene.db)
    const granted = rows.map(({ table, verb }) => `${verb} ${table}`).sort()
    // Those who serve make no tenants and no keys: the command line does, as the owner.
    const byOthers = ['INSERT tenants', 'INSERT api_keys', 'UPDATE api_keys']
    const needed = [...writesOfTheCode()].filter((each) => !byOthers.includes(each)).sort()
    expect(granted).toEqual(needed)
  })

  it('cannot change the ledger, nor make itself a key', async () => {
    const asRole = new URL(database.url)
    asRole.username = role
    asRole.password = 'secret'
    for (const statement of [
      'UPDATE ledger_transfers SET amount = amount + 1',
      'DELETE FROM ledger_transfers',
      'DELETE FROM orders',
      'UPDATE order_transitions SET to_status = from_status',
      "UPDATE audit_entries SET actor = 'somebody'",
      "UPDATE merchant_events SET body = ''",
      "INSERT INTO api_keys (key_hash, tenant_id, role, label) VALUES ('x', 'ten_demo', 'admin', 'x')",
      'CREATE TABLE mine (id int)',
      'TRUNCATE jobs',
    ]) {
      await expect(administer(asRole.href, statement), statement).rejects.toThrow(/permission denied/)
    }
  })
})

/** `INSERT orders`, `UPDATE orders`, … as written in the store and in the functions of the database. A row lock counts as an
 * update: it needs the right to one. */
function writesOfTheCode(): Set<string> {
  const stores = readdirSync(join(root, 'src/store')).map((name) => readFileSync(join(root, 'src/store', name), 'utf8'))
  const functions = readdirSync(join(root, 'migrations')).flatMap((name) => [
    ...(readFileSync(join(root, 'migrations', name), 'utf8').match(/CREATE (OR REPLACE )?FUNCTION.*?\n\$\$;/gs) ?? []),
  ])
  const writes = new Set<string>()
  for (const source of [...stores, ...functions]) {
    for (const [, table] of source.matchAll(/insertInto\('(\w+)'\)/g)) writes.add(`INSERT ${table}`)
    for (const [, table] of source.matchAll(/updateTable\('(\w+)/g)) writes.add(`UPDATE ${table}`)
    for (const [, table] of source.matchAll(/deleteFrom\('(\w+)'\)/g)) writes.add(`DELETE ${table}`)
    for (const [, table] of source.matchAll(/\bINSERT INTO (\w+)/g)) writes.add(`INSERT ${table}`)
    for (const [, table] of source.matchAll(/^\W*UPDATE ([a-z_]+)/gm)) writes.add(`UPDATE ${table}`)
    for (const [, table] of source.matchAll(/\bDELETE FROM (\w+)/g)) writes.add(`DELETE ${table}`)
    // An upsert.
    for (const [insert] of source.matchAll(/insertInto\('\w+'\)(?:(?!insertInto)[^;])*?doUpdateSet/g)) {
      const [, table] = /insertInto\('(\w+)'\)/.exec(insert) ?? []
      writes.add(`UPDATE ${table}`)
    }
  }
  for (const table of ['provider_calls', 'merchant_events', 'report_findings']) writes.add(`UPDATE ${table}`)
  return writes
}
