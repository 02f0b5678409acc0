import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Deps } from '../../src/deps.ts'
import { endHolds } from '../../src/workers/end-holds.ts'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import type { FaultRule } from '../support/books.ts'
import { keys, type Reply } from '../support/client.ts'
import {
  booked,
  makeEndingDue,
  movedFor,
  orderShown,
  type Placed,
  place,
  refund,
  unhurried,
} from '../support/money-back.ts'
import { providerCall } from '../support/notifications.ts'
import { type Scene, startScene } from '../support/scene.ts'
import { until } from '../support/until.ts'

let scene: Scene
let deps: Deps
beforeAll(async () => {
  scene = await startScene({ settings: { PROVIDER_TIMEOUT_MS: '1000', CHECKOUT_BUDGET_MS: '2500' } })
  deps = unhurried(scene.service)
  await scene.books.webhooks({ drop: 1 })
})
afterEach(() => scene.books.noFaults())
afterAll(() => scene.stop())

const held = () => place(scene, { capture: 'manual' })

function capture(order: Placed, body?: Record<string, unknown>): Promise<Reply> {
  return scene.backend.post(`/v1/orders/${order.id}/capture`, body)
}

function cancel(order: Placed): Promise<Reply> {
  return scene.backend.post(`/v1/orders/${order.id}/cancel`)
}

async function stock(sku: string): Promise<number> {
  return (await scene.shop.get(`/v1/products/${sku}`)).json.available
}

describe('a hold', () => {
  it('that is captured whole pays the order once, however often it is asked for', async () => {
    const order = await held()
    expect((await orderShown(scene, order.id)).payment.capture_before).toEqual(expect.any(String))
    const first = await capture(order)
    expect([first.status, first.json.status, first.json.captured]).toEqual([200, 'paid', 2500])
    const again = await capture(order, {})
    expect([again.status, again.text]).toEqual([200, first.text])
    expect((await capture(order, { amount: 2500 })).text).toBe(first.text)
    expect(await booked(scene, order)).toMatchObject({ status: 'succeeded', amount_received: 2500 })
    expect(await movedFor(scene, order.id)).toEqual({ capture: 2500 })
  })

  it('that is captured in part lets go of the rest, and only what was captured can be refunded', async () => {
    const order = await held()
    const first = await capture(order, { amount: 900 })
    expect([first.status, first.json.status, first.json.total, first.json.captured]).toEqual([200, 'paid', 2500, 900])
    expect(await booked(scene, order)).toMatchObject({
      status: 'succeeded',
      amount_received: 900,
      amount_capturable: 0,
    })
    const beyond = await refund(scene.backend, order.id, { amount: 901 })
    expect([beyond.status, beyond.json.refundable]).toEqual([409, 900])
    expect((await refund(scene.backend, order.id)).json.amount).toBe(900)
    expect(await orderShown(scene, order.id)).toMatchObject({ status: 'refunded', refunded: 900 })
    expect(await movedFor(scene, order.id)).toEqual({ capture: 900, refund: 900 })
  })

  it('that is canceled, or captured with 0, ends the order unpaid and gives the stock back', async () => {
    for (const end of [cancel, (order: Placed) => capture(order, { amount: 0 })]) {
      const before = await stock('mug')
      const order = await held()
      expect(await stock('mug')).toBe(before - 2)
      const first = await end(order)
      expect([first.status, first.json.status]).toEqual([200, 'canceled'])
      expect((await cancel(order)).text).toBe(first.text)
      expect((await capture(order, { amount: 0 })).text).toBe(first.text)
      expect(await stock('mug')).toBe(before)
      expect(await booked(scene, order)).toMatchObject({ status: 'canceled', amount_received: 0 })
      expect(await movedFor(scene, order.id)).toEqual({})
    }
  })

  it('has one ending: a second, different one is refused', async () => {
    const captured = await held()
    await capture(captured, { amount: 900 })
    for (const reply of [await cancel(captured), await capture(captured), await capture(captured, { amount: 901 })]) {
      expect([reply.status, reply.json.code]).toEqual([409, 'hold_already_ending'])
      expect(reply.json).toMatchObject({ ending: { action: 'capture', amount: 900 }, order_status: 'paid' })
    }
    const canceled = await held()
    await cancel(canceled)
    const late = await capture(canceled)
    expect([late.status, late.json.code, late.json.order_status]).toEqual([409, 'hold_already_ending', 'canceled'])
    expect((await booked(scene, captured)).amount_received).toBe(900)
    expect((await booked(scene, canceled)).status).toBe('canceled')
  })

  it('is not captured beyond what is held, nor by those who may not, nor where there is none', async () => {
    const order = await held()
    const beyond = await capture(order, { amount: 2501 })
    expect([beyond.status, beyond.json.code, beyond.json.capturable]).toEqual([400, 'invalid_request', 2500])
    for (const body of [{ amount: -1 }, { amount: 1.5 }, { amount: '1' }, { more: 1 }, []]) {
      expect((await capture(order, body as Record<string, unknown>)).json.code).toBe('invalid_request')
    }
    for (const action of ['capture', 'cancel']) {
      const path = `/v1/orders/${order.id}/${action}`
      expect((await scene.backend.withKey(keys.otherBackend).post(path)).status).toBe(404)
      expect((await scene.shop.post(path)).status).toBe(403)
      expect((await scene.backend.post(`${path}?amount=1`)).json.code).toBe('invalid_request')
      const paid = await place(scene)
      const none = await scene.backend.post(`/v1/orders/${paid.id}/${action}`)
      expect([none.status, none.json.code, none.json.order_status]).toEqual([409, 'order_state_conflict', 'paid'])
    }
    expect((await orderShown(scene, order.id)).status).toBe('authorized')
    expect((await capture(order)).status).toBe(200)
  })

  it('of a metered run is ended by the run alone', async () => {
    const run = await scene.backend.post(
      '/v1/runs',
      { customer: { email: 'ada@example.com' }, payment_method: 'pm_card_visa', currency: 'EUR', hold_amount: 1000 },
      { 'idempotency-key': `run-${Date.now()}` },
    )
    expect(run.status).toBe(201)
    const reply = await scene.backend.post(`/v1/orders/${run.json.order_id}/capture`)
    expect([reply.status, reply.json.code]).toEqual([409, 'order_state_conflict'])
    expect((await scene.backend.post(`/v1/runs/${run.json.id}/finalize`)).json.captured).toBe(0)
  })
})

describe('a hold that ended at the provider', () => {
  it('by lapsing is canceled here by its notification', async () => {
    await scene.books.webhooks({ duplicates: 1 })
    const order = await held()
    await scene.books.control('POST', `/payment_intents/${order.intent}/expire`)
    await until(async () => {
      await runJobs(deps)
      return (await orderShown(scene, order.id)).status === 'canceled'
    })
    expect((await cancel(order)).json.status).toBe('canceled')
    expect((await capture(order)).json.code).toBe('hold_already_ending')
    await scene.books.webhooks({ drop: 1 })
  })

  it('by lapsing without a notification is asked about once its time is over', async () => {
    const order = await held()
    await scene.books.control('POST', `/payment_intents/${order.intent}/expire`)
    await endHolds(deps)
    expect((await orderShown(scene, order.id)).status).toBe('authorized')
    await scene.db
      .updateTable('orders')
      .set({ capture_before: new Date(Date.now() - 1000), next_ask_at: new Date(0) })
      .where('order_id', '=', order.id)
      .execute()
    await scene.books.fault({ method: 'GET', path: '/v1/payment_intents', fault: 'drop_after', times: 1 })
    await endHolds(deps)
    expect((await orderShown(scene, order.id)).status).toBe('authorized')
    await scene.db
      .updateTable('orders')
      .set({ next_ask_at: new Date(0) })
      .where('order_id', '=', order.id)
      .execute()
    await endHolds(deps)
    expect((await orderShown(scene, order.id)).status).toBe('canceled')
  })

  it('by a capture in the dashboard is learnt from the news of a refund or dispute of it', async () => {
    const refunded = await held()
    await providerCall(scene, 'POST', `payment_intents/${refunded.intent}/capture`, { amount_to_capture: '900' })
    await scene.books.webhooks({})
    await scene.books.control('POST', '/refunds', { payment_intent: refunded.intent, amount: 300 })
    await until(async () => {
      await runJobs(deps)
      return (await orderShown(scene, refunded.id)).status === 'partially_refunded'
    })
    expect(await movedFor(scene, refunded.id)).toEqual({ capture: 900, refund: 300 })
    await scene.books.webhooks({ drop: 1 })
    const disputed = await held()
    await providerCall(scene, 'POST', `payment_intents/${disputed.intent}/capture`)
    await scene.books.webhooks({})
    await scene.books.control('POST', '/disputes', { payment_intent: disputed.intent })
    await until(async () => {
      await runJobs(deps)
      return (await orderShown(scene, disputed.id)).disputed
    })
    expect(await orderShown(scene, disputed.id)).toMatchObject({ status: 'paid', captured: 2500 })
    expect((await capture(disputed)).json).toMatchObject({ status: 'paid' })
    await scene.books.webhooks({ drop: 1 })
  })

  it('cannot be captured: the capture is refused and the order ends as the hold did', async () => {
    const order = await held()
    await scene.books.control('POST', `/payment_intents/${order.intent}/expire`)
    const late = await capture(order)
    expect([late.status, late.json.code, late.json.order_status]).toEqual([409, 'hold_already_ending', 'canceled'])
    expect((await orderShown(scene, order.id)).status).toBe('canceled')
  })
})

const faults: FaultRule['fault'][] = [
  'latency',
  'drop_before',
  'drop_after',
  'error_before',
  'error_after',
  'rate_limit',
  'hang',
]

describe.each(faults)('ending a hold through %s', (fault) => {
  it.each(['capture', 'cancel'] as const)('by %s has one outcome, in doubt until the worker has it', async (action) => {
    const order = await held()
    const end = () => (action === 'capture' ? capture(order, { amount: 1600 }) : cancel(order))
    await scene.books.fault({ method: '*', path: `/v1/payment_intents/${order.intent}`, fault, ...slowly(fault) })
    const first = await end()
    expect([first.status, first.json.status]).toEqual([202, 'authorized'])
    expect(first.headers.get('retry-after')).not.toBeNull()
    const different = await (action === 'capture' ? cancel(order) : capture(order, { amount: 1600 }))
    expect([different.status, different.json.code]).toEqual([409, 'hold_already_ending'])
    await scene.books.noFaults()
    for (let run = 0; run < 4; run++) {
      await makeEndingDue(scene.db, order.id)
      await endHolds(deps)
    }
    const expected = action === 'capture' ? { status: 'paid', captured: 1600 } : { status: 'canceled', captured: 0 }
    expect(await orderShown(scene, order.id)).toMatchObject(expected)
    expect((await end()).json).toMatchObject(expected)
    expect(await booked(scene, order)).toMatchObject(
      action === 'capture'
        ? { status: 'succeeded', amount_received: 1600 }
        : { status: 'canceled', amount_received: 0 },
    )
    expect(await movedFor(scene, order.id)).toEqual(action === 'capture' ? { capture: 1600 } : {})
    // Nothing is asked any more.
    expect(await endHolds(deps)).toBe(0)
  })

  it('once is no more than a delay', async () => {
    const order = await held()
    await scene.books.fault({
      method: 'POST',
      path: `/v1/payment_intents/${order.intent}`,
      fault,
      ...slowly(fault),
      times: 1,
    })
    const first = await capture(order)
    await makeEndingDue(scene.db, order.id)
    const again = await capture(order)
    expect([again.status, again.json.status, again.json.captured]).toEqual([200, 'paid', 2500])
    expect([200, 202]).toContain(first.status)
    expect(await movedFor(scene, order.id)).toEqual({ capture: 2500 })
  })
})

it('leaves our books equal to the provider’s', async () => {
  await expectBooksInOrder(scene)
})

/** Longer than a call may take. */
function slowly(fault: FaultRule['fault']): { latency_ms?: number } {
  return fault === 'latency' ? { latency_ms: 1500 } : {}
}
