/** Every answer of `POST /checkouts`: status, headers, body, and what it says of a new key. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { expire, makeDue, orderOf } from '../support/aging.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import { cart, keys, type Reply } from '../support/client.ts'
import { createTestDatabase } from '../support/database.ts'
import { startProxy } from '../support/proxy.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { until } from '../support/until.ts'

const charges = { method: 'POST', path: '/v1/payment_intents' } as const

let scene: Scene
beforeAll(async () => {
  scene = await startScene({
    settings: { PROVIDER_TIMEOUT_MS: '900', CHECKOUT_BUDGET_MS: '3000', RECONCILE_AFTER_MS: '50' },
  })
})
afterEach(async () => {
  await scene.books.noFaults()
  await expectBooksInOrder(scene)
})
afterAll(() => scene.stop())

describe('201', () => {
  it('paid: the order, and where it is', async () => {
    const key = newKey()
    const reply = await scene.shop.checkout(
      key,
      cart({
        items: [
          { sku: 'mug', quantity: 2 },
          { sku: 'tee', quantity: 1 },
        ],
        currency: 'EUR',
        expected_total: 5000,
        metadata: { source: 'test' },
        shipping_address: { line1: 'Main Street 1', city: 'Town', country: 'DE' },
      }),
    )
    expect(reply.status).toBe(201)
    expect(reply.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(reply.headers.get('location')).toBe(`/v1/orders/${reply.json.id}`)
    expect(reply.headers.get('retry-after')).toBeNull()
    const [payment] = await scene.books.paymentsFor(key)
    expect(reply.json).toEqual({
      id: expect.stringMatching(/^ord_[0-9a-z]{26}$/),
      object: 'order',
      status: 'paid',
      currency: 'EUR',
      total: 5000,
      captured: 5000,
      refunded: 0,
      disputed: false,
      lines: [
        { sku: 'mug', name: 'Mug', quantity: 2, unit_price: 1250, amount: 2500 },
        { sku: 'tee', name: 'T-shirt', quantity: 1, unit_price: 2500, amount: 2500 },
      ],
      customer_id: expect.stringMatching(/^cus_[0-9a-z]{26}$/),
      payment: { provider: 'stripe', reference: payment?.id, status: 'succeeded' },
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      updated_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    })
    const shown = await scene.backend.get(reply.headers.get('location') as string)
    expect(shown.json).toEqual({
      ...reply.json,
      metadata: { source: 'test' },
      shipping_address: { line1: 'Main Street 1', city: 'Town', country: 'DE' },
    })
  })

  it('authorized: a hold of the whole amount, and until when', async () => {
    const key = newKey()
    const reply = await scene.shop.checkout(key, cart({ capture: 'manual' }))
    expect([reply.status, reply.headers.get('location')]).toEqual([201, `/v1/orders/${reply.json.id}`])
    expect(reply.json).toMatchObject({
      status: 'authorized',
      total: 1250,
      captured: 0,
      payment: { status: 'requires_capture', capture_before: expect.any(String) },
    })
    expect(await scene.books.paymentsFor(key)).toMatchObject([{ amount_capturable: 1250, amount_received: 0 }])
  })

  it('the same customer by email, whoever they are this time', async () => {
    const [one, two] = await Promise.all([
      scene.shop.checkout(newKey(), cart({ customer: { email: 'same@example.com' } })),
      scene.shop.checkout(newKey(), cart({ customer: { email: 'same@example.com', name: 'Other' } })),
    ])
    expect(two?.json.customer_id).toBe(one?.json.customer_id)
  })
})

describe('202', () => {
  it('requires_action: the secret for the browser, when to ask again, and nowhere else is the secret shown', async () => {
    const key = newKey()
    const body = cart({ payment_method: 'pm_card_threeDSecure2Required' })
    const reply = await scene.shop.checkout(key, body)
    expect(reply.status).toBe(202)
    expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(reply.headers.get('location')).toBeNull()
    const secret = reply.json.payment.client_secret
    expect(reply.json).toMatchObject({ status: 'requires_action', captured: 0, payment: { status: 'requires_action' } })
    expect(secret).toMatch(/^pi_\w+_secret_\w+$/)
    for (const elsewhere of [
      await scene.shop.get(`/v1/checkouts/${key}`),
      await scene.backend.get(`/v1/orders/${reply.json.id}`),
      await scene.backend.get('/v1/orders'),
    ]) {
      expect(elsewhere.status).toBe(200)
      expect(elsewhere.text).not.toContain(secret)
    }
    await scene.books.act(reply.json.payment.reference, 'succeed')
    await makeDue(scene.db, key)
    const paid = await scene.shop.checkout(key, body)
    expect([paid.status, paid.json.status, paid.text.includes('client_secret')]).toEqual([201, 'paid', false])
  })

  it.each(['hang', 'drop_after', 'error_after', 'error_before'] as const)(
    'needs_reconcile where the provider answers with %s on every try; driven on, it ends as the books say',
    async (fault) => {
      const key = newKey()
      await scene.books.fault({ ...charges, fault })
      const reply = await scene.shop.checkout(key)
      expect(reply.status).toBe(202)
      expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0)
      expect(reply.json).toMatchObject({ status: 'needs_reconcile', captured: 0, reconcile_reason: expect.any(String) })
      await scene.books.noFaults()
      if (fault === 'error_before') {
        // The key replays its failure for ever: nobody may send again, and nothing is there to be found.
        await until(async () => {
          await expire(scene.db, key)
          await scene.db
            .updateTable('orders')
            .set({ last_send_before: new Date(0) })
            .where('attempt_key', '=', key)
            .execute()
          const end = await scene.shop.checkout(key)
          return end.json.code === 'checkout_canceled'
        })
        expect(await scene.books.paymentsFor(key)).toEqual([])
        return
      }
      await until(async () => {
        await makeDue(scene.db, key)
        return (await scene.shop.checkout(key)).status === 201
      })
      expect(await scene.books.paymentsFor(key)).toMatchObject([{ amount_received: 1250 }])
    },
  )
})

describe('409', () => {
  it('price_changed, with both totals', async () => {
    const reply = await scene.shop.checkout(newKey(), cart({ expected_total: 1200 }))
    expectProblem(reply, 409, 'price_changed', true)
    expect(reply.json).toMatchObject({ expected_total: 1200, total: 1250, currency: 'EUR' })
  })

  it('cart_in_progress while another key waits for its customer; free again after a decline or a cancel', async () => {
    const cartId = `cart-${newKey()}`
    const waiting = newKey()
    const threeD = cart({ cart_id: cartId, payment_method: 'pm_card_threeDSecure2Required' })
    const first = await scene.shop.checkout(waiting, threeD)
    const refused = await scene.shop.checkout(newKey(), cart({ cart_id: cartId }))
    expectProblem(refused, 409, 'cart_in_progress', false)
    expect(refused.json).toMatchObject({ order_id: first.json.id, state: 'open' })
    // The same cart of another tenant is another cart.
    const elsewhere = await scene.shop.withKey(keys.otherStorefront).checkout(newKey(), cart({ cart_id: cartId }))
    expect(elsewhere.status).toBe(201)
    expect((await scene.shop.post(`/v1/checkouts/${waiting}/cancel`)).json.status).toBe('canceled')
    const declined = await scene.shop.checkout(
      newKey(),
      cart({ cart_id: cartId, payment_method: 'pm_card_chargeDeclined' }),
    )
    expect(declined.status).toBe(402)
    const paid = await scene.shop.checkout(newKey(), cart({ cart_id: cartId }))
    expect(paid.status).toBe(201)
    const late = await scene.shop.checkout(newKey(), cart({ cart_id: cartId }))
    expectProblem(late, 409, 'cart_already_paid', false)
    expect(late.json).toMatchObject({ order_id: paid.json.id, state: 'settled' })
    // Its own key still replays.
    expect((await scene.shop.checkout(waiting, threeD)).json.code).toBe('checkout_canceled')
  })

  it('checkout_canceled, stored and replayed, after the customer gave up and after expiry', async () => {
    for (const end of ['cancel', 'expire'] as const) {
      const key = newKey()
      const body = cart({ payment_method: 'pm_card_threeDSecure2Required' })
      const first = await scene.shop.checkout(key, body)
      if (end === 'cancel') await scene.shop.post(`/v1/checkouts/${key}/cancel`)
      else await expire(scene.db, key)
      const told = await scene.shop.checkout(key, body)
      expectProblem(told, 409, 'checkout_canceled', true)
      expect(told.json.order_id).toBe(first.json.id)
      const again = await scene.shop.checkout(key, body)
      expect([again.text, again.replayed]).toEqual([told.text, true])
      expect(await scene.books.paymentsFor(key)).toMatchObject([{ status: 'canceled' }])
    }
  })
})

describe('503', () => {
  it('provider surely not reached: refused connections, and credentials that the provider refuses', async () => {
    const provider = await startProxy(scene.simulatorUrl)
    const service = await scene.start({ STRIPE_API_BASE: provider.through(scene.simulatorUrl).replace(/\/$/, '') })
    const shop = scene.shop.at(service.url)
    // Who we are is known since then; a claim needs it.
    expect((await shop.checkout(newKey())).status).toBe(201)
    provider.refuse()
    provider.cutAll()
    const key = newKey()
    const refused = await shop.checkout(key)
    expectProblem(refused, 503, 'provider_unavailable', false)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await orderOf(scene.db, key)).status).toBe('pending')
    await provider.accept()
    const paid = await shop.checkout(key)
    expect([paid.status, paid.replayed]).toEqual([201, false])
    await service.stop()
    await provider.close()
  })

  it('a provider that has never told who we are: nothing is stored, and the service is there all the same', async () => {
    const provider = await startProxy(scene.simulatorUrl)
    provider.refuse()
    const service = await scene.start({ STRIPE_API_BASE: provider.through(scene.simulatorUrl).replace(/\/$/, '') })
    const shop = scene.shop.at(service.url)
    const key = newKey()
    expectProblem(await shop.checkout(key), 503, 'provider_unavailable', false)
    expect((await shop.get(`/v1/checkouts/${key}`)).status).toBe(404)
    expect((await shop.get('/v1/products/mug')).status).toBe(200)
    await service.stop()
    await provider.close()
  })

  it('database away: says so, is safe to repeat, and readiness tells it', async () => {
    const database = await createTestDatabase()
    const away = await startScene({ databaseUrl: database.url })
    const proxy = await startProxy(database.url)
    const service = await away.start({
      DATABASE_URL: proxy.through(database.url),
      // What is in memory needs no database.
      REPLAY_CACHE_SECONDS: '0',
    })
    const shop = away.shop.at(service.url)
    const key = newKey()
    const first = await shop.checkout(key)
    proxy.refuse()
    proxy.cutAll()
    for (const each of [key, newKey()]) {
      const reply = await shop.checkout(each)
      expectProblem(reply, 503, 'database_unavailable', false)
      expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0)
    }
    expect((await shop.get(`/v1/checkouts/${key}`)).status).toBe(503)
    expect([(await shop.get('/healthz')).status, (await shop.get('/readyz')).status]).toEqual([200, 503])
    await proxy.accept()
    expect((await shop.get('/readyz')).status).toBe(200)
    expect((await shop.checkout(key)).text).toBe(first.text)
    await expectBooksInOrder(away)
    await away.stop()
    await proxy.close()
    await database.drop()
  })
})

describe('401 and 403', () => {
  it('say what is missing, and whether the key has been used as far as that is known', async () => {
    const [used, unused] = [newKey(), newKey()]
    await scene.shop.checkout(used)
    expectProblem(await scene.shop.withKey('wrong').checkout(used), 401, 'unauthorized', false)
    expectProblem(await scene.admin.checkout(unused), 403, 'forbidden', true)
    expectProblem(await scene.admin.checkout(used), 403, 'forbidden', false)
    const declined = newKey()
    await scene.shop.checkout(declined, cart({ payment_method: 'pm_card_chargeDeclined' }))
    expectProblem(await scene.shop.checkout(declined, cart({ unknown: 1 })), 400, 'invalid_request', true)
  })
})

function expectProblem(reply: Reply, status: number, code: string, newKeySafe: boolean): void {
  expect({ status: reply.status, type: reply.headers.get('content-type'), body: reply.json }).toMatchObject({
    status,
    type: 'application/problem+json; charset=utf-8',
    body: {
      type: expect.any(String),
      title: expect.any(String),
      detail: expect.any(String),
      status,
      code,
      new_key_safe: newKeySafe,
    },
  })
  expect(reply.json.request_id).toMatch(/^req_/)
  expect(reply.headers.get('location')).toBeNull()
}
