/**
 * Every sequence of events about money that goes back, in every order, with repeats: refunds made at the dashboard, one
 * that fails later, disputes won and lost. What an order owes is what the news so far tells, whatever came first.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Deps } from '../../src/deps.ts'
import { Gate } from '../../src/runtime/gate.ts'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import { cart } from '../support/client.ts'
import { inParallel } from '../support/in-parallel.ts'
import { deliver, type Notification, notification, providerObject } from '../support/notifications.ts'
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

interface Paid {
  order: string
  intent: string
  charge: string
}
/** What has become of the order's 1250. */
interface Expected {
  refunded: number
  disputed: number
  /** In the provider's balance, by the ledger. */
  kept: number
}
type Objects = Record<string, Record<string, unknown>>

/** The kinds of events, what each is about, and what all those seen so far come to. */
interface Case {
  name: string
  length: number
  /** `type`, or `type status` where the object's status at the time matters. */
  kinds: string[]
  happens(paid: Paid): Promise<Objects>
  expected(seen: ReadonlySet<string>): Expected
}

const untouched = { refunded: 0, disputed: 0, kept: 1250 }
const isRefundNews = (kind: string) => kind.includes('refund')

const cases: Case[] = [
  {
    name: 'a refund made at the dashboard',
    length: 3,
    kinds: [
      'payment_intent.processing',
      'charge.refunded',
      'refund.created',
      'refund.updated',
      'charge.refund.updated',
    ],
    async happens({ intent, charge }) {
      const refund = await dashboardRefund(intent, 400)
      return { refund, charge: await providerObject(scene, `charges/${charge}`) }
    },
    expected: (seen) => ([...seen].some(isRefundNews) ? { refunded: 400, disputed: 0, kept: 850 } : untouched),
  },
  {
    name: 'two refunds made at the dashboard, of which one fails later',
    length: 3,
    kinds: ['charge.refunded', 'refund.created succeeded', 'refund.failed', 'refund.updated'],
    async happens({ intent, charge }) {
      await dashboardRefund(intent, 250)
      const { id } = await dashboardRefund(intent, 400)
      const refund = await scene.books.control('POST', `/refunds/${id}`, { status: 'failed' })
      return { refund: refund as Objects[string], charge: await providerObject(scene, `charges/${charge}`) }
    },
    expected: () => ({ refunded: 250, disputed: 0, kept: 1000 }),
  },
  {
    name: 'a dispute that is lost',
    length: 4,
    kinds: [
      'charge.dispute.created needs_response',
      'charge.dispute.funds_withdrawn needs_response',
      'charge.dispute.closed lost',
    ],
    happens: ({ intent }) => dispute(intent, 1250, 'lost'),
    expected: (seen) => ({
      refunded: 0,
      disputed: 1250,
      kept: seen.size > 1 || !seen.has('charge.dispute.created needs_response') ? 0 : 1250,
    }),
  },
  {
    name: 'a dispute that is won',
    length: 4,
    kinds: [
      'charge.dispute.created needs_response',
      'charge.dispute.funds_withdrawn needs_response',
      'charge.dispute.funds_reinstated won',
      'charge.dispute.closed won',
    ],
    happens: ({ intent }) => dispute(intent, 500, 'won'),
    expected(seen) {
      const isWon = seen.has('charge.dispute.closed won') || seen.has('charge.dispute.funds_reinstated won')
      if (isWon) return untouched
      return {
        refunded: 0,
        disputed: 500,
        kept: seen.has('charge.dispute.funds_withdrawn needs_response') ? 750 : 1250,
      }
    },
  },
  {
    name: 'an inquiry that comes to nothing',
    length: 3,
    kinds: ['charge.dispute.created warning_needs_response', 'charge.dispute.closed warning_closed'],
    async happens({ intent }) {
      const opened = await openDispute(intent, 500, 'warning_needs_response')
      return { dispute: await moveDispute(opened, 'warning_closed') }
    },
    expected: () => untouched,
  },
  {
    name: 'a refund and a dispute of the rest',
    length: 3,
    kinds: [
      'charge.refunded',
      'refund.created',
      'charge.dispute.created needs_response',
      'charge.dispute.funds_withdrawn needs_response',
    ],
    async happens({ intent, charge }) {
      const refund = await dashboardRefund(intent, 400)
      const opened = await openDispute(intent, 850, 'needs_response')
      return { refund, dispute: opened, charge: await providerObject(scene, `charges/${charge}`) }
    },
    expected(seen) {
      const refunded = [...seen].some(isRefundNews) ? 400 : 0
      const disputed = [...seen].some((kind) => kind.includes('dispute')) ? 850 : 0
      const withdrawn = seen.has('charge.dispute.funds_withdrawn needs_response') ? 850 : 0
      return { refunded, disputed, kept: 1250 - refunded - withdrawn }
    },
  },
]

describe.each(cases)('$name', ({ length, kinds, happens, expected }) => {
  it(`in every sequence of up to ${length} events`, { timeout: 180_000 }, async () => {
    const runs = await inParallel(sequencesOf(length, kinds), async (sequence) => {
      const paid = await placeOrder()
      return { ...paid, sequence, objects: await happens(paid), sent: new Map<string, Notification>() }
    })
    for (let place = 0; place < length; place++) {
      await inParallel(runs, async ({ sequence, objects, sent }) => {
        const kind = sequence[place] as string
        const before = sent.get(kind)
        // A repeat is now the same event again, now another one.
        const event = before !== undefined && place % 2 === 1 ? before : eventOf(kind, objects)
        sent.set(kind, event)
        expect((await deliver(scene.service.url, event)).status).toBe(200)
      })
      await runJobs(deps)
      const is = await standing(runs.map(({ order }) => order))
      const wrong = runs.flatMap(({ order, sequence }) => {
        const seen = sequence.slice(0, place + 1)
        const should = expected(new Set(seen))
        const found = is.get(order)
        return JSON.stringify(found) === JSON.stringify(should) ? [] : [{ after: seen.join(', '), found, should }]
      })
      expect(wrong).toEqual([])
    }
    // Where the news of a refund has not come at all, it comes now.
    const late = runs.filter(({ objects }) => objects.charge !== undefined)
    await inParallel(late, ({ objects }) => deliver(scene.service.url, eventOf('charge.refunded', objects)))
    await runJobs(deps)
    const unhandled = await scene.db
      .selectFrom('provider_events')
      .select(['event_id', 'type', 'state', 'reason'])
      .where('state', '<>', 'done')
      .execute()
    expect(unhandled).toEqual([])
  })
})

it('leaves books in which everything adds up', async () => {
  await expectBooksInOrder(scene, { unfinished: true })
})

async function placeOrder(): Promise<Paid> {
  const { status, json } = await scene.shop.checkout(newKey(), cart())
  expect(status).toBe(201)
  const intent = json.payment.reference as string
  const { latest_charge } = await providerObject(scene, `payment_intents/${intent}`)
  return { order: json.id, intent, charge: latest_charge as string }
}

function eventOf(kind: string, objects: Objects): Notification {
  const [type = '', status] = kind.split(' ')
  const about = type.startsWith('charge.dispute') ? 'dispute' : type === 'charge.refunded' ? 'charge' : 'refund'
  if (type.startsWith('payment_intent')) return notification(type, payment(objects))
  return notification(type, { ...objects[about], ...(status === undefined ? {} : { status }) })
}

/** News of the payment itself, which moves no money that goes back. */
function payment({ charge }: Objects): Record<string, unknown> {
  return {
    id: charge?.payment_intent,
    object: 'payment_intent',
    status: 'processing',
    amount: 1250,
    amount_received: 0,
    amount_capturable: 0,
    currency: 'eur',
    livemode: false,
    created: 1,
    metadata: charge?.metadata,
  }
}

async function standing(orders: string[]): Promise<Map<string, Expected>> {
  const rows = await scene.db
    .selectFrom('orders')
    .select(['order_id', 'refunded', 'disputed_amount'])
    .where('order_id', 'in', orders)
    .execute()
  const transfers = await scene.db
    .selectFrom('ledger_transfers')
    .select(['order_id', 'debit_account', 'credit_account', 'amount'])
    .where('order_id', 'in', orders)
    .execute()
  const kept = new Map<string, number>()
  for (const { order_id, debit_account, credit_account, amount } of transfers) {
    const moved = debit_account === 'provider_balance' ? amount : credit_account === 'provider_balance' ? -amount : 0
    kept.set(order_id, (kept.get(order_id) ?? 0) + moved)
  }
  return new Map(
    rows.map((row) => [
      row.order_id,
      { refunded: row.refunded, disputed: row.disputed_amount, kept: kept.get(row.order_id) ?? 0 },
    ]),
  )
}

async function dashboardRefund(intent: string, amount: number): Promise<Objects[string]> {
  return (await scene.books.control('POST', '/refunds', { payment_intent: intent, amount })) as Objects[string]
}

async function openDispute(intent: string, amount: number, status: string): Promise<Objects[string]> {
  return (await scene.books.control('POST', '/disputes', { payment_intent: intent, amount, status })) as Objects[string]
}

async function moveDispute({ id }: Objects[string], outcome: string): Promise<Objects[string]> {
  return (await scene.books.control('POST', `/disputes/${id}`, { outcome })) as Objects[string]
}

async function dispute(intent: string, amount: number, outcome: 'won' | 'lost'): Promise<Objects> {
  return { dispute: await moveDispute(await openDispute(intent, amount, 'needs_response'), outcome) }
}
