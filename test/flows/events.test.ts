import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Deps } from '../../src/deps.ts'
import { replayEvent } from '../../src/flows/notifications/events.ts'
import { armCheckpoints } from '../../src/runtime/checkpoint.ts'
import { Gate } from '../../src/runtime/gate.ts'
import { readEvent } from '../../src/store/inbox.ts'
import { recoverOrders } from '../../src/workers/recover-orders.ts'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import { cart, keys } from '../support/client.ts'
import { deliver, type Notification, notification, providerCall, providerObject } from '../support/notifications.ts'
import { activeRun, finalize, use } from '../support/runs.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { until } from '../support/until.ts'

let scene: Scene
let deps: Deps
let url: string
beforeAll(async () => {
  // Little time for calls that bring nothing.
  scene = await startScene({ settings: { CHECKOUT_BUDGET_MS: '4000' } })
  deps = { ...scene.service.deps, gate: new Gate({ perSecond: 1000, customersMax: 100, patienceMs: 0 }) }
  url = scene.service.url as string
})
beforeEach(() => scene.books.webhooks({ drop: 1 }))
afterEach(async () => {
  armCheckpoints(undefined)
  await scene.books.noFaults()
})
afterAll(async () => {
  await expectBooksInOrder(scene, { unfinished: true })
  await scene.stop()
})

const waiting = { payment_method: 'pm_card_threeDSecure2Required' }

/** An order that waits for its customer. */
async function waitingOrder(
  overrides: Record<string, unknown> = {},
): Promise<{ key: string; order: string; intent: string }> {
  const key = newKey()
  const { status, json } = await scene.shop.checkout(key, cart({ ...waiting, ...overrides }))
  expect([status, json.status]).toEqual([202, 'requires_action'])
  return { key, order: json.id, intent: json.payment.reference }
}

/** An order whose charge has happened, but the answer was lost and nobody has looked yet. */
async function doubtfulOrder(
  overrides: Record<string, unknown> = {},
): Promise<{ key: string; order: string; intent: string }> {
  const key = newKey()
  await scene.books.fault({ method: 'POST', path: '/v1/payment_intents', fault: 'error_after', times: 1 })
  const { status, json } = await scene.shop.checkout(key, cart(overrides))
  await scene.books.noFaults()
  expect([status, json.status, json.payment.reference]).toEqual([202, 'needs_reconcile', null])
  const [payment] = await scene.books.paymentsFor(key)
  return { key, order: json.id, intent: payment?.id as string }
}

/** The event of that type about the payment as the provider has it, but for the given fields. */
async function about(
  type: string,
  intent: string,
  fields: Record<string, unknown> = {},
  more: Partial<Notification> = {},
): Promise<Notification> {
  return notification(type, { ...(await providerObject(scene, `payment_intents/${intent}`)), ...fields }, more)
}

/** Delivers it and runs what follows. */
async function tell(...events: Notification[]): Promise<void> {
  for (const event of events) expect((await deliver(url, event)).status).toBe(200)
  await runJobs(deps)
}

async function orderRow(id: string) {
  return scene.db.selectFrom('orders').selectAll().where('order_id', '=', id).executeTakeFirstOrThrow()
}

async function story(id: string) {
  const rows = await scene.db
    .selectFrom('order_transitions')
    .select(['from_status', 'to_status', 'cause'])
    .where('order_id', '=', id)
    .orderBy('at')
    .execute()
  return rows.map(({ from_status, to_status, cause }) => `${from_status} ${to_status} ${cause}`)
}

async function event(id: string) {
  return readEvent(scene.db, 'stripe', id)
}

async function paidNews(id: string) {
  return scene.db
    .selectFrom('jobs')
    .select('business_id')
    .where('topic', '=', 'order_news')
    .where('business_id', '=', `${id}:paid`)
    .execute()
}

async function transfers(id: string) {
  const rows = await scene.db
    .selectFrom('ledger_transfers')
    .select(['kind', 'amount'])
    .where('order_id', '=', id)
    .orderBy('created_at')
    .execute()
  return rows.map(({ kind, amount }) => `${kind} ${amount}`)
}

describe('news of a payment that has succeeded', () => {
  it('settles an order that waits for its customer, once', async () => {
    const { order, intent, key } = await waitingOrder()
    await scene.books.act(intent, 'succeed')
    const news = await about('payment_intent.succeeded', intent)
    await tell(news, news)
    expect(await story(order)).toEqual(['pending requires_action answer', 'requires_action paid notification'])
    expect(await event(news.id)).toMatchObject({ state: 'done', reason: 'settled', order_id: order })
    const again = await about('payment_intent.succeeded', intent)
    await tell(again)
    expect(await event(again.id)).toMatchObject({ state: 'done', reason: 'nothing_new' })
    expect(await transfers(order)).toEqual(['capture 1250'])
    expect(await paidNews(order)).toHaveLength(1)
    const repeat = await scene.shop.checkout(key, cart(waiting))
    expect([repeat.status, repeat.json.status, repeat.replayed]).toEqual([201, 'paid', true])
  })

  it('finds an order whose answer was lost, and asks before it believes', async () => {
    const { order, intent } = await doubtfulOrder()
    await tell(await about('payment_intent.succeeded', intent))
    expect(await orderRow(order)).toMatchObject({
      status: 'paid',
      intent_id: intent,
      captured: 1250,
      reconcile_reason: null,
    })
    expect(await story(order)).toEqual(['pending needs_reconcile answer', 'needs_reconcile paid notification'])
  })

  it('that lands before the slow answer of the same payment: paid once, one event goes out', async () => {
    const key = newKey()
    const answered = stopAt('checkout.charged')
    const reply = scene.shop.checkout(key)
    await answered.reached
    const [payment] = await scene.books.paymentsFor(key)
    await tell(await about('payment_intent.succeeded', payment?.id as string))
    const { order_id } = await scene.db
      .selectFrom('orders')
      .select('order_id')
      .where('attempt_key', '=', key)
      .executeTakeFirstOrThrow()
    expect(await story(order_id)).toEqual(['pending paid notification'])
    answered.go()
    expect([(await reply).status, (await reply).json.status]).toEqual([201, 'paid'])
    expect(await story(order_id)).toEqual(['pending paid notification'])
    expect(await transfers(order_id)).toEqual(['capture 1250'])
    expect(await paidNews(order_id)).toHaveLength(1)
    expect(payment?.requests).toBe(1)
  })

  it('under two event ids while the answer settles: every effect once', async () => {
    for (let round = 0; round < 10; round++) {
      const key = newKey()
      const answered = stopAt('checkout.charged')
      const reply = scene.shop.checkout(key)
      await answered.reached
      const [payment] = await scene.books.paymentsFor(key)
      const events = [1, 2].map(() => about('payment_intent.succeeded', payment?.id as string))
      await Promise.all(events.map(async (news) => deliver(url, await news)))
      answered.go()
      await Promise.all([runJobs(deps), runJobs(deps), reply])
      const id = (await reply).json.id
      expect(await story(id)).toHaveLength(1)
      expect(await transfers(id)).toEqual(['capture 1250'])
      expect(await paidNews(id)).toHaveLength(1)
    }
  })
})

describe('news that contradicts what the provider says', () => {
  it('of a failure, in any order and with reversed times, leaves a paid payment paid', async () => {
    for (const failureFirst of [true, false]) {
      const { order, intent } = await doubtfulOrder()
      const [early, late] = [1000, 2000]
      const failed = await about(
        'payment_intent.payment_failed',
        intent,
        { status: 'requires_payment_method', amount_received: 0, last_payment_error: { code: 'card_declined' } },
        { created: failureFirst ? late : early },
      )
      const succeeded = await about('payment_intent.succeeded', intent, {}, { created: failureFirst ? early : late })
      for (const news of failureFirst ? [failed, succeeded] : [succeeded, failed]) await tell(news)
      expect((await orderRow(order)).status).toBe('paid')
      expect(await transfers(order)).toEqual(['capture 1250'])
      expect((await event(failed.id))?.state).toBe('done')
      expect((await event(succeeded.id))?.state).toBe('done')
    }
  })

  it('of success, after the order has really been closed: refunded once, the order stays closed', async () => {
    const key = newKey()
    await scene.books.fault({ method: 'POST', path: '/v1/payment_intents', fault: 'drop_before' })
    const { json } = await scene.shop.checkout(key)
    await scene.books.noFaults()
    expect(json.status).toBe('needs_reconcile')
    // Everything that was sent must have arrived by now; the customer does not wait any more.
    const past = new Date(Date.now() - 3_600_000)
    await scene.db
      .updateTable('orders')
      .set({ created_at: past, last_send_before: past, expires_at: past, next_ask_at: past })
      .where('order_id', '=', json.id)
      .execute()
    await recoverOrders(deps)
    expect((await orderRow(json.id)).status).toBe('canceled')

    // A packet that the network had kept for an hour.
    const { id: intent } = (await providerCall(
      scene,
      'POST',
      'payment_intents',
      {
        amount: '1250',
        currency: 'eur',
        confirm: 'true',
        payment_method: 'pm_card_visa',
        'payment_method_types[]': 'card',
        'metadata[tenant]': 'ten_demo',
        'metadata[order]': json.id,
        'metadata[key]': key,
      },
      { 'idempotency-key': `ten_demo:${key}`, 'stripe-version': '2026-08-26.dahlia' },
    )) as { id: string }
    const events = [await about('payment_intent.succeeded', intent), await about('payment_intent.succeeded', intent)]
    await tell(...events, ...events)
    await tell(await about('payment_intent.payment_failed', intent, { status: 'requires_payment_method' }))
    await until(async () => (await runJobs(deps)) === 0)
    expect((await orderRow(json.id)).status).toBe('canceled')
    expect(await transfers(json.id)).toEqual(['late_capture 1250', 'late_refund 1250'])
    const [payment] = await scene.books.paymentsFor(key)
    expect(payment?.refunds).toMatchObject([{ amount: 1250, status: 'succeeded' }])
  })
})

describe('3-D Secure', () => {
  it('that fails is closed at the provider and then here; stock and cart are free', async () => {
    const before = await stock('tee')
    const cartId = newKey()
    const { order, intent } = await waitingOrder({ items: [{ sku: 'tee', quantity: 2 }], cart_id: cartId })
    await scene.books.act(intent, 'fail')
    await tell(await about('payment_intent.payment_failed', intent))
    expect((await orderRow(order)).status).toBe('payment_failed')
    expect(await story(order)).toEqual([
      'pending requires_action answer',
      'requires_action payment_failed notification',
    ])
    expect(await stock('tee')).toBe(before)
    const payments = await scene.books.payments()
    expect(payments.find(({ id }) => id === intent)?.status).toBe('canceled')
    const next = await scene.shop.checkout(newKey(), cart({ items: [{ sku: 'tee', quantity: 1 }], cart_id: cartId }))
    expect(next.status).toBe(201)
  })

  it('that is still under way goes on waiting, with the client secret', async () => {
    const { order, intent, key } = await waitingOrder()
    await tell(await about('payment_intent.requires_action', intent))
    expect(await orderRow(order)).toMatchObject({
      status: 'requires_action',
      client_secret: expect.stringMatching(/^pi_/),
    })
    const repeat = await scene.shop.checkout(key, cart(waiting))
    expect(repeat.json.payment.client_secret).toMatch(/^pi_/)
    await scene.books.act(intent, 'succeed')
    await tell(await about('payment_intent.succeeded', intent))
  })

  it('that nobody finishes is canceled at the provider’s side too: the news settles it', async () => {
    const { order, intent } = await waitingOrder()
    await providerCall(scene, 'POST', `payment_intents/${intent}/cancel`)
    await tell(await about('payment_intent.canceled', intent))
    expect(await story(order)).toEqual(['pending requires_action answer', 'requires_action canceled notification'])
  })
})

describe('a hold', () => {
  it('is told of, captured at the dashboard, and settles as paid with what was captured', async () => {
    const { order, intent } = await waitingOrder({ capture: 'manual' })
    await scene.books.act(intent, 'succeed')
    await tell(await about('payment_intent.amount_capturable_updated', intent))
    expect((await orderRow(order)).status).toBe('authorized')
    await providerCall(scene, 'POST', `payment_intents/${intent}/capture`, { amount_to_capture: '1000' })
    await tell(await about('payment_intent.succeeded', intent))
    expect(await orderRow(order)).toMatchObject({ status: 'paid', captured: 1000 })
    expect(await transfers(order)).toEqual(['capture 1000'])
  })

  it('that lapses at the provider ends the order and frees its stock', async () => {
    const before = await stock('poster')
    const { order, intent } = await waitingOrder({ capture: 'manual', items: [{ sku: 'poster', quantity: 1 }] })
    await scene.books.act(intent, 'succeed')
    await tell(await about('payment_intent.amount_capturable_updated', intent))
    await scene.books.control('POST', `/payment_intents/${intent}/expire`)
    await tell(await about('payment_intent.canceled', intent))
    expect((await orderRow(order)).status).toBe('canceled')
    expect(await stock('poster')).toBe(before)
  })
})

describe('the end of a metered run', () => {
  it('that its notification tells before the slow capture answers: captured once, the excess unbilled once', async () => {
    await scene.backend.put('/v1/meters/cents', { price: 1, per: 1, currency: 'EUR' })
    const runId = await activeRun(scene.backend)
    await use(scene.backend, runId, 'cents', 1700)
    const answered = stopAt('hold.asked')
    const reply = finalize(scene.backend, runId)
    await answered.reached
    const { order_id: order } = (await scene.backend.get(`/v1/runs/${runId}`)).json
    await tell(await about('payment_intent.succeeded', (await orderRow(order)).intent_id as string))
    expect((await story(order)).at(-1)).toBe('authorized paid notification')
    answered.go()
    expect((await reply).json).toMatchObject({ status: 'finalized', captured: 1000, used_amount: 1700 })
    expect((await transfers(order)).sort()).toEqual(['capture 1000', 'unbilled 700'])
  })
})

describe('an event that cannot be true of its order never pays it, and is shown', () => {
  async function expectFlagged(order: string, news: Notification, reason: string): Promise<void> {
    await tell(news)
    const row = await orderRow(order)
    expect(row.status).not.toBe('paid')
    expect(row.captured).toBe(0)
    // An order that is in doubt keeps its own reason: it is shown already.
    expect(row.reconcile_reason).toBe(row.status === 'needs_reconcile' ? 'provider_error' : 'notification_mismatch')
    expect(await event(news.id)).toMatchObject({ state: 'mismatched', reason, order_id: order })
    expect(await transfers(order)).toEqual([])
  }
  const success = { status: 'succeeded', amount_received: 1250 }

  it('another amount', async () => {
    const { order, intent } = await waitingOrder()
    const news = await about('payment_intent.succeeded', intent, {
      status: 'succeeded',
      amount: 100,
      amount_received: 100,
    })
    await expectFlagged(order, news, 'amount_mismatch')
  })

  it('less received than the order costs', async () => {
    const { order, intent } = await waitingOrder()
    const news = await about('payment_intent.succeeded', intent, { status: 'succeeded', amount_received: 1 })
    await expectFlagged(order, news, 'amount_mismatch')
  })

  it('another currency', async () => {
    const { order, intent } = await waitingOrder()
    await expectFlagged(
      order,
      await about('payment_intent.succeeded', intent, { ...success, currency: 'jpy' }),
      'currency_mismatch',
    )
  })

  it('a payment whose object has not succeeded', async () => {
    const { order, intent } = await waitingOrder()
    await expectFlagged(order, await about('payment_intent.succeeded', intent), 'status_mismatch')
  })

  it('an object that is no payment', async () => {
    const { order, intent } = await waitingOrder()
    const news = await about('payment_intent.succeeded', intent, { ...success, amount: 'plenty' })
    await tell(news)
    expect((await orderRow(order)).status).toBe('requires_action')
    expect((await event(news.id))?.state).toBe('mismatched')
  })

  it('the payment of another, cheaper or equal order', async () => {
    for (const item of ['poster', 'mug']) {
      const cheap = await scene.shop.checkout(newKey(), cart({ items: [{ sku: item, quantity: 1 }] }))
      for (const dear of [await waitingOrder(), await doubtfulOrder(waiting)]) {
        const { attempt_key } = await orderRow(dear.order)
        const metadata = { tenant: 'ten_demo', order: dear.order, key: attempt_key }
        const news = await about('payment_intent.succeeded', cheap.json.payment.reference, { metadata })
        await expectFlagged(dear.order, news, 'payment_of_another')
      }
      expect(await orderRow(cheap.json.id)).toMatchObject({ status: 'paid', reconcile_reason: null })
    }
  })

  it('and is no hindrance to the true news', async () => {
    const { order, intent } = await waitingOrder()
    await expectFlagged(
      order,
      await about('payment_intent.succeeded', intent, { ...success, currency: 'usd' }),
      'currency_mismatch',
    )
    await scene.books.act(intent, 'succeed')
    await tell(await about('payment_intent.succeeded', intent))
    expect(await orderRow(order)).toMatchObject({ status: 'paid', reconcile_reason: null })
  })

  it('a payment that is wrong at the provider too goes to suspense, for a person', async () => {
    const { order, key } = await doubtfulOrder(waiting)
    const { id } = (await providerCall(
      scene,
      'POST',
      'payment_intents',
      {
        amount: '100',
        currency: 'eur',
        confirm: 'true',
        payment_method: 'pm_card_visa',
        'payment_method_types[]': 'card',
        'metadata[tenant]': 'ten_demo',
        'metadata[order]': order,
        'metadata[key]': key,
      },
      { 'stripe-version': '2026-08-26.dahlia' },
    )) as { id: string }
    const news = await about('payment_intent.succeeded', id)
    await tell(news)
    expect(await orderRow(order)).toMatchObject({
      status: 'needs_reconcile',
      reconcile_reason: 'amount_mismatch',
      captured: 0,
    })
    expect(await transfers(order)).toEqual(['mismatch 100'])
    expect(await event(news.id)).toMatchObject({ state: 'mismatched', reason: 'amount_mismatch' })
    const decided = await scene.admin.post(`/v1/admin/orders/${order}/decide`, {
      outcome: 'refund_suspense',
      reason: 'Wrong sum',
    })
    expect(decided.status).toBe(200)
    await until(async () => (await runJobs(deps)) === 0)
    const payment = (await scene.books.payments()).find((each) => each.id === id)
    expect(payment?.refunds).toMatchObject([{ amount: 100, status: 'succeeded' }])
  })
})

describe('an event that is not about an order of ours is kept without effect', () => {
  it.each<[string, (order: string, intent: string) => Promise<Notification>, string]>([
    [
      'another account',
      (_, intent) =>
        about(
          'payment_intent.succeeded',
          intent,
          { status: 'succeeded', amount_received: 1250 },
          { account: 'acct_other' },
        ),
      'other_account',
    ],
    [
      'another mode',
      (_, intent) =>
        about('payment_intent.succeeded', intent, { status: 'succeeded', amount_received: 1250 }, { livemode: true }),
      'other_mode',
    ],
    [
      'an unknown order',
      (order, intent) =>
        about('payment_intent.succeeded', intent, {
          metadata: { tenant: 'ten_demo', order: order.replace(/.$/, (c) => (c === '0' ? '1' : '0')) },
        }),
      'order_unknown',
    ],
    ['no metadata', (_, intent) => about('payment_intent.succeeded', intent, { metadata: {} }), 'not_ours'],
    [
      'another tenant',
      (order, intent) => about('payment_intent.succeeded', intent, { metadata: { tenant: 'ten_other', order } }),
      'order_unknown',
    ],
    [
      'a payment that does not exist',
      (order) =>
        Promise.resolve(
          notification('payment_intent.processing', {
            id: 'pi_none',
            object: 'payment_intent',
            status: 'processing',
            amount: 1250,
            amount_received: 0,
            amount_capturable: 0,
            currency: 'eur',
            livemode: false,
            created: 1,
            metadata: { tenant: 'ten_demo', order },
          }),
        ),
      'payment_unknown',
    ],
    [
      'a refund of nobody’s',
      () =>
        Promise.resolve(
          notification('refund.created', { id: 're_none', object: 'refund', payment_intent: 'pi_none', amount: 1 }),
        ),
      'payment_unknown',
    ],
    [
      'a dispute without a payment',
      () =>
        Promise.resolve(
          notification('charge.dispute.created', { id: 'du_none', object: 'dispute', charge: 'ch_none' }),
        ),
      'no_payment',
    ],
  ])('%s', async (_what, make, reason) => {
    const { order, intent } = await waitingOrder()
    const before = await orderRow(order)
    const news = await make(order, intent)
    await tell(news)
    expect(await event(news.id)).toMatchObject({
      state: 'foreign',
      reason,
      order_id: expect.toSatisfy((id) => id === null || id !== ''),
    })
    expect(await orderRow(order)).toEqual(before)
  })

  it('a payment of somebody else on the same account', async () => {
    const strange = (await providerCall(
      scene,
      'POST',
      'payment_intents',
      {
        amount: '500',
        currency: 'eur',
        confirm: 'true',
        payment_method: 'pm_card_visa',
        'payment_method_types[]': 'card',
      },
      { 'stripe-version': '2026-08-26.dahlia' },
    )) as { id: string; latest_charge: string }
    const refund = await scene.books.control('POST', '/refunds', { payment_intent: strange.id })
    const events = [
      await about('payment_intent.succeeded', strange.id),
      notification('refund.created', refund as Record<string, unknown>),
    ]
    await tell(...events)
    for (const { id } of events)
      expect(await event(id)).toMatchObject({ state: 'foreign', reason: 'not_ours', order_id: null })
  })
})

describe('a tenant with an account of its own', () => {
  it('is told of its payments by events of that account; the same from any other is foreign', async () => {
    const account = 'acct_1Connected'
    await scene.db
      .updateTable('tenants')
      .set({ connected_account: account })
      .where('tenant_id', '=', 'ten_other')
      .execute()
    const shop = scene.shop.withKey(keys.otherStorefront)
    const { json } = await shop.checkout(newKey(), cart(waiting))
    expect(json.status).toBe('requires_action')
    const intent = json.payment.reference
    await scene.books.act(intent, 'succeed')
    const object = await providerCall(scene, 'GET', `payment_intents/${intent}`, {}, { 'stripe-account': account })
    const foreign = [{}, { account: 'acct_1Other' }].map((from) =>
      notification('payment_intent.succeeded', object, from),
    )
    await tell(...foreign)
    for (const { id } of foreign) expect(await event(id)).toMatchObject({ state: 'foreign', reason: 'other_account' })
    expect((await orderRow(json.id)).status).toBe('requires_action')
    const news = notification('payment_intent.succeeded', object, { account })
    await tell(news)
    expect(await event(news.id)).toMatchObject({ state: 'done', reason: 'settled' })
    expect((await orderRow(json.id)).status).toBe('paid')
    // A refund at the dashboard names the payment alone; its own account knows whose that is.
    const refund = await scene.books.control('POST', '/refunds', { payment_intent: intent, amount: 200 })
    const refunded = notification('refund.created', refund as Record<string, unknown>, { account })
    await tell(refunded)
    expect(await event(refunded.id)).toMatchObject({ state: 'done', reason: 'applied', order_id: json.id })
    expect((await orderRow(json.id)).refunded).toBe(200)
  })
})

describe('an event while the provider cannot be asked', () => {
  it('waits, is tried again, and an operator can replay it', async () => {
    const { order, intent } = await doubtfulOrder()
    const news = await about('payment_intent.succeeded', intent)
    await scene.books.fault({ method: 'GET', path: '/v1/payment_intents', fault: 'error_before' })
    await tell(news)
    expect(await event(news.id)).toMatchObject({ state: 'waiting' })
    const job = await scene.db
      .selectFrom('jobs')
      .selectAll()
      .where('business_id', '=', news.id)
      .executeTakeFirstOrThrow()
    expect(job).toMatchObject({ state: 'ready', attempts: 1, last_error: 'provider_error' })
    await expect(replayEvent(deps, news.id)).rejects.toMatchObject({ code: 'provider_unavailable' })
    await scene.books.noFaults()
    expect(await replayEvent(deps, news.id)).toMatchObject({ state: 'done', reason: 'settled' })
    expect((await orderRow(order)).status).toBe('paid')
    await scene.db
      .updateTable('jobs')
      .set({ run_at: new Date(0) })
      .where('business_id', '=', news.id)
      .execute()
    await runJobs(deps)
    expect(await transfers(order)).toEqual(['capture 1250'])
  })

  it('replays of any event change nothing more; an unknown one is not found', async () => {
    const { order, intent } = await waitingOrder()
    await scene.books.act(intent, 'succeed')
    const news = await about('payment_intent.succeeded', intent)
    await tell(news)
    const before = await orderRow(order)
    expect(await replayEvent(deps, news.id)).toMatchObject({ state: 'done' })
    expect(await orderRow(order)).toEqual(before)
    await expect(replayEvent(deps, 'evt_none')).rejects.toMatchObject({ code: 'not_found' })
  })
})

/** The process stops at the point, once. */
function stopAt(point: string): { reached: Promise<void>; go: () => void } {
  let go: () => void = () => {}
  const held = new Promise<void>((resolve) => {
    go = resolve
  })
  const reached = new Promise<void>((resolve) => {
    let stopped = false
    armCheckpoints((at) => {
      if (at !== point || stopped) return
      stopped = true
      resolve()
      return held
    })
  })
  return { reached, go }
}

async function stock(sku: string): Promise<number> {
  return (await scene.shop.get(`/v1/products/${sku}`)).json.available
}
