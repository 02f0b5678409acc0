/**
 * Every sequence of up to four events about a payment, in every order, with repeats (the same event delivered again, or
 * another one with the same news): whatever arrives, the order ends as the provider's books have the payment. Which kinds
 * can exist follows from what happened at the provider; those that are not final may be as old and out of turn as they like.
 */
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Deps } from '../../src/deps.ts'
import type { OrderStatus } from '../../src/domain/order.ts'
import { Gate } from '../../src/runtime/gate.ts'
import { recoverOrders } from '../../src/workers/recover-orders.ts'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import { cart } from '../support/client.ts'
import { inParallel } from '../support/in-parallel.ts'
import { deliver, type Notification, notification, providerCall, providerObject } from '../support/notifications.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { sequencesOf } from '../support/sequences.ts'

let scene: Scene
let deps: Deps
beforeAll(async () => {
  scene = await startScene()
  deps = { ...scene.service.deps, gate: new Gate({ perSecond: 10_000, customersMax: 100, patienceMs: 0 }) }
  await scene.books.webhooks({ drop: 1 })
})
afterAll(() => scene.stop())

const total = 1250
const nothing = { amount_received: 0, amount_capturable: 0 }
/** What an event of each kind tells of the payment; null: as it is. */
const kinds: Record<string, Record<string, unknown> | null> = {
  succeeded: null,
  canceled: null,
  payment_failed: {
    ...nothing,
    status: 'requires_payment_method',
    last_payment_error: { code: 'payment_intent_authentication_failure' },
  },
  requires_action: { ...nothing, status: 'requires_action' },
  processing: { ...nothing, status: 'processing' },
  amount_capturable_updated: { status: 'requires_capture', amount_received: 0, amount_capturable: total },
}
type Sequence = readonly string[]

interface Truth {
  name: string
  capture: 'automatic' | 'manual'
  /** What happens at the provider. */
  happens(intent: string): Promise<unknown>
  kinds: string[]
  end: { status: OrderStatus; captured: number; payment: string }
}

const truths: Truth[] = [
  {
    name: 'is paid',
    capture: 'automatic',
    happens: (intent) => scene.books.act(intent, 'succeed'),
    kinds: ['succeeded', 'payment_failed', 'requires_action', 'processing'],
    end: { status: 'paid', captured: total, payment: 'succeeded' },
  },
  {
    name: 'fails',
    capture: 'automatic',
    happens: (intent) => scene.books.act(intent, 'fail'),
    kinds: ['payment_failed', 'requires_action', 'processing'],
    end: { status: 'payment_failed', captured: 0, payment: 'canceled' },
  },
  {
    name: 'is canceled at the dashboard',
    capture: 'automatic',
    happens: (intent) => providerCall(scene, 'POST', `payment_intents/${intent}/cancel`),
    kinds: ['canceled', 'payment_failed', 'requires_action'],
    end: { status: 'canceled', captured: 0, payment: 'canceled' },
  },
  {
    name: 'goes on waiting',
    capture: 'automatic',
    happens: async () => {},
    kinds: ['payment_failed', 'requires_action', 'processing'],
    end: { status: 'requires_action', captured: 0, payment: 'requires_action' },
  },
  {
    name: 'is authorized',
    capture: 'manual',
    happens: (intent) => scene.books.act(intent, 'succeed'),
    kinds: ['amount_capturable_updated', 'payment_failed', 'processing'],
    end: { status: 'authorized', captured: 0, payment: 'requires_capture' },
  },
  {
    name: 'is authorized and captured in part at the dashboard',
    capture: 'manual',
    async happens(intent) {
      await scene.books.act(intent, 'succeed')
      await providerCall(scene, 'POST', `payment_intents/${intent}/capture`, { amount_to_capture: '1000' })
    },
    kinds: ['succeeded', 'amount_capturable_updated', 'payment_failed', 'requires_action'],
    end: { status: 'paid', captured: 1000, payment: 'succeeded' },
  },
  {
    name: 'is authorized and lapses',
    capture: 'manual',
    async happens(intent) {
      await scene.books.act(intent, 'succeed')
      await scene.books.control('POST', `/payment_intents/${intent}/expire`)
    },
    kinds: ['canceled', 'amount_capturable_updated', 'payment_failed'],
    end: { status: 'canceled', captured: 0, payment: 'canceled' },
  },
]

interface Run {
  key: string
  order: string
  intent: string
  sequence: Sequence
  object: Record<string, unknown>
  sent: Map<string, Notification>
}

it.each(truths)('a payment that $name', { timeout: 180_000 }, async (truth) => {
  const sequences = sequencesOf(4, truth.kinds)
  // Of every second one the answer was lost, so that the order does not know its payment.
  const known = await placeOrders(
    sequences.filter((_, i) => i % 2 === 0),
    truth,
  )
  await scene.books.fault({ method: 'POST', path: '/v1/payment_intents', fault: 'error_after' })
  const lost = await placeOrders(
    sequences.filter((_, i) => i % 2 === 1),
    truth,
  )
  await scene.books.noFaults()
  const runs = [...known, ...lost]
  await nameIntents(runs)
  await inParallel(runs, async (run) => {
    await truth.happens(run.intent)
    run.object = await providerObject(scene, `payment_intents/${run.intent}`)
  })
  await tellAll(runs, truth.end)
})

it('a payment that succeeds after its order has been closed: given back once', { timeout: 180_000 }, async () => {
  const sequences = sequencesOf(3, ['succeeded', 'payment_failed', 'requires_action', 'processing'])
  await scene.books.fault({ method: 'POST', path: '/v1/payment_intents', fault: 'error_before' })
  const runs = await placeOrders(sequences, { capture: 'automatic' })
  await scene.books.noFaults()
  // Everything that was sent must have arrived by now, and the customers do not wait any more.
  const past = new Date(Date.now() - 3_600_000)
  await scene.db
    .updateTable('orders')
    .set({ created_at: past, last_send_before: past, expires_at: past, next_ask_at: past })
    .where(
      'order_id',
      'in',
      runs.map(({ order }) => order),
    )
    .execute()
  while ((await recoverOrders(deps)) > 0);
  await inParallel(runs, async (run) => {
    // A call that the network had kept for an hour.
    run.object = await providerCall(scene, 'POST', 'payment_intents', lateCharge(run), {
      'stripe-version': '2026-08-26.dahlia',
    })
    run.intent = run.object.id as string
  })
  await tellAll(runs, { status: 'canceled', captured: 0, payment: 'succeeded' })
  const refunds = new Map((await scene.books.payments()).map(({ id, refunds }) => [id, refunds]))
  for (const { intent } of runs) expect(refunds.get(intent)).toMatchObject([{ amount: total, status: 'succeeded' }])
})

it('leaves books in which everything adds up', async () => {
  await expectBooksInOrder(scene, { unfinished: true })
})

function placeOrders(sequences: Sequence[], { capture }: Pick<Truth, 'capture'>): Promise<Run[]> {
  return inParallel(sequences, async (sequence) => {
    const key = newKey()
    const body = cart({ payment_method: 'pm_card_threeDSecure2Required', capture })
    const { status, json } = await scene.shop.checkout(key, body)
    expect(status).toBe(202)
    return { key, order: json.id as string, intent: '', sequence, object: {}, sent: new Map() }
  })
}

async function nameIntents(runs: Run[]): Promise<void> {
  const intents = new Map((await scene.books.payments()).map((payment) => [payment.metadata.order, payment.id]))
  for (const run of runs) run.intent = intents.get(run.order) as string
}

/** Place by place, so that each sequence has its order. One event of any kind is enough for the right end, and none that
 * follows changes it. */
async function tellAll(runs: Run[], end: Truth['end']): Promise<void> {
  for (let place = 0; place < (runs[0]?.sequence.length ?? 0); place++) {
    await inParallel(runs, async (run) => {
      const kind = run.sequence[place] as string
      const before = run.sent.get(kind)
      // A repeat is now the same event again, now another one.
      const event = before !== undefined && place % 2 === 1 ? before : eventOf(run, kind)
      run.sent.set(kind, event)
      expect((await deliver(scene.service.url, event)).status).toBe(200)
    })
    await runJobs(deps)
    await expectEnds(runs, end, place)
  }
}

function eventOf(run: Run, kind: string): Notification {
  return notification(`payment_intent.${kind}`, { ...run.object, ...kinds[kind] })
}

async function expectEnds(runs: Run[], end: Truth['end'], place: number): Promise<void> {
  const ids = runs.map(({ order }) => order)
  const rows = await scene.db.selectFrom('orders').selectAll().where('order_id', 'in', ids).execute()
  const orders = new Map(rows.map((row) => [row.order_id, row]))
  const payments = new Map((await scene.books.payments()).map((payment) => [payment.id, payment]))
  const wrong = runs.flatMap(({ order, intent, sequence }) => {
    const row = orders.get(order)
    const payment = payments.get(intent)
    const is = { status: row?.status, captured: row?.captured, payment: payment?.status, flag: row?.reconcile_reason }
    const ok =
      is.status === end.status && is.captured === end.captured && is.payment === end.payment && is.flag === null
    return ok ? [] : [{ after: sequence.slice(0, place + 1).join(' '), ...is }]
  })
  expect(wrong).toEqual([])

  const news = await scene.db
    .selectFrom('order_transitions')
    .select(['order_id', (select) => select.fn.countAll<number>().as('times')])
    .where('order_id', 'in', ids)
    .where('to_status', '=', end.status)
    .groupBy('order_id')
    .having((having) => having.fn.countAll(), '>', 1)
    .execute()
  expect(news).toEqual([])
  const unhandled = await scene.db
    .selectFrom('provider_events')
    .select(['event_id', 'state', 'reason'])
    .where('order_id', 'in', ids)
    .where('state', '<>', 'done')
    .execute()
  expect(unhandled).toEqual([])
}

function lateCharge({ key, order }: Run): Record<string, string> {
  return {
    amount: String(total),
    currency: 'eur',
    confirm: 'true',
    payment_method: 'pm_card_visa',
    'payment_method_types[]': 'card',
    'metadata[tenant]': 'ten_demo',
    'metadata[order]': order,
    'metadata[key]': key,
  }
}
