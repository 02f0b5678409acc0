import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Order } from '../../src/domain/order.ts'
import { requeueJob } from '../../src/store/jobs.ts'
import { recoverOrders } from '../../src/workers/recover-orders.ts'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { endSending, orderOf } from '../support/aging.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import type { BookedPayment } from '../support/books.ts'
import { cart } from '../support/client.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { until } from '../support/until.ts'

let scene: Scene
beforeAll(async () => {
  // Short limits, so that a call which is not answered ends soon.
  scene = await startScene({ settings: { PROVIDER_TIMEOUT_MS: '700', CHECKOUT_BUDGET_MS: '1500' } })
})
afterAll(() => scene.stop())
beforeEach(() => scene.books.noFaults())

const work = () => runJobs(scene.service.deps)

/** As if the pause after a failure had passed. */
async function passTime(): Promise<void> {
  await scene.db
    .updateTable('jobs')
    .set({ run_at: new Date(0) })
    .where('state', '=', 'ready')
    .execute()
}

/** A declined order whose payment succeeds all the same, with another card, before it is closed at the provider. */
async function paidAfterDecline(paymentMethod = 'pm_card_visa'): Promise<Order> {
  const key = newKey()
  await scene.shop.checkout(key, cart({ payment_method: 'pm_card_chargeDeclined' }))
  const order = await orderOf(scene.db, key)
  expect(order.status).toBe('payment_failed')
  const response = await fetch(`${scene.simulatorUrl}/v1/payment_intents/${order.intent_id}/confirm`, {
    method: 'POST',
    headers: { authorization: 'Bearer sk_test_scene' },
    body: new URLSearchParams({ payment_method: paymentMethod }),
  })
  expect(await response.json()).toMatchObject({ status: 'succeeded' })
  return order
}

/** An order that was given up while its charge was on the way to the provider, and canceled when nothing had arrived. */
async function canceledBeforeItsCharge(body: Record<string, unknown> = {}): Promise<Order> {
  const key = newKey()
  await scene.books.fault({ method: 'POST', path: '/v1/payment_intents', fault: 'drop_before' })
  expect((await scene.shop.checkout(key, cart(body))).json.status).toBe('needs_reconcile')
  await scene.books.noFaults()
  expect((await scene.shop.post(`/v1/checkouts/${key}/cancel`)).status).toBe(202)
  await endSending(scene.db, key)
  await recoverOrders(scene.service.deps)
  const order = await orderOf(scene.db, key)
  expect(order.status).toBe('canceled')
  return order
}

/** The charge that was on its way. */
async function arrive(order: Order) {
  const { provider } = scene.service.deps
  const { outcome } = await provider.charge(
    {
      target: {
        account: order.provider_account,
        connectedAccount: order.connected_account,
        livemode: order.livemode,
        apiVersion: order.api_version,
      },
      providerKey: `${order.tenant_id}:${order.attempt_key}`,
      parameterVersion: order.parameter_version,
      amount: order.total,
      currency: order.currency,
      capture: order.capture,
      paymentMethod: order.payment_method,
      offSession: false,
      metadata: { tenant: order.tenant_id, order: order.order_id, key: order.attempt_key },
    },
    { timeoutMs: 5000 },
  )
  return outcome
}

async function paymentOf(order: Order): Promise<BookedPayment> {
  return (await scene.books.paymentsFor(order.attempt_key))[0] as BookedPayment
}

function ledger(order: Order) {
  return scene.db
    .selectFrom('ledger_transfers')
    .select(['kind', 'amount', 'debit_account', 'credit_account'])
    .where('order_id', '=', order.order_id)
    .orderBy('created_at')
    .execute()
}

function refundJob(order: Order) {
  return scene.db
    .selectFrom('jobs')
    .select(['state', 'last_error'])
    .where('topic', '=', 'refund_late_payment')
    .where('payload', '@>', JSON.stringify({ order_id: order.order_id }) as never)
    .executeTakeFirst()
}

const bothLines = [
  { kind: 'late_capture', amount: 1250, debit_account: 'provider_balance', credit_account: 'late_payments' },
  { kind: 'late_refund', amount: 1250, debit_account: 'late_payments', credit_account: 'provider_balance' },
]

describe('money for an order that has ended unpaid', () => {
  it('that was canceled before the charge arrived at the provider is refunded once, and the order stays canceled', async () => {
    const order = await canceledBeforeItsCharge()
    expect((await arrive(order)).kind).toBe('succeeded')
    // The notification brings the news.
    await until(async () => {
      await work()
      return (await refundJob(order))?.state === 'done'
    })
    await passTime()
    await work()
    expect((await paymentOf(order)).refunds).toMatchObject([{ amount: 1250, status: 'succeeded' }])
    expect(await ledger(order)).toEqual(bothLines)
    expect((await orderOf(scene.db, order.attempt_key)).status).toBe('canceled')
  })

  it('is refunded once however often the job runs, also when its row, and the key at the provider, have been forgotten', async () => {
    const order = await paidAfterDecline()
    await work()
    const intent = order.intent_id as string
    await requeueJob(scene.db, 'ten_demo', 'refund_late_payment', intent)
    await work()
    // As if the process had died before it booked, long ago.
    await scene.db
      .deleteFrom('ledger_transfers')
      .where('kind', '=', 'late_refund')
      .where('business_id', '=', intent)
      .execute()
    await requeueJob(scene.db, 'ten_demo', 'refund_late_payment', intent)
    await work()
    expect((await paymentOf(order)).refunds).toHaveLength(1)
    expect(await ledger(order)).toEqual(bothLines)
  })

  it.each(['drop_after', 'hang', 'error_after', 'drop_before', 'error_before', 'rate_limit'] as const)(
    'is refunded once where the provider answers the refund with %s',
    async (fault) => {
      const order = await paidAfterDecline()
      await scene.books.fault({ method: 'POST', path: '/v1/refunds', fault, times: 1 })
      await work()
      expect(await refundJob(order)).toMatchObject({ state: 'ready' })
      await passTime()
      await work()
      expect((await paymentOf(order)).refunds).toMatchObject([{ amount: 1250, status: 'succeeded' }])
      expect(await ledger(order)).toEqual(bothLines)
      expect(await refundJob(order)).toEqual({ state: 'done', last_error: null })
    },
  )

  it('is booked as given back only when a pending refund has succeeded', async () => {
    const order = await paidAfterDecline('pm_card_pendingRefund')
    // The first answers of the provider say that it is pending.
    await work()
    expect(await ledger(order)).toHaveLength(1)
    expect(await refundJob(order)).toEqual({ state: 'ready', last_error: 'refund_pending' })
    await until(async () => {
      await passTime()
      await work()
      return (await refundJob(order))?.state === 'done'
    })
    const payment = await paymentOf(order)
    expect(payment.refunds).toMatchObject([{ amount: 1250, status: 'succeeded' }])
    expect(await ledger(order)).toEqual(bothLines)
  })

  it('that the bank will not take back is shown to a person', async () => {
    const order = await paidAfterDecline('pm_card_refundFail')
    await scene.books.fault({ method: 'POST', path: '/v1/refunds', fault: 'drop_after', times: 1 })
    await work()
    await until(async () => (await paymentOf(order)).refunds[0]?.status === 'failed')
    await passTime()
    await work()
    expect(await refundJob(order)).toEqual({ state: 'dead', last_error: 'refund_failed' })
    expect(await orderOf(scene.db, order.attempt_key)).toMatchObject({
      status: 'payment_failed',
      reconcile_reason: 'late_refund_failed',
    })
    expect((await ledger(order)).map(({ kind }) => kind)).toEqual(['late_capture'])
  })

  it('that the bank sends back long after it took it is booked as back, and shown to a person', async () => {
    const order = await paidAfterDecline('pm_card_refundFail')
    await work()
    // The refund has succeeded and is booked; the notification brings the news that it failed.
    await until(async () => {
      await work()
      return (await refundJob(order))?.state === 'dead'
    })
    expect(await refundJob(order)).toEqual({ state: 'dead', last_error: 'refund_failed' })
    expect(await ledger(order)).toEqual([
      ...bothLines,
      {
        kind: 'late_refund_reversal',
        amount: 1250,
        debit_account: 'provider_balance',
        credit_account: 'late_payments',
      },
    ])
    expect(await orderOf(scene.db, order.attempt_key)).toMatchObject({ reconcile_reason: 'late_refund_failed' })
  })

  it('that somebody gives back in the dashboard, in part or whole, goes back no second time', async () => {
    const whole = await paidAfterDecline()
    await scene.books.control('POST', '/refunds', { payment_intent: whole.intent_id })
    const part = await paidAfterDecline()
    await scene.books.control('POST', '/refunds', { payment_intent: part.intent_id, amount: 400 })
    await work()
    expect((await paymentOf(whole)).refunds).toMatchObject([{ amount: 1250 }])
    expect((await paymentOf(part)).refunds.map(({ amount }) => amount).toSorted()).toEqual([400, 850])
    expect(await ledger(whole)).toEqual(bothLines)
    expect(await ledger(part)).toEqual(bothLines)
  })

  it('is not touched with credentials of another account', async () => {
    const order = await paidAfterDecline()
    await scene.db
      .updateTable('orders')
      .set({ provider_account: 'acct_other' })
      .where('order_id', '=', order.order_id)
      .execute()
    await scene.db
      .insertInto('jobs')
      .values({
        tenant_id: 'ten_demo',
        topic: 'refund_late_payment',
        business_id: order.intent_id as string,
        payload: { order_id: order.order_id, amount: 1250, currency: 'EUR' },
        lease_token: null,
        last_error: null,
        finished_at: null,
      })
      .onConflict((conflict) => conflict.doNothing())
      .execute()
    await work()
    expect(await refundJob(order)).toEqual({ state: 'dead', last_error: 'provider_account_changed' })
    expect((await paymentOf(order)).refunds).toEqual([])
    await scene.db
      .updateTable('orders')
      .set({ provider_account: order.provider_account })
      .where('order_id', '=', order.order_id)
      .execute()
    await requeueJob(scene.db, 'ten_demo', 'refund_late_payment', order.intent_id as string)
    await requeueJob(scene.db, 'ten_demo', 'close_payment', order.intent_id as string)
    await work()
    expect((await paymentOf(order)).refunds).toHaveLength(1)
  })
})

describe('a late hold', () => {
  it('is canceled, not captured', async () => {
    const order = await canceledBeforeItsCharge({ capture: 'manual' })
    expect((await arrive(order)).kind).toBe('authorized')
    await until(async () => {
      await work()
      return (await paymentOf(order)).status === 'canceled'
    })
    expect((await paymentOf(order)).charges.every(({ captured }) => !captured)).toBe(true)
    expect(await ledger(order)).toEqual([])
  })
})

describe('the books', () => {
  it('agree in the end', async () => {
    await passTime()
    await work()
    await expectBooksInOrder(scene, { unfinished: true })
  })
})
