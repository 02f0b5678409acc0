/** What a customer's next try finds: after a lost answer, a decline, a refusal, a provider that was not reached. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { makeDue } from '../support/aging.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import { cart } from '../support/client.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'

const charges = { method: 'POST', path: '/v1/payment_intents' } as const

let scene: Scene
beforeAll(async () => {
  scene = await startScene({
    settings: { PROVIDER_TIMEOUT_MS: '900', CHECKOUT_BUDGET_MS: '3000', RECONCILE_AFTER_MS: '50' },
  })
})
afterEach(async () => {
  await scene.books.noFaults()
  await expectBooksInOrder(scene, { stock: { ...restocked } })
})
afterAll(() => scene.stop())
const restocked: Record<string, number> = {}

describe('after an answer of the provider that was lost', () => {
  it('the repeat from elsewhere sends the same provider key and parameters, and nothing of the client', async () => {
    const key = newKey()
    await scene.books.fault({ ...charges, fault: 'hang' })
    const first = await scene.shop.checkout(key, cart(), { 'user-agent': 'phone', 'x-forwarded-for': '198.51.100.7' })
    expect([first.status, first.json.status]).toEqual([202, 'needs_reconcile'])
    expect(Number(first.headers.get('retry-after'))).toBeGreaterThan(0)
    await scene.books.noFaults()
    await makeDue(scene.db, key)

    const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const repeat = await scene.shop.checkout(key, cart(), {
      'user-agent': 'laptop',
      'x-forwarded-for': '203.0.113.9',
      'accept-language': 'de',
      traceparent: trace,
    })
    expect([repeat.status, repeat.json.status, repeat.json.id]).toEqual([201, 'paid', first.json.id])

    const seen = await scene.books.chargesSeen(key)
    expect(seen.length).toBeGreaterThan(1)
    expect(new Set(seen.map((each) => each.idempotency_key))).toEqual(new Set([`ten_demo:${key}`]))
    expect(new Set(seen.map((each) => JSON.stringify(each.params))).size).toBe(1)
    expect(JSON.stringify(seen)).not.toMatch(/198\.51|203\.0\.113|phone|laptop|ada@example/)
    // Whose trace it is, is nothing to the provider.
    expect(JSON.stringify(seen)).not.toContain('0af7651916cd43dd8448eb211c80319c')
    expect(await scene.books.paymentsFor(key)).toMatchObject([{ status: 'succeeded' }])
  })

  it('the price of that time is charged, whatever the catalog says since', async () => {
    const key = newKey()
    const product = { name: 'Volatile', unit_price: 1000, currency: 'EUR', available: 10 }
    restocked.volatile = 10
    await scene.backend.put('/v1/products/volatile', product)
    const body = cart({ items: [{ sku: 'volatile', quantity: 2 }] })
    await scene.books.fault({ ...charges, fault: 'drop_before' })
    expect((await scene.shop.checkout(key, body)).status).toBe(202)
    await scene.books.noFaults()
    await scene.backend.put('/v1/products/volatile', { ...product, unit_price: 9999, name: 'Renamed', available: 8 })
    await makeDue(scene.db, key)
    const repeat = await scene.shop.checkout(key, body)
    expect(repeat.json).toMatchObject({
      status: 'paid',
      total: 2000,
      lines: [{ name: 'Volatile', unit_price: 1000, amount: 2000 }],
    })
    expect(await scene.books.paymentsFor(key)).toMatchObject([{ amount: 2000 }])
  })
})

describe('after a decline', () => {
  it('the same key replays it without the provider, another card under it conflicts, a new key pays', async () => {
    const [key, second] = [newKey(), newKey()]
    const before = await stock('tee')
    const body = cart({ items: [{ sku: 'tee', quantity: 2 }], payment_method: 'pm_card_chargeDeclined', cart_id: key })
    const declined = await scene.shop.checkout(key, body)
    expect([declined.status, declined.json.code]).toEqual([402, 'card_declined'])
    const calls = (await scene.books.chargesSeen(key)).length

    const repeat = await scene.shop.checkout(key, body)
    expect([repeat.status, repeat.replayed, repeat.text]).toEqual([402, true, declined.text])
    expect(await scene.books.chargesSeen(key)).toHaveLength(calls)

    const otherCard = await scene.shop.checkout(key, { ...body, payment_method: 'pm_card_visa' })
    expect([otherCard.status, otherCard.json.code]).toEqual([409, 'idempotency_key_conflict'])
    expect(otherCard.json).toMatchObject({ differing: ['payment_method'], new_key_safe: false })
    expect(await scene.books.chargesSeen(key)).toHaveLength(calls)

    const paid = await scene.shop.checkout(second, { ...body, payment_method: 'pm_card_visa' })
    expect([paid.status, paid.json.status]).toEqual([201, 'paid'])
    expect(await stock('tee')).toBe(before - 2)
    const attempts = await scene.db.selectFrom('attempts').selectAll().where('key', 'in', [key, second]).execute()
    expect(attempts).toHaveLength(2)
    const charged = [...(await scene.books.paymentsFor(key)), ...(await scene.books.paymentsFor(second))]
    expect(charged.filter((payment) => payment.amount_received > 0)).toHaveLength(1)
  })

  it.each([
    ['pm_card_chargeDeclinedInsufficientFunds', 'card_declined', 'insufficient_funds'],
    ['pm_card_chargeDeclinedExpiredCard', 'card_declined', 'expired_card'],
    ['pm_card_chargeDeclinedProcessingError', 'card_declined', 'processing_error'],
    ['pm_card_chargeDeclinedFraudulent', 'card_declined', 'fraudulent'],
    ['pm_that_nobody_made', 'payment_method_invalid', 'resource_missing'],
  ])('%s: a 402 that says why, names the order and lets the next key go', async (method, code, declineCode) => {
    const key = newKey()
    const before = await stock('poster')
    const reply = await scene.shop.checkout(
      key,
      cart({ items: [{ sku: 'poster', quantity: 1 }], payment_method: method }),
    )
    expect(reply.status).toBe(402)
    expect(reply.headers.get('content-type')).toMatch(/^application\/problem\+json/)
    expect(reply.headers.get('location')).toBeNull()
    expect(reply.json).toMatchObject({
      code,
      decline_code: declineCode,
      new_key_safe: true,
      order_id: expect.stringMatching(/^ord_/),
    })
    expect(await stock('poster')).toBe(before)
    expect((await scene.shop.get(`/v1/checkouts/${key}`)).json).toMatchObject({
      state: 'settled',
      new_key_safe: true,
      order: { id: reply.json.order_id, status: 'payment_failed' },
    })
  })
})

describe('after a refusal', () => {
  it('out of stock leaves no attempt: restocked, the same key pays, and is never told that it is in progress', async () => {
    const key = newKey()
    restocked.gone = 0
    const product = { name: 'Gone', unit_price: 700, currency: 'EUR', available: 0 }
    await scene.backend.put('/v1/products/gone', product)
    const body = cart({ items: [{ sku: 'gone', quantity: 3 }], cart_id: key })
    for (let i = 0; i < 3; i++) {
      const refused = await scene.shop.checkout(key, body)
      expect([refused.status, refused.json.code, refused.replayed]).toEqual([409, 'out_of_stock', false])
      expect(refused.json).toMatchObject({ items: [{ sku: 'gone', requested: 3, available: 0 }], new_key_safe: true })
      expect((await scene.shop.get(`/v1/checkouts/${key}`)).status).toBe(404)
    }
    // Some, but not enough: this is found out under locks, after the attempt's row.
    await scene.backend.put('/v1/products/gone', { ...product, available: 2 })
    restocked.gone = 2
    expect((await scene.shop.checkout(key, body)).json).toMatchObject({
      code: 'out_of_stock',
      items: [{ available: 2 }],
    })
    expect((await scene.shop.get(`/v1/checkouts/${key}`)).status).toBe(404)
    await scene.backend.put('/v1/products/gone', { ...product, available: 3 })
    restocked.gone = 3
    const paid = await scene.shop.checkout(key, body)
    expect([paid.status, paid.json.status]).toEqual([201, 'paid'])
    expect(await stock('gone')).toBe(0)
  })

  it('every other refusal leaves the key free, also for another body', async () => {
    const key = newKey()
    await scene.backend.put('/v1/products/yen', { name: 'Yen', unit_price: 500, currency: 'JPY', available: 10 })
    await scene.backend.put('/v1/products/cheap', { name: 'Cheap', unit_price: 1, currency: 'EUR', available: 10 })
    Object.assign(restocked, { yen: 10, cheap: 10 })
    const refusals: [Record<string, unknown>, number, string][] = [
      [cart({ items: [{ sku: 'nothing', quantity: 1 }] }), 422, 'unknown_sku'],
      [
        cart({
          items: [
            { sku: 'mug', quantity: 1 },
            { sku: 'yen', quantity: 1 },
          ],
        }),
        422,
        'currency_mismatch',
      ],
      [cart({ currency: 'USD' }), 422, 'currency_mismatch'],
      [cart({ expected_total: 1 }), 409, 'price_changed'],
      [cart({ items: [{ sku: 'cheap', quantity: 1 }] }), 422, 'amount_not_chargeable'],
      [cart({ items: [{ sku: 'rare', quantity: 6 }] }), 409, 'out_of_stock'],
      [
        cart({
          items: [
            { sku: 'rare', quantity: 3 },
            { sku: 'mug', quantity: 1 },
            { sku: 'rare', quantity: 3 },
          ],
        }),
        409,
        'out_of_stock',
      ],
    ]
    for (const [body, status, code] of refusals) {
      const reply = await scene.shop.checkout(key, body)
      expect([reply.status, reply.json.code, reply.json.new_key_safe, reply.replayed]).toEqual([
        status,
        code,
        true,
        false,
      ])
    }
    expect((await scene.shop.get(`/v1/checkouts/${key}`)).status).toBe(404)
    expect((await scene.shop.checkout(key)).status).toBe(201)
  })
})

describe('where the provider was surely not reached', () => {
  it('nothing is charged, the answer is a 503, and the same key goes on later, at the price and with the stock of before', async () => {
    const key = newKey()
    const body = cart({ items: [{ sku: 'poster', quantity: 4 }], cart_id: key })
    const before = await stock('poster')
    await scene.books.fault({ ...charges, fault: 'rate_limit' })
    const limited = await scene.shop.checkout(key, body)
    expect([limited.status, limited.json.code, limited.json.new_key_safe]).toEqual([503, 'provider_unavailable', false])
    expect(Number(limited.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(await stock('poster')).toBe(before - 4)
    expect((await scene.shop.get(`/v1/checkouts/${key}`)).json).toMatchObject({
      state: 'open',
      new_key_safe: false,
      order: { status: 'pending', total: 3600 },
    })
    // Still limited: still nothing.
    expect((await scene.shop.checkout(key, body)).status).toBe(503)
    expect(await scene.books.paymentsFor(key)).toEqual([])
    await scene.books.noFaults()
    const paid = await scene.shop.checkout(key, body)
    expect([paid.status, paid.json.status, paid.json.total]).toEqual([201, 'paid', 3600])
    expect(await stock('poster')).toBe(before - 4)
  })
})

async function stock(sku: string): Promise<number> {
  return (await scene.shop.get(`/v1/products/${sku}`)).json.available
}
