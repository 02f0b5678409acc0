import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Deps } from '../../src/deps.ts'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { settleRefunds } from '../../src/workers/settle-refunds.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import { keys } from '../support/client.ts'
import {
  booked,
  makeRefundsDue,
  movedFor,
  orderShown,
  place,
  refund,
  refundsOf,
  sumRefunded,
  unhurried,
} from '../support/money-back.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { until } from '../support/until.ts'

let scene: Scene
let deps: Deps
beforeAll(async () => {
  scene = await startScene()
  deps = unhurried(scene.service)
})
afterAll(() => scene.stop())

/** Everything that was notified has been applied. */
async function settleNews(): Promise<void> {
  await until(async () => {
    await runJobs(deps)
    const [waiting] = await scene.db
      .selectFrom('jobs')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .where('topic', '=', 'provider_event')
      .where('state', '=', 'ready')
      .execute()
    return Number(waiting?.count) === 0
  })
}

describe('a refund', () => {
  it('gives back what is left where no amount is given, once however often it is repeated', async () => {
    const order = await place(scene)
    const key = newKey()
    const first = await refund(scene.backend, order.id, {}, key)
    expect(first.status).toBe(201)
    expect(first.json).toEqual({
      id: expect.stringMatching(/^ref_/),
      object: 'refund',
      order_id: order.id,
      amount: 2500,
      currency: 'EUR',
      status: 'succeeded',
      reason: null,
      created_at: expect.any(String),
    })
    expect(first.headers.get('location')).toBe(`/v1/refunds/${first.json.id}`)
    const second = await refund(scene.backend, order.id, {}, key)
    expect(second.text).toBe(first.text)
    expect(second.headers.get('location')).toBe(first.headers.get('location'))
    expect([first.replayed, second.replayed]).toEqual([false, true])
    expect((await scene.backend.get(`/v1/refunds/${first.json.id}`)).json).toEqual(first.json)
    expect((await booked(scene, order)).refunds).toMatchObject([{ amount: 2500, status: 'succeeded' }])
    expect(await orderShown(scene, order.id)).toMatchObject({ status: 'refunded', refunded: 2500, captured: 2500 })
    expect(await movedFor(scene, order.id)).toEqual({ capture: 2500, refund: 2500 })
  })

  it('in parts that do not divide evenly, then the rest, gives back what was captured to the unit', async () => {
    const order = await place(scene, {
      items: [
        { sku: 'poster', quantity: 1 },
        { sku: 'mug', quantity: 1 },
      ],
    })
    for (const amount of [717, 717, 715]) {
      const part = await refund(scene.backend, order.id, { amount, reason: 'damaged' })
      expect([part.status, part.json.amount, part.json.reason]).toEqual([201, amount, 'damaged'])
      expect(await orderShown(scene, order.id)).toMatchObject({ status: 'partially_refunded' })
    }
    const rest = await refund(scene.backend, order.id)
    expect(rest.json.amount).toBe(1)
    expect(await sumRefunded(scene, order)).toBe(2150)
    expect(await orderShown(scene, order.id)).toMatchObject({ status: 'refunded', refunded: 2150 })
    const beyond = await refund(scene.backend, order.id)
    expect([beyond.status, beyond.json.code, beyond.json.refundable]).toEqual([409, 'refund_exceeds_captured', 0])
  })

  it('beyond what is left is refused with what is left, and leaves its key free', async () => {
    const order = await place(scene)
    await refund(scene.backend, order.id, { amount: 2000 })
    const key = newKey()
    const beyond = await refund(scene.backend, order.id, { amount: 501 }, key)
    expect([beyond.status, beyond.json.code, beyond.json.refundable]).toEqual([409, 'refund_exceeds_captured', 500])
    const within = await refund(scene.backend, order.id, { amount: 500 }, key)
    expect([within.status, within.json.status]).toEqual([201, 'succeeded'])
    expect((await booked(scene, order)).refunds).toHaveLength(2)
  })

  it('needs a key of its own, and a key stands for one request', async () => {
    const order = await place(scene)
    const path = `/v1/orders/${order.id}/refunds`
    expect((await scene.backend.post(path, {})).json.code).toBe('idempotency_key_missing')
    const key = newKey()
    expect((await refund(scene.backend, order.id, { amount: 100 }, key)).status).toBe(201)
    const otherAmount = await refund(scene.backend, order.id, { amount: 200 }, key)
    expect([otherAmount.status, otherAmount.json.code, otherAmount.json.differing]).toEqual([
      409,
      'idempotency_key_conflict',
      ['amount'],
    ])
    const otherOrder = await refund(scene.backend, (await place(scene)).id, { amount: 100 }, key)
    expect(otherOrder.json.differing).toEqual(['path'])
    const ofCheckout = await refund(scene.backend, order.id, {}, order.key)
    expect(ofCheckout.json.code).toBe('idempotency_key_conflict')
    expect(await sumRefunded(scene, order)).toBe(100)
  })

  it('is refused where nothing was paid, and to those who may not', async () => {
    const held = await place(scene, { capture: 'manual' })
    const unpaid = await refund(scene.backend, held.id)
    expect([unpaid.status, unpaid.json.code, unpaid.json.order_status]).toEqual([
      409,
      'order_state_conflict',
      'authorized',
    ])
    expect((await refund(scene.backend, 'ord_00000000000000000000000000')).status).toBe(404)
    const order = await place(scene)
    expect((await refund(scene.backend.withKey(keys.otherBackend), order.id)).status).toBe(404)
    expect((await refund(scene.shop, order.id)).status).toBe(403)
    for (const body of [{ amount: 0 }, { amount: 1.5 }, { amount: '1' }, { reason: 'x'.repeat(501) }, { more: 1 }]) {
      expect((await refund(scene.backend, order.id, body)).json.code).toBe('invalid_request')
    }
    const wrong = await refund(scene.backend, order.id, { amount: 0 })
    expect(wrong.json.detail).toBe('body/amount: must be >= 1')
    const none = await scene.backend.post(`/v1/orders/${order.id}/refunds`, 'null', { 'idempotency-key': newKey() })
    expect([none.status, none.json.detail]).toEqual([400, 'body: must be object'])
    const done = await scene.backend.post(`/v1/orders/${order.id}/refunds`, undefined, { 'idempotency-key': newKey() })
    expect([done.status, done.json.amount]).toEqual([201, 2500])
    expect((await scene.backend.withKey(keys.otherBackend).get(`/v1/refunds/${done.json.id}`)).status).toBe(404)
  })

  it('keeps to the step of its currency', async () => {
    await scene.backend.put('/v1/products/dinar', { name: 'Dinar', unit_price: 10_010, currency: 'KWD', available: 9 })
    const order = await place(scene, { items: [{ sku: 'dinar', quantity: 1 }] })
    const off = await refund(scene.backend, order.id, { amount: 1001 })
    expect([off.status, off.json.code, off.json.step]).toEqual([422, 'amount_not_chargeable', 10])
    expect((await refund(scene.backend, order.id, { amount: 1010 })).status).toBe(201)
    expect((await refund(scene.backend, order.id)).json.amount).toBe(9000)
  })

  it('that is pending at the provider answers 202 until the worker has read its end, then one answer for good', async () => {
    await scene.books.webhooks({ drop: 1 })
    const order = await place(scene, { payment_method: 'pm_card_pendingRefund' })
    const key = newKey()
    const first = await refund(scene.backend, order.id, { amount: 700 }, key)
    expect([first.status, first.json.status]).toEqual([202, 'pending'])
    expect(first.headers.get('retry-after')).not.toBeNull()
    expect(await orderShown(scene, order.id)).toMatchObject({ status: 'partially_refunded', refunded: 700 })
    await until(async () => (await booked(scene, order)).refunds[0]?.status === 'succeeded')
    await makeRefundsDue(scene.db, order.id)
    await settleRefunds(deps)
    const after = await refund(scene.backend, order.id, { amount: 700 }, key)
    expect([after.status, after.json.status, after.json.id]).toEqual([201, 'succeeded', first.json.id])
    expect((await refund(scene.backend, order.id, { amount: 700 }, key)).text).toBe(after.text)
    expect(await movedFor(scene, order.id)).toEqual({ capture: 2500, refund: 700 })
    await scene.books.webhooks({})
  })

  it('that fails at the bank after it succeeded frees its part and is reversed, while its answer stays', async () => {
    const order = await place(scene, { payment_method: 'pm_card_refundFail' })
    const key = newKey()
    const first = await refund(scene.backend, order.id, { amount: 2500 }, key)
    expect([first.status, first.json.status]).toEqual([201, 'succeeded'])
    await until(async () => {
      await settleNews()
      return (await scene.backend.get(`/v1/refunds/${first.json.id}`)).json.status === 'failed'
    })
    expect(await orderShown(scene, order.id)).toMatchObject({ status: 'paid', refunded: 0 })
    expect((await refund(scene.backend, order.id, { amount: 2500 }, key)).text).toBe(first.text)
    expect(await movedFor(scene, order.id)).toEqual({ capture: 2500, refund: 2500, refund_reversal: 2500 })
    const jobs = await scene.db
      .selectFrom('jobs')
      .select('business_id')
      .where('topic', '=', 'order_news')
      .where('business_id', 'like', `${order.id}:ref%`)
      .execute()
    expect(jobs.map((job) => job.business_id).sort()).toEqual([
      `${order.id}:refund_failed:${first.json.id}`,
      `${order.id}:refunded:${first.json.id}`,
    ])
  })

  it('is news of its own, however soon the next one follows', async () => {
    const order = await place(scene)
    const made = [
      await refund(scene.backend, order.id, { amount: 1 }),
      await refund(scene.backend, order.id, { amount: 1 }),
    ]
    const jobs = await scene.db
      .selectFrom('jobs')
      .select('business_id')
      .where('topic', '=', 'order_news')
      .where('business_id', 'like', `${order.id}:refunded:%`)
      .execute()
    expect(jobs.map((job) => job.business_id).sort()).toEqual(
      made.map(({ json }) => `${order.id}:refunded:${json.id}`).sort(),
    )
  })

  it('that the provider refuses has failed, frees its part, and is answered so for good', async () => {
    await scene.books.webhooks({ drop: 1 })
    const order = await place(scene)
    await scene.books.control('POST', '/refunds', { payment_intent: order.intent, amount: 2500 })
    const key = newKey()
    const first = await refund(scene.backend, order.id, { amount: 600 }, key)
    expect([first.status, first.json.status, first.json.failure_code]).toEqual([
      201,
      'failed',
      'charge_already_refunded',
    ])
    expect((await refund(scene.backend, order.id, { amount: 600 }, key)).text).toBe(first.text)
    // What was refunded otherwise has been read at the occasion.
    expect(await orderShown(scene, order.id)).toMatchObject({ status: 'refunded', refunded: 2500 })
    expect(await refundsOf(scene.db, order.id)).toMatchObject([
      { status: 'failed', amount: 600, attempt_key: key },
      { status: 'succeeded', amount: 2500, attempt_key: null },
    ])
    await scene.books.webhooks({})
  })

  it('leaves our books equal to the provider’s', async () => {
    await settleNews()
    await expectBooksInOrder(scene, { unfinished: true })
  })
})
