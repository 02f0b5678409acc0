/** Claims and settles that go wrong in the database: a commit whose answer is lost, an item that poisons its group. */
import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { hashKeyForLog } from '../../src/domain/idempotency-key.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import { type Client, cart } from '../support/client.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { startProxy } from '../support/proxy.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { type ServiceProcess, startServiceProcess } from '../support/service-process.ts'
import type { TcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'

let database: TestDatabase
let proxy: TcpProxy
let scene: Scene
/** Reaches its database through the proxy. */
let far: ServiceProcess
let shop: Client
beforeAll(async () => {
  database = await createTestDatabase()
  proxy = await startProxy(database.url)
  scene = await startScene({ databaseUrl: database.url })
  far = await startServiceProcess(scene.env({ DATABASE_URL: proxy.through(database.url), LOG_LEVEL: 'debug' }))
  shop = far.shop
  expect((await shop.checkout(newKey())).status).toBe(201)
})
afterEach(() => expectBooksInOrder(scene))
afterAll(async () => {
  await far.stop()
  await scene.stop()
  await proxy.close()
  await database.drop()
})

describe('a commit whose answer is lost', () => {
  it.each(['claim_checkouts', 'settle_orders'])(
    'of %s is found again: one order, one charge, the answer as if nothing had been',
    async (statement) => {
      const key = newKey()
      const body = cart({ cart_id: `cart-${key}`, items: [{ sku: 'tee', quantity: 2 }] })
      const lost = proxy.loseAnswer(statement, 'SELECT 1')
      const reply = await shop.checkout(key, body)
      await lost
      expect([reply.status, reply.json.status, reply.replayed]).toEqual([201, 'paid', false])
      expect(reply.headers.get('location')).toBe(`/v1/orders/${reply.json.id}`)
      expect(await scene.books.paymentsFor(key)).toMatchObject([{ status: 'succeeded', requests: 1 }])
      const repeat = await shop.checkout(key, body)
      expect([repeat.text, repeat.replayed]).toEqual([reply.text, true])
      const rows = await scene.db.selectFrom('orders').select('order_id').where('attempt_key', '=', key).execute()
      expect(rows).toHaveLength(1)
      const calls = await scene.db
        .selectFrom('provider_calls')
        .select('call_id')
        .where('order_id', '=', reply.json.id)
        .execute()
      expect(calls).toHaveLength(1)
    },
  )

  it.each(['claim_checkouts', 'settle_orders'])(
    'of a whole group in %s is found again for each of its items',
    async (statement) => {
      const keys = Array.from({ length: 24 }, newKey)
      const lost = proxy.loseAnswer(statement, 'SELECT ')
      const replies = await Promise.all(keys.map((key) => shop.checkout(key)))
      await lost
      expect(replies.map((reply) => reply.status)).toEqual(keys.map(() => 201))
      for (const key of keys) expect(await scene.books.paymentsFor(key)).toMatchObject([{ requests: 1 }])
    },
  )

  it('of a decline that settled: the stock came back once', async () => {
    const key = newKey()
    const body = cart({ items: [{ sku: 'rare', quantity: 3 }], payment_method: 'pm_card_chargeDeclined' })
    const lost = proxy.loseAnswer('settle_orders', 'SELECT ')
    const reply = await shop.checkout(key, body)
    await lost
    expect([reply.status, reply.json.code]).toEqual([402, 'card_declined'])
    expect((await shop.get('/v1/products/rare')).json.available).toBe(5)
    expect((await shop.checkout(key, body)).text).toBe(reply.text)
  })
})

describe('an item that the database refuses', () => {
  it('fails alone: its neighbours in the group are sold, it leaves nothing, and the log says why without saying who', async () => {
    await sql`ALTER TABLE customers ADD CONSTRAINT no_poison CHECK (name <> 'Poison')`.execute(scene.db)
    const keys = Array.from({ length: 30 }, newKey)
    const replies = await Promise.all(
      keys.map((key, i) =>
        shop.checkout(
          key,
          cart({ customer: { email: `buyer${i}@example.com`, name: i % 10 === 3 ? 'Poison' : 'Good' } }),
        ),
      ),
    )
    await sql`ALTER TABLE customers DROP CONSTRAINT no_poison`.execute(scene.db)
    for (const [i, reply] of replies.entries()) {
      if (i % 10 !== 3) {
        expect(reply.status).toBe(201)
        continue
      }
      expect([reply.status, reply.json.code, reply.json.new_key_safe]).toEqual([500, 'internal', false])
      expect(reply.text).not.toMatch(/poison|constraint|customers/i)
      expect((await shop.get(`/v1/checkouts/${keys[i]}`)).status).toBe(404)
    }
    const errors = await until(() => {
      const found = far.log.filter((line) => JSON.parse(line).level >= 50)
      return found.length === 3 ? found : undefined
    })
    expect(errors.join('\n')).toMatch(/no_poison/)
    expect(errors.join('\n')).not.toMatch(/buyer\d+@example/)
  })
})

describe('the log', () => {
  it('never holds who bought, a key, an API key or a secret of a payment', async () => {
    const key = newKey()
    const body = cart({
      customer: { email: 'private@example.com', name: 'Private Person' },
      payment_method: 'pm_card_threeDSecure2Required',
      metadata: { note: 'private note' },
    })
    const reply = await shop.checkout(key, body)
    await shop.get(`/v1/checkouts/${key}`)
    await shop.checkout(key, { ...body, capture: 'manual' })
    await shop.checkout(key, { ...body, customer: { email: 'private' } })
    await shop.post(`/v1/checkouts/${key}/cancel`)
    await until(() => far.log.some((line) => JSON.parse(line).route === '/v1/checkouts/:key/cancel'))
    const log = far.log.join('\n')
    // What happened to one attempt can be found all the same.
    const named = far.log.map((line) => JSON.parse(line)).filter((line) => line.key_hash === hashKeyForLog(key))
    expect(named.map((line) => `${line.method} ${line.route} ${line.status}`)).toEqual([
      'POST /v1/checkouts 202',
      'GET /v1/checkouts/:key 200',
      'POST /v1/checkouts 409',
      'POST /v1/checkouts 400',
      'POST /v1/checkouts/:key/cancel 200',
    ])
    for (const secret of [
      'private@example',
      'Private Person',
      'private note',
      key,
      'pk_test_demo',
      reply.json.payment.client_secret,
    ]) {
      expect(log).not.toContain(secret)
    }
  })
})
