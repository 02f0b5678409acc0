/**
 * A worker is killed at every step of applying a notification that moves money back, the provider delivers everything
 * again, and a new process goes on. Each effect is there once.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { orderOf } from '../support/aging.ts'
import { audit } from '../support/audit.ts'
import { endAllLeases, strandAndKill, takeOver } from '../support/deaths.ts'
import { type Audience, type Effects, effectsOf, startAudience } from '../support/effects.ts'
import { type Placed, paidAfterCancel, place, refund, unhurried } from '../support/money-back.ts'
import { deliver, deliverAgain, type Notification, notificationsOf, providerCall } from '../support/notifications.ts'
import { type Scene, startScene } from '../support/scene.ts'
import { startServiceProcess } from '../support/service-process.ts'
import { until } from '../support/until.ts'
import { expectKilledAtEachStep } from './steps.ts'

interface Case {
  points: string[]
  /** What has happened at the provider, and nobody has told us of. */
  happen(): Promise<Placed>
  /** The news of it. */
  type: string
  effects: Partial<Effects>
}

const paid: Effects = {
  status: 'paid',
  story: ['pending to paid'],
  payments: ['2500 succeeded'],
  refunds: [],
  disputes: [],
  ledger: ['2500 capture'],
  stock: ['2 reserve'],
  refundRows: [],
  disputeRows: [],
  mailed: ['paid'],
  told: ['order.paid'],
}
const disputed: Partial<Effects> = {
  disputes: ['2500 needs_response'],
  disputeRows: ['2500 needs_response'],
  ledger: ['2500 capture', '2500 dispute_withdrawn'],
  told: ['order.disputed', 'order.paid'],
}
const won: Partial<Effects> = {
  ...disputed,
  disputes: ['2500 won'],
  disputeRows: ['2500 won'],
  ledger: ['2500 capture', '2500 dispute_reinstated', '2500 dispute_withdrawn'],
}
const refunded: Partial<Effects> = {
  refunds: ['800 succeeded'],
  refundRows: ['800 succeeded'],
  ledger: ['2500 capture', '800 refund'],
  mailed: ['paid', 'refunded'],
  told: ['order.paid', 'order.refunded'],
}

const dispute = async ({ intent }: Placed) =>
  (await scene.books.control('POST', '/disputes', { payment_intent: intent })) as { id: string }

/** As many as one worker takes of a tenant's notifications at once, less one for those that come before. */
const victims: Record<string, Case>[] = [
  {
    'a dispute that opens': {
      points: ['dispute.applying', 'dispute.applied'],
      async happen() {
        const order = await place(scene)
        await dispute(order)
        return order
      },
      type: 'charge.dispute.created',
      effects: disputed,
    },
    'a dispute whose money is withdrawn': {
      points: ['dispute.applying', 'dispute.applied'],
      async happen() {
        const order = await place(scene)
        await dispute(order)
        return order
      },
      type: 'charge.dispute.funds_withdrawn',
      effects: disputed,
    },
    'a dispute that is won': {
      points: ['dispute.applying', 'dispute.applied'],
      async happen() {
        const order = await place(scene)
        const { id } = await dispute(order)
        await applied(await newsOf(order))
        await scene.books.control('POST', `/disputes/${id}`, { outcome: 'won' })
        return order
      },
      type: 'charge.dispute.funds_reinstated',
      effects: won,
    },
  },
  {
    'a refund that was made in the dashboard': {
      points: ['provider_refunds.listed', 'provider_refunds.adopted'],
      async happen() {
        const order = await place(scene)
        await scene.books.control('POST', '/refunds', { payment_intent: order.intent, amount: 800 })
        return order
      },
      type: 'refund.created',
      effects: refunded,
    },
    'a refund of ours, of which the answer was lost': {
      points: ['refund.deciding_succeeded', 'refund.decided_succeeded'],
      async happen() {
        const order = await place(scene)
        await scene.books.fault({ method: 'POST', path: '/v1/refunds', fault: 'error_after', times: 1 })
        expect((await refund(scene.backend, order.id, { amount: 800 })).status).toBe(202)
        return order
      },
      type: 'refund.created',
      effects: refunded,
    },
    'a refund that the bank sends back': {
      points: ['refund.deciding_failed', 'refund.decided_failed'],
      async happen() {
        const order = await place(scene, { payment_method: 'pm_card_refundFail' })
        expect((await refund(scene.backend, order.id, { amount: 800 })).json.status).toBe('succeeded')
        return order
      },
      type: 'refund.failed',
      effects: {
        refunds: ['800 failed'],
        refundRows: ['800 failed'],
        ledger: ['2500 capture', '800 refund', '800 refund_reversal'],
        mailed: ['paid', 'refunded'],
        told: ['order.paid', 'order.refund_failed', 'order.refunded'],
      },
    },
  },
  {
    'a dispute of a hold that was captured in the dashboard': {
      points: ['settle.deciding_paid', 'settle.decided_paid'],
      async happen() {
        const order = await place(scene, { capture: 'manual' })
        await providerCall(scene, 'POST', `payment_intents/${order.intent}/capture`)
        await dispute(order)
        return order
      },
      type: 'charge.dispute.created',
      effects: {
        ...disputed,
        story: ['authorized to paid', 'pending to authorized'],
        mailed: ['authorized', 'paid'],
        told: ['order.authorized', 'order.disputed', 'order.paid'],
      },
    },
    'late money that was given back and that the bank sends back': {
      points: ['late_money.unbooked', 'jobs.failed'],
      happen: lateMoney,
      type: 'refund.failed',
      effects: {
        status: 'canceled',
        story: ['pending to requires_action', 'requires_action to canceled'],
        payments: ['0 canceled', '2500 succeeded'],
        refunds: ['2500 failed'],
        ledger: ['2500 late_capture', '2500 late_refund', '2500 late_refund_reversal'],
        stock: ['2 release', '2 reserve'],
        mailed: [],
        told: ['order.canceled'],
      },
    },
  },
]

interface Stranded {
  what: string
  point: string
  how: Case
  order: Placed
}

let scene: Scene
let audience: Audience
const stranded: Stranded[] = []
const named = victims.flatMap((batch) =>
  Object.entries(batch).flatMap(([what, how]) => how.points.map((point) => ({ what, point, how }))),
)

beforeAll(async () => {
  audience = await startAudience()
  scene = await startScene({ settings: audience.settings })
  await scene.books.webhooks({ drop: 1 })
  await scene.backend.put('/v1/webhook-endpoint', { url: audience.merchant.url })
  for (const batch of victims) {
    const doomed = named.filter(({ what }) => what in batch)
    const settings = {
      ...audience.settings,
      ROLES: 'worker',
      WORKER_POLL_MS: '20',
      RECOVERY_INTERVAL_MS: '3600000',
      // So long that no victim takes what another died of.
      IDEMPOTENCY_LEASE_SECONDS: '3600',
    }
    const victim = await startServiceProcess(scene.env(settings))
    const orders: Placed[] = []
    await strandAndKill(
      victim,
      doomed.map(({ what, point, how }) => ({
        point,
        async before() {
          const order = await how.happen()
          orders.push(order)
          stranded.push({ what, point, how, order })
        },
        async provoke() {
          await deliver(scene.service.url, await newsOf(orders.at(-1) as Placed, how.type))
          return undefined
        },
      })),
      // What it tells to customers and merchants of the others.
      () => until(async () => (await ready()) === stranded.length, { what: 'the rest of its work' }),
    )
  }
  await deliverAgain(scene, await notificationsOf(scene))
  await takeOver(scene, audience.settings)
}, 120_000)
afterAll(async () => {
  await scene.stop()
  await audience.stop()
})

describe('a worker killed', () => {
  it.each(named)('at $point with news of $what: each effect once', async ({ what, point, how }) => {
    const { order } = stranded.find((each) => each.what === what && each.point === point) as Stranded
    expect(await effectsOf(scene, audience, order.id)).toEqual({ ...paid, ...how.effects })
  })

  it('leaves what the bank sends back of late money to a person, once', async () => {
    const late = stranded.filter(({ how }) => how.happen === lateMoney)
    for (const { order } of late) {
      expect((await orderOf(scene.db, order.key)).reconcile_reason).toBe('late_refund_failed')
      const jobs = await scene.db
        .selectFrom('jobs')
        .select(['state', 'last_error'])
        .where('topic', '=', 'refund_late_payment')
        .where('business_id', '=', order.intent)
        .execute()
      expect(jobs).toEqual([{ state: 'dead', last_error: 'refund_failed' }])
    }
  })
})

it('leaves our books equal to the provider’s, and the same news once more changes nothing', async () => {
  await deliverAgain(scene, (await notificationsOf(scene)).reverse())
  await endAllLeases(scene)
  await runJobs(unhurried(scene.service))
  for (const { how, order } of stranded)
    expect(await effectsOf(scene, audience, order.id)).toEqual({ ...paid, ...how.effects })
  // But for the late money, for which a person finds another way.
  const late = stranded.filter(({ how }) => how.happen === lateMoney)
  expect((await audit(scene)).map(({ rule, subject }) => ({ rule, subject }))).toEqual(
    late.map(({ order }) => ({ rule: 'an order that has ended unpaid keeps no money', subject: order.id })),
  )
})

expectKilledAtEachStep(import.meta.filename)

/** Money that arrived for an order that was given up, and went back. */
async function lateMoney(): Promise<Placed> {
  const order = await paidAfterCancel(scene, {
    items: [{ sku: 'mug', quantity: 2 }],
    payment_method: 'pm_card_refundFail',
  })
  await applied([await newsOf(order, 'payment_intent.succeeded')])
  await until(async () => (await effectsOf(scene, audience, order.id)).ledger.includes('2500 late_refund'), {
    what: 'the money to go back',
  })
  return order
}

/** All news of an order's payment so far; with a type, that one once the provider has it. */
async function newsOf(order: Placed): Promise<Notification[]>
async function newsOf(order: Placed, type: string): Promise<Notification>
async function newsOf({ intent }: Placed, type?: string): Promise<Notification | Notification[]> {
  const about = async () => (await notificationsOf(scene)).filter((each) => JSON.stringify(each).includes(intent))
  if (type === undefined) return about()
  return until(async () => (await about()).find((each) => each.type === type), { what: `${type} of ${intent}` })
}

async function applied(events: readonly Notification[]): Promise<void> {
  await deliverAgain(scene, events)
  const ids = events.map(({ id }) => id)
  const waiting = () =>
    scene.db.selectFrom('provider_events').where('event_id', 'in', ids).where('state', '=', 'waiting').execute()
  await until(async () => (await waiting()).length === 0, { what: 'the news so far to be applied' })
}

async function ready(): Promise<number> {
  return (await scene.db.selectFrom('jobs').select('topic').where('state', '=', 'ready').execute()).length
}
