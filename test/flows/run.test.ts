import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { recoverOrders } from '../../src/workers/recover-orders.ts'
import { endLease, endSending, makeDue } from '../support/aging.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import { cart, keys } from '../support/client.ts'
import { hold, startRun } from '../support/runs.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { until } from '../support/until.ts'

let scene: Scene
beforeAll(async () => {
  scene = await startScene({ settings: { PROVIDER_TIMEOUT_MS: '500', CHECKOUT_BUDGET_MS: '1500' } })
})
afterEach(async () => {
  await scene.books.noFaults()
  await expectBooksInOrder(scene)
})
afterAll(() => scene.stop())

describe('a hold for a run', () => {
  it('is placed once: the run is active, nothing is captured, and a repeat gets the same bytes', async () => {
    const key = newKey()
    const first = await startRun(scene.backend, key)
    expect(first.status).toBe(201)
    expect(first.json).toEqual({
      id: expect.stringMatching(/^run_[0-9a-z]{26}$/),
      object: 'run',
      status: 'active',
      order_id: expect.stringMatching(/^ord_[0-9a-z]{26}$/),
      currency: 'EUR',
      hold_amount: 1000,
      used_amount: 0,
      captured: 0,
      usage: [],
      created_at: expect.any(String),
    })
    expect(first.headers.get('location')).toBe(`/v1/runs/${first.json.id}`)
    const repeat = await startRun(scene.backend, key)
    expect([repeat.status, repeat.text, repeat.replayed]).toEqual([201, first.text, true])
    expect(repeat.headers.get('location')).toBe(`/v1/runs/${first.json.id}`)
    expect(await scene.books.paymentsFor(key)).toMatchObject([
      { status: 'requires_capture', amount: 1000, amount_capturable: 1000, amount_received: 0, requests: 1 },
    ])
  })

  it('is read as it is, and is an order of its own', async () => {
    const { json } = await startRun(scene.backend, newKey())
    expect((await scene.backend.get(`/v1/runs/${json.id}`)).json).toEqual(json)
    const order = await scene.backend.get(`/v1/orders/${json.order_id}`)
    expect(order.json).toMatchObject({ id: json.order_id, status: 'authorized', total: 1000, captured: 0, lines: [] })
  })

  it('is placed once by 30 equal requests at once over two services', async () => {
    const other = await scene.start()
    const key = newKey()
    const clients = [scene.backend, scene.backend.at(other.url)]
    const replies = await Promise.all(
      Array.from({ length: 30 }, (_, i) => startRun(clients[i % 2] as typeof scene.backend, key)),
    )
    expect(new Set(replies.map((reply) => `${reply.status} ${reply.text}`)).size).toBe(1)
    expect(replies[0]?.status).toBe(201)
    expect(replies.filter((reply) => !reply.replayed)).toHaveLength(1)
    expect(await scene.books.paymentsFor(key)).toMatchObject([{ status: 'requires_capture', requests: 1 }])
  })

  it.each([
    ['a declined card', 'pm_card_chargeDeclinedInsufficientFunds', 'insufficient_funds'],
    [
      'a card that demands 3-D Secure of a customer who is not there',
      'pm_card_threeDSecure2Required',
      'authentication_required',
    ],
  ])('for %s is declined', async (_what, payment_method, decline_code) => {
    const key = newKey()
    const first = await startRun(scene.backend, key, hold({ payment_method }))
    expect(first.status).toBe(402)
    expect(first.json).toMatchObject({ code: 'card_declined', decline_code, new_key_safe: true })
    expect(first.json.run_id.slice(4)).toBe(first.json.order_id.slice(4))
    const repeat = await startRun(scene.backend, key, hold({ payment_method }))
    expect([repeat.status, repeat.text, repeat.replayed]).toEqual([402, first.text, true])
    expect((await scene.backend.get(`/v1/runs/${first.json.run_id}`)).json).toMatchObject({
      status: 'failed',
      captured: 0,
    })
    expect(await scene.books.paymentsFor(key)).toMatchObject([{ amount_received: 0, amount_capturable: 0 }])
  })

  it('with a payment method that nobody knows is refused for good', async () => {
    const reply = await startRun(scene.backend, newKey(), hold({ payment_method: 'pm_unknown' }))
    expect([reply.status, reply.json.code, reply.json.new_key_safe]).toEqual([402, 'payment_method_invalid', true])
  })

  it.each([
    ['below the minimum', 49, 'EUR', 'amount_not_chargeable'],
    ['of nothing', 0, 'EUR', 'amount_not_chargeable'],
    ['off the step', 1001, 'KWD', 'amount_not_chargeable'],
    ['in no currency', 1000, 'XXX', 'amount_not_chargeable'],
  ])('%s is refused before anything is stored', async (_what, hold_amount, currency, code) => {
    const key = newKey()
    const refused = await startRun(scene.backend, key, hold({ hold_amount, currency }))
    expect([refused.status, refused.json.code, refused.json.new_key_safe]).toEqual([422, code, true])
    expect((await startRun(scene.backend, key)).status).toBe(201)
  })

  it('needs a key and the whole body, and a backend', async () => {
    const noKey = await scene.backend.post('/v1/runs', hold())
    expect([noKey.status, noKey.json.code]).toEqual([400, 'idempotency_key_missing'])
    for (const body of [hold({ hold_amount: '5' }), hold({ items: [] }), hold({ currency: undefined })]) {
      const reply = await startRun(scene.backend, newKey(), body)
      expect([reply.status, reply.json.code, reply.json.new_key_safe]).toEqual([400, 'invalid_request', true])
    }
    expect((await startRun(scene.shop, newKey())).status).toBe(403)
    expect((await startRun(scene.admin, newKey())).status).toBe(403)
  })

  it('shares its keys with checkouts: neither can be used for the other, nor looked up or canceled as one', async () => {
    const key = newKey()
    const run = await startRun(scene.backend, key)
    const checkout = await scene.backend.checkout(key)
    expect([checkout.status, checkout.json.code]).toEqual([409, 'idempotency_key_conflict'])
    expect(checkout.json.differing).toContain('path')
    const malformed = await scene.backend.checkout(key, cart({ items: [] }))
    expect([malformed.status, malformed.json.new_key_safe]).toEqual([400, false])
    expect((await scene.backend.get(`/v1/checkouts/${key}`)).status).toBe(404)
    expect((await scene.backend.post(`/v1/checkouts/${key}/cancel`)).status).toBe(404)
    expect((await scene.backend.get(`/v1/runs/${run.json.id}`)).json.status).toBe('active')

    const cartKey = newKey()
    await scene.backend.checkout(cartKey)
    const other = await startRun(scene.backend, cartKey)
    expect([other.status, other.json.code]).toEqual([409, 'idempotency_key_conflict'])
  })

  it('with the same key and another amount is a conflict that names the field', async () => {
    const key = newKey()
    await startRun(scene.backend, key)
    const other = await startRun(scene.backend, key, hold({ hold_amount: 1001 }))
    expect([other.status, other.json.code, other.json.differing]).toEqual([
      409,
      'idempotency_key_conflict',
      ['hold_amount'],
    ])
  })

  it('is never placed again, also where its stored answer is gone', async () => {
    const key = newKey()
    const { json } = await startRun(scene.backend, key)
    await scene.db
      .updateTable('attempts')
      .set({ digest: null, digest_tags: null, response_status: null, response_body: null, swept_at: new Date() })
      .where('key', '=', key)
      .execute()
    const later = scene.backend.at((await scene.start()).url)
    const late = await startRun(later, key)
    expect(late.status).toBe(409)
    expect(late.json).toMatchObject({
      code: 'idempotency_key_expired',
      run_id: json.id,
      order_id: json.order_id,
      new_key_safe: false,
    })
    expect(await scene.books.paymentsFor(key)).toHaveLength(1)
  })

  it('is known to its own tenant alone', async () => {
    const key = newKey()
    const { json } = await startRun(scene.backend, key)
    const other = scene.backend.withKey(keys.otherBackend)
    expect((await other.get(`/v1/runs/${json.id}`)).status).toBe(404)
    expect((await startRun(other, key)).json.id).not.toBe(json.id)
    expect((await scene.backend.get(`/v1/runs/${json.order_id}`)).status).toBe(404)
    expect((await scene.backend.get('/v1/runs/run_none')).status).toBe(404)
    const checkout = await scene.shop.checkout(newKey())
    expect((await scene.backend.get(`/v1/runs/${checkout.json.id.replace('ord', 'run')}`)).status).toBe(404)
  })
})

describe('a hold whose answer is lost', () => {
  it('is asked for again with the same identity', async () => {
    const key = newKey()
    await scene.books.fault({ method: 'POST', path: '/v1/payment_intents', fault: 'drop_after', times: 1 })
    expect((await startRun(scene.backend, key)).status).toBe(201)
    expect(await scene.books.paymentsFor(key)).toMatchObject([{ status: 'requires_capture', requests: 2 }])
  })

  it('by an answer that the provider keeps as an error is in doubt, and recovery finds the hold', async () => {
    const key = newKey()
    await scene.books.fault({ method: 'POST', path: '/v1/payment_intents', fault: 'error_after', times: 1 })
    const first = await startRun(scene.backend, key)
    expect([first.status, first.json.status, first.json.object]).toEqual([202, 'pending', 'run'])
    expect(first.headers.get('retry-after')).not.toBeNull()
    await until(
      async () => {
        await makeDue(scene.db, key)
        await recoverOrders(scene.service.deps)
        return (await scene.backend.get(`/v1/runs/${first.json.id}`)).json.status === 'active'
      },
      { what: 'recovery to find the hold' },
    )
    const repeat = await startRun(scene.backend, key)
    expect([repeat.status, repeat.json.id, repeat.json.status]).toEqual([201, first.json.id, 'active'])
    expect(await scene.books.paymentsFor(key)).toMatchObject([{ status: 'requires_capture' }])
  })

  it('while the provider is silent is settled by the next repeat', async () => {
    const key = newKey()
    await scene.books.fault({ method: 'POST', path: '/v1/payment_intents', fault: 'hang' })
    const first = await startRun(scene.backend, key)
    expect([first.status, first.json.status]).toEqual([202, 'pending'])
    await scene.books.noFaults()
    await makeDue(scene.db, key)
    const repeat = await until(
      async () => {
        const reply = await startRun(scene.backend, key)
        await makeDue(scene.db, key)
        return reply.status === 201 && reply
      },
      { what: 'the hold to be placed' },
    )
    expect(repeat.json).toMatchObject({ id: first.json.id, status: 'active' })
    expect(await scene.books.paymentsFor(key)).toHaveLength(1)
  })

  it('and that surely was not sent stays free of any effect until the same key comes again', async () => {
    const key = newKey()
    await scene.books.fault({ method: 'POST', path: '/v1/payment_intents', fault: 'rate_limit' })
    const first = await startRun(scene.backend, key)
    expect([first.status, first.json.code, first.json.new_key_safe]).toEqual([503, 'provider_unavailable', false])
    expect(await scene.books.paymentsFor(key)).toEqual([])
    await scene.books.noFaults()
    expect((await startRun(scene.backend, key)).status).toBe(201)
  })

  it('and never arrived is canceled in the end, and the key says so for good', async () => {
    const key = newKey()
    await scene.books.fault({ method: 'POST', path: '/v1/payment_intents', fault: 'error_before' })
    const first = await startRun(scene.backend, key)
    expect(first.status).toBe(202)
    await endLease(scene.db, key)
    await endSending(scene.db, key)
    await scene.db.updateTable('orders').set({ send_is_pointless: true }).where('attempt_key', '=', key).execute()
    await recoverOrders(scene.service.deps)
    const repeat = await startRun(scene.backend, key)
    expect(repeat.status).toBe(409)
    expect(repeat.json).toMatchObject({ code: 'run_closed', run_id: first.json.id, new_key_safe: true })
    expect((await scene.backend.get(`/v1/runs/${first.json.id}`)).json.status).toBe('canceled')
    expect(await scene.books.paymentsFor(key)).toEqual([])
  })
})
