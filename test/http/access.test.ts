/** Who may call what: read from the contract, so that a new route is held to it too. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { type Client, keys } from '../support/client.ts'
import { deliver, notification, providerObject } from '../support/notifications.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { activeRun } from '../support/runs.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'

interface Operation {
  method: string
  path: string
  roles: string[]
  body: unknown
}

const operations = operationsOf(readFileSync(join(import.meta.dirname, '../../openapi.yaml'), 'utf8'))
const roles = ['storefront', 'backend', 'admin'] as const

let scene: Scene
let merchant: Receiver
/** Keys of another tenant, by role. */
let intruder: Record<(typeof roles)[number], Client>
/** What the demo tenant has, by the part of a path that names it. */
const victims: Record<string, string> = {}

beforeAll(async () => {
  merchant = await startReceiver()
  scene = await startScene({ settings: { MERCHANT_WEBHOOK_ALLOW_PRIVATE: 'true' } })
  const key_hash = createHash('sha256').update('ak_other').digest()
  const key = { key_hash, tenant_id: 'ten_other', role: 'admin' as const, label: 'other', revoked_at: null }
  await scene.db.insertInto('api_keys').values(key).execute()
  intruder = {
    storefront: scene.shop.withKey(keys.otherStorefront),
    backend: scene.shop.withKey(keys.otherBackend),
    admin: scene.shop.withKey('ak_other'),
  }

  await scene.backend.put('/v1/webhook-endpoint', { url: merchant.url })
  await scene.backend.put('/v1/products/secret', { name: 'x', unit_price: 100, currency: 'EUR', available: 10 })
  await scene.backend.put('/v1/meters/secret', { price: 1, per: 1, currency: 'EUR' })
  const attemptKey = newKey()
  const { json: order } = await scene.shop.checkout(attemptKey)
  const { json: held } = await scene.shop.post(
    '/v1/checkouts',
    {
      items: [{ sku: 'mug', quantity: 1 }],
      customer: { email: 'a@b.de' },
      payment_method: 'pm_card_visa',
      capture: 'manual',
    },
    { 'idempotency-key': newKey() },
  )
  const refundKey = { 'idempotency-key': newKey() }
  const { json: refund } = await scene.backend.post(`/v1/orders/${order.id}/refunds`, { amount: 10 }, refundKey)
  const payment = await providerObject(scene, `payment_intents/${order.payment.reference}`)
  const event = notification('payment_intent.succeeded', payment)
  await deliver(scene.service.url, event)
  await runJobs(scene.service.deps)
  const period = { from: new Date(Date.now() - 60_000).toISOString(), to: new Date().toISOString() }
  const { json: report } = await scene.admin.post('/v1/admin/reports', period)
  await runJobs(scene.service.deps)
  const news = await scene.db
    .selectFrom('merchant_events')
    .selectAll()
    .where('order_id', '=', order.id)
    .executeTakeFirstOrThrow()
  Object.assign(victims, {
    checkouts: attemptKey,
    products: 'secret',
    meters: 'secret',
    orders: held.id,
    refunds: refund.id,
    runs: await activeRun(scene.backend),
    customers: order.customer_id,
    events: event.id,
    jobs: `deliver_event:${news.event_id}`,
    emails: `${order.id}:paid`,
    'merchant-events': news.event_id,
    reports: report.id,
  })
})
afterAll(async () => {
  await scene.stop()
  await merchant.stop()
})

const named = (path: string) =>
  path.replace(/([a-z-]+)\/\{\w+\}/, (_, part: string) => `${part}/${encodeURIComponent(victims[part] ?? '')}`)

function call(client: Client, { method, path, body }: Operation) {
  return client.send(method, named(path), body, method === 'POST' ? { 'idempotency-key': newKey() } : {})
}

/** Of everything that the demo tenant has. */
async function fingerprint(): Promise<string> {
  const { rows } = await sql<{ name: string }>`SELECT table_name AS name FROM information_schema.columns
    WHERE table_schema = 'public' AND column_name = 'tenant_id' ORDER BY 1`.execute(scene.db)
  const hashes = []
  for (const { name } of rows) {
    const { rows } = await sql<{
      hash: string
    }>`SELECT coalesce(md5(string_agg(t::text, '' ORDER BY t::text)), '') AS hash
      FROM ${sql.table(name)} t WHERE tenant_id = 'ten_demo'`.execute(scene.db)
    hashes.push(`${name} ${rows[0]?.hash}`)
  }
  return hashes.join('\n')
}

describe.each(operations)('$method $path', (operation) => {
  it('is for those with a key of the right role alone', async () => {
    // Bytes that look like a key are none: an added space, other letters of the same shape, another case.
    for (const key of ['none', '', `${keys.admin}%20`, encodeURI('\u0430k_test_demo'), keys.admin.toUpperCase()]) {
      const headers = { authorization: `Bearer ${key}` }
      const reply = await scene.shop.send(operation.method, named(operation.path), operation.body, headers)
      expect([key, reply.status, reply.json.code]).toEqual([key, 401, 'unauthorized'])
    }
    for (const role of roles.filter((each) => !operation.roles.includes(each))) {
      const reply = await call(scene.shop.withKey(keys[role]), operation)
      expect([role, reply.status, reply.json.code]).toEqual([role, 403, 'forbidden'])
    }
  })
})

describe('another tenant', () => {
  it('finds nothing of ours by its name, and changes nothing', async () => {
    const before = await fingerprint()
    const makesItsOwn = ['PUT /v1/products/{sku}', 'PUT /v1/meters/{type}']
    const named = operations.filter(({ path }) => path.includes('{'))
    expect(named.length).toBeGreaterThan(20)
    for (const operation of named) {
      if (makesItsOwn.includes(`${operation.method} ${operation.path}`)) continue
      for (const role of operation.roles as (typeof roles)[number][]) {
        const reply = await call(intruder[role], operation)
        expect([operation.method, operation.path, reply.status]).toEqual([operation.method, operation.path, 404])
      }
    }
    await intruder.backend.put('/v1/products/secret', { name: 'y', unit_price: 1, currency: 'EUR', available: 0 })
    await intruder.backend.put('/v1/meters/secret', { price: 9, per: 1, currency: 'EUR' })
    expect(await fingerprint()).toBe(before)
  })

  it('sees nothing of ours in any list', async () => {
    for (const operation of operations.filter(({ method, path }) => method === 'GET' && !path.includes('{'))) {
      for (const role of operation.roles as (typeof roles)[number][]) {
        const { status, text } = await call(intruder[role], operation)
        const seen = Object.values(victims).filter((id) => id !== 'secret' && text.includes(id))
        expect([operation.path, seen]).toEqual([operation.path, []])
        expect([operation.path, status]).toEqual([
          operation.path,
          expect.toSatisfy((code) => code === 200 || code === 404),
        ])
      }
    }
  })
})

function operationsOf(contract: string): Operation[] {
  const { paths } = parse(contract) as {
    paths: Record<string, Record<string, { security?: Record<string, unknown>[]; requestBody?: RequestBody }>>
  }
  return Object.entries(paths)
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { security = [], requestBody }]) => ({
        method: method.toUpperCase(),
        path,
        roles: security.flatMap((each) => Object.keys(each)),
        body: exampleOf(requestBody),
      })),
    )
    .filter(({ roles }) => roles.length > 0)
}

interface RequestBody {
  content: Record<string, { examples?: Record<string, { value: unknown }> }>
}

function exampleOf(body: RequestBody | undefined): unknown {
  return Object.values(body?.content['application/json']?.examples ?? {})[0]?.value
}
