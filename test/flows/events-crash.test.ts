/** A worker is killed at each named step of applying an event, and another one takes over: every effect happens once. */
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import type { Deps } from '../../src/deps.ts'
import { Gate } from '../../src/runtime/gate.ts'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import { cart } from '../support/client.ts'
import { paidAfterCancel } from '../support/money-back.ts'
import { deliver, type Notification, notification, providerObject } from '../support/notifications.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { startServiceProcess } from '../support/service-process.ts'
import { until } from '../support/until.ts'

let scene: Scene
let deps: Deps
beforeAll(async () => {
  scene = await startScene()
  deps = { ...scene.service.deps, gate: new Gate({ perSecond: 1000, customersMax: 100, patienceMs: 0 }) }
  await scene.books.webhooks({ drop: 1 })
})
afterEach(() => scene.books.noFaults())
afterAll(async () => {
  await expectBooksInOrder(scene)
  await scene.stop()
})

interface Placed {
  order: string
  intent: string
}

async function waitingOrder(): Promise<Placed> {
  const { json } = await scene.shop.checkout(newKey(), cart({ payment_method: 'pm_card_threeDSecure2Required' }))
  expect(json.status).toBe('requires_action')
  return { order: json.id, intent: json.payment.reference }
}

async function doubtfulOrder(): Promise<Placed> {
  const key = newKey()
  await scene.books.fault({ method: 'POST', path: '/v1/payment_intents', fault: 'error_after', times: 1 })
  const { json } = await scene.shop.checkout(key, cart())
  expect(json.status).toBe('needs_reconcile')
  return { order: json.id, intent: (await scene.books.paymentsFor(key))[0]?.id as string }
}

const succeeded = (object: Record<string, unknown>) => notification('payment_intent.succeeded', object)

/** What the news is, the steps on its way, and what it comes to. */
const news: [string, () => Promise<[Placed, (object: Record<string, unknown>) => Notification]>, string[], Ending][] = [
  [
    'a payment that has succeeded',
    async () => {
      const placed = await waitingOrder()
      await scene.books.act(placed.intent, 'succeed')
      return [placed, succeeded]
    },
    [
      'jobs.taken',
      'events.read',
      'events.found',
      'settle.deciding_paid',
      'settle.decided_paid',
      'events.applied',
      'events.ended',
    ],
    { status: 'paid', transfers: ['capture 1250'] },
  ],
  [
    'a payment of which the answer was lost',
    async () => [await doubtfulOrder(), (object) => notification('payment_intent.requires_action', object)],
    ['settle.decided_paid'],
    { status: 'paid', transfers: ['capture 1250'] },
  ],
  [
    '3-D Secure that has failed',
    async () => {
      const placed = await waitingOrder()
      await scene.books.act(placed.intent, 'fail')
      return [placed, (object) => notification('payment_intent.payment_failed', object)]
    },
    ['recovery.asked', 'recovery.closed', 'settle.decided_payment_failed'],
    { status: 'payment_failed', transfers: [] },
  ],
  [
    'money for an order that has ended',
    async () => {
      const { id, intent } = await paidAfterCancel(scene)
      return [{ order: id, intent }, succeeded]
    },
    ['settle.decided_needs_reconcile', 'unexpected_money.recorded', 'events.applied', 'late_money.asked'],
    { status: 'canceled', transfers: ['late_capture 1250', 'late_refund 1250'] },
  ],
]

interface Ending {
  status: string
  transfers: string[]
}

const deaths = news.flatMap(([what, place, steps, ending]) => steps.map((step) => ({ what, step, place, ending })))

it.each(deaths)('killed at $step with news of $what', async ({ step, place, ending }) => {
  const [{ order, intent }, about] = await place()
  const event = about(await providerObject(scene, `payment_intents/${intent}`))
  const victim = await startServiceProcess(scene.env({ ROLES: 'worker', RECOVERY_INTERVAL_MS: '3600000' }), {
    [step]: { do: 'kill' },
  })
  await deliver(scene.service.url, event)
  await victim.gone
  await deliver(scene.service.url, event)
  // Its leases have ended.
  await scene.db
    .updateTable('jobs')
    .set({ run_at: new Date(0) })
    .where('state', '=', 'ready')
    .execute()
  await until(async () => {
    await runJobs(deps)
    return isQuiet(order, event)
  })

  const row = await scene.db.selectFrom('orders').select('status').where('order_id', '=', order).executeTakeFirst()
  expect(row?.status).toBe(ending.status)
  const transfers = await scene.db
    .selectFrom('ledger_transfers')
    .select(['kind', 'amount'])
    .where('order_id', '=', order)
    .orderBy('created_at')
    .execute()
  expect(transfers.map(({ kind, amount }) => `${kind} ${amount}`)).toEqual(ending.transfers)
  const ends = await scene.db
    .selectFrom('order_transitions')
    .select('to_status')
    .where('order_id', '=', order)
    .where('to_status', '=', ending.status as 'paid')
    .execute()
  expect(ends).toHaveLength(1)
  const payment = (await scene.books.payments()).find(({ id }) => id === intent)
  expect(payment?.refunds.length).toBe(ending.transfers.includes('late_refund 1250') ? 1 : 0)
})

/** Nothing of the event or of what follows from it for the provider is left to do. */
async function isQuiet(order: string, event: Notification): Promise<boolean> {
  const left = await scene.db
    .selectFrom('jobs')
    .select('business_id')
    .where('state', '=', 'ready')
    .where('topic', 'in', ['provider_event', 'close_payment', 'refund_late_payment'])
    .execute()
  const row = await scene.db
    .selectFrom('provider_events')
    .select('order_id')
    .where('event_id', '=', event.id)
    .where('state', '<>', 'waiting')
    .executeTakeFirst()
  return left.length === 0 && row?.order_id === order
}
