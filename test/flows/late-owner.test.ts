/** Leases over processes: a first owner that is frozen, slow or gone, and those who wait for it or take over. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { endLease, orderOf } from '../support/aging.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import { cart, type Reply } from '../support/client.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { type ServiceProcess, startServiceProcess } from '../support/service-process.ts'
import { until } from '../support/until.ts'

const charges = { method: 'POST', path: '/v1/payment_intents' } as const

let scene: Scene
let first: ServiceProcess
beforeAll(async () => {
  scene = await startScene({ settings: { RECONCILE_AFTER_MS: '50' } })
  first = await startServiceProcess(scene.env({ LOG_LEVEL: 'info' }))
})
afterEach(async () => {
  await scene.books.noFaults()
  await expectBooksInOrder(scene)
})
afterAll(async () => {
  await first.stop()
  await scene.stop()
})

describe('a first owner that is frozen past its lease', () => {
  it.each(['checkout.claimed', 'checkout.charged', 'settle.deciding_paid'])(
    'at %s: a repeat takes over with the same provider key and settles; the late write changes no row and is logged, both read the same',
    async (point) => {
      const key = newKey()
      await first.arm({ [point]: { do: 'pause' } })
      const firstReply = first.shop.checkout(key)
      await first.reached(point, reached(point))
      await endLease(scene.db, key)

      const repeat = await scene.shop.checkout(key)
      expect([repeat.status, repeat.json.status]).toEqual([201, 'paid'])
      const before = await rowsOf(key)

      first.resume(point)
      const late = await firstReply
      expect([late.status, late.text]).toEqual([201, repeat.text])
      expect(await rowsOf(key)).toEqual(before)
      const payments = await scene.books.paymentsFor(key)
      expect(payments).toMatchObject([{ status: 'succeeded', idempotency_key: `ten_demo:${key}` }])
      const orderId = repeat.json.id
      await until(() => first.log.some((line) => line.includes(orderId) && line.includes('changed nothing')))
    },
  )

  it('after a decline that the repeat has settled: the late one reads it too, and the stock came back once', async () => {
    const key = newKey()
    const body = cart({ items: [{ sku: 'rare', quantity: 2 }], payment_method: 'pm_card_chargeDeclined' })
    await first.arm({ 'checkout.charged': { do: 'pause' } })
    const firstReply = first.shop.checkout(key, body)
    await first.reached('checkout.charged', reached('checkout.charged'))
    await endLease(scene.db, key)
    const repeat = await scene.shop.checkout(key, body)
    expect([repeat.status, repeat.json.code]).toEqual([402, 'card_declined'])
    first.resume('checkout.charged')
    expect((await firstReply).text).toBe(repeat.text)
    expect((await scene.shop.get('/v1/products/rare')).json.available).toBe(5)
  })

  it('that learnt nothing: its doubt does not undo what the repeat has settled', async () => {
    const key = newKey()
    await scene.books.fault({ ...charges, fault: 'error_after', times: 1 })
    await first.arm({ 'settle.deciding_needs_reconcile': { do: 'pause' } })
    const firstReply = first.shop.checkout(key)
    await first.reached('settle.deciding_needs_reconcile')
    await endLease(scene.db, key)
    const other = await scene.shop.checkout(key)
    // The provider replays its stored failure, so the repeat looks the payment up.
    expect([202, 201]).toContain(other.status)
    await endLease(scene.db, key)
    const settled = await until(async () => {
      await endLease(scene.db, key)
      const reply = await scene.shop.checkout(key)
      return reply.status === 201 ? reply : undefined
    })
    first.resume('settle.deciding_needs_reconcile')
    const late = await firstReply
    expect([late.status, late.text]).toEqual([201, settled.text])
    expect((await orderOf(scene.db, key)).status).toBe('paid')
  })
})

describe('an owner that has gone', () => {
  it('is succeeded by one of 20 repeats over two processes; the rest get its answer', async () => {
    const key = newKey()
    const doomed = await startServiceProcess(scene.env(), { 'checkout.charged': { do: 'kill' } })
    await expect(doomed.shop.checkout(key)).rejects.toThrow()
    await doomed.gone
    await endLease(scene.db, key)
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? scene.shop : first.shop).checkout(key)),
    )
    expect(new Set(replies.map((reply) => reply.status))).toEqual(new Set([201]))
    expect(new Set(replies.map((reply) => reply.text)).size).toBe(1)
    expect(await scene.books.paymentsFor(key)).toMatchObject([{ status: 'succeeded', requests: 2 }])
    const story = await scene.db
      .selectFrom('order_transitions')
      .select(['from_status', 'to_status', 'cause'])
      .where('order_id', '=', replies[0]?.json.id)
      .execute()
    expect(story).toEqual([{ from_status: 'pending', to_status: 'paid', cause: 'repeat' }])
  })
})

describe('those who wait in another process', () => {
  it.each([
    ['paid', cart(), undefined, 201, undefined],
    ['a decline', cart({ payment_method: 'pm_card_chargeDeclined' }), undefined, 402, 'card_declined'],
    ['an unreached provider', cart(), 'rate_limit', 503, 'provider_unavailable'],
    ['doubt', cart(), 'error_after', 202, undefined],
    ['3-D Secure', cart({ payment_method: 'pm_card_threeDSecure2Required' }), undefined, 202, undefined],
  ] as const)('get the answer of the first, marked as replayed: %s', async (what, body, fault, status, code) => {
    const key = newKey()
    if (fault !== undefined) await scene.books.fault({ ...charges, fault, times: 1 })
    await first.arm({ 'checkout.claimed': { do: 'pause' } })
    const firstReply = first.shop.checkout(key, body)
    await first.reached('checkout.claimed', reached('checkout.claimed'))
    // Nothing that waits may ask the provider by itself and hide what the first was told.
    await scene.db
      .updateTable('orders')
      .set({ next_ask_at: new Date(Date.now() + 60_000) })
      .where('attempt_key', '=', key)
      .execute()
    const waiting = Array.from({ length: 5 }, () => scene.shop.checkout(key, body))
    await until(() => scene.service.deps.twins.size > 0, { what: 'the repeats to arrive' })
    first.resume('checkout.claimed')
    const answer = await firstReply
    expect([answer.status, answer.json.code, answer.replayed]).toEqual([status, code, false])
    for (const reply of await Promise.all(waiting)) {
      expect([reply.status, reply.json.code, reply.replayed]).toEqual([status, code, true])
      if (status !== 503) expect(reply.json).toEqual(answer.json)
      if (status === 202 || status === 503) expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0)
      expect(reply.headers.get('location')).toBe(answer.headers.get('location'))
    }
    await scene.books.noFaults()
    await finish(what, key, body)
  })

  it('for a cart that another key is paying are told so at once, and of its state', async () => {
    const [key, other] = [newKey(), newKey()]
    const body = cart({ cart_id: `cart-${key}` })
    await first.arm({ 'checkout.claimed': { do: 'pause' } })
    const firstReply = first.shop.checkout(key, body)
    await first.reached('checkout.claimed', reached('checkout.claimed'))
    const orderId = (await orderOf(scene.db, key)).order_id
    for (const shop of [scene.shop, first.shop]) {
      const reply = await shop.checkout(other, body)
      expect([reply.status, reply.json.code]).toEqual([409, 'cart_in_progress'])
      expect(reply.json).toMatchObject({ order_id: orderId, state: 'in_progress', new_key_safe: false })
    }
    // Nothing is stored under the other key.
    expect((await scene.shop.get(`/v1/checkouts/${other}`)).status).toBe(404)
    first.resume('checkout.claimed')
    expect((await firstReply).status).toBe(201)
    const paid = await scene.shop.checkout(other, body)
    expect([paid.status, paid.json.code]).toEqual([409, 'cart_already_paid'])
    expect(paid.json).toMatchObject({ order_id: orderId, state: 'settled', new_key_safe: false })
  })

  it('longer than the limit are told that it is in progress, in the same process and in another, and a look says so too', async () => {
    const impatient = await scene.start({ IDEMPOTENCY_WAIT_MS: '300' })
    const slow = await startServiceProcess(scene.env({ IDEMPOTENCY_WAIT_MS: '300' }), {
      'checkout.claimed': { do: 'pause' },
    })
    const key = newKey()
    const firstReply = slow.shop.checkout(key)
    await slow.reached('checkout.claimed')
    const replies: Reply[] = await Promise.all([slow.shop.checkout(key), scene.shop.at(impatient.url).checkout(key)])
    for (const reply of replies) {
      expect([reply.status, reply.json.code]).toEqual([409, 'idempotency_key_in_progress'])
      expect(reply.json.new_key_safe).toBe(false)
      expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0)
    }
    expect((await scene.shop.get(`/v1/checkouts/${key}`)).json).toMatchObject({
      state: 'in_progress',
      new_key_safe: false,
      order: { status: 'pending', total: 1250, currency: 'EUR' },
    })
    const canceling = await scene.shop.at(impatient.url).post(`/v1/checkouts/${key}/cancel`)
    expect([canceling.status, canceling.json.code]).toEqual([409, 'idempotency_key_in_progress'])
    slow.resume('checkout.claimed')
    expect((await firstReply).status).toBe(201)
    await slow.stop()
  })
})

/** Ends what a case has left open. */
async function finish(what: string, key: string, body: Record<string, unknown>): Promise<void> {
  if (what === '3-D Secure') {
    await scene.books.act((await orderOf(scene.db, key)).intent_id as string, 'succeed')
  }
  await until(async () => {
    await endLease(scene.db, key)
    return (await scene.shop.checkout(key, body)).status !== 202
  })
}

/** How often the first process has paused at a point, this time included. */
const passes = new Map<string, number>()
function reached(point: string): number {
  passes.set(point, (passes.get(point) ?? 0) + 1)
  return passes.get(point) as number
}

async function rowsOf(key: string): Promise<unknown> {
  const order = await orderOf(scene.db, key)
  const of = { tenant_id: order.tenant_id, order_id: order.order_id }
  const read = (table: 'stock_movements' | 'order_transitions' | 'ledger_transfers') =>
    scene.db
      .selectFrom(table)
      .selectAll()
      .where('tenant_id', '=', of.tenant_id)
      .where('order_id', '=', of.order_id)
      .execute()
  return [
    order,
    await scene.db.selectFrom('attempts').selectAll().where('key', '=', key).executeTakeFirstOrThrow(),
    await read('stock_movements'),
    await read('order_transitions'),
    await read('ledger_transfers'),
    await scene.db.selectFrom('jobs').selectAll().where('business_id', 'like', `${order.order_id}%`).execute(),
  ]
}
