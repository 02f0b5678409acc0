/**
 * A process is killed at every step of what an operator has it do; the operator presses the same button again, at another
 * process. Each effect is there once, and the audit log has both.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { endSending } from '../support/aging.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import { type Client, keys, type Reply } from '../support/client.ts'
import { endAllLeases, strandAndKill, takeOver } from '../support/deaths.ts'
import { type Audience, type Effects, effectsOf, paidFor, startAudience } from '../support/effects.ts'
import { unhurried } from '../support/money-back.ts'
import {
  deliver,
  deliverAgain,
  notification,
  notificationsOf,
  payAtProvider,
  providerObject,
} from '../support/notifications.ts'
import { type Scene, startScene } from '../support/scene.ts'
import { startServiceProcess } from '../support/service-process.ts'
import { chargedInDoubt, mismatched, neverArrived, type Stuck, waitsForCustomer } from '../support/stuck.ts'
import { expectKilledAtEachStep } from './steps.ts'

interface Case {
  points: string[]
  /** An order that needs a person. */
  order(): Promise<Stuck & { event?: string }>
  press(admin: Client, order: Stuck & { event?: string }): Promise<Reply>
  /** What the second press may be told: that it is done, or that there is nothing left to do. */
  again: number[]
  effects: Partial<Effects>
}

const paid = paidFor(1, ['needs_reconcile to paid', 'pending to needs_reconcile'])
const givenBack: Partial<Effects> = {
  status: 'canceled',
  story: ['needs_reconcile to canceled', 'pending to needs_reconcile'],
  payments: ['777 succeeded'],
  refunds: ['777 succeeded'],
  ledger: ['777 late_capture', '777 late_refund', '777 mismatch', '777 mismatch_resolved'],
  stock: ['1 release', '1 reserve'],
  mailed: ['canceled'],
  told: ['order.canceled'],
}

const decide =
  (outcome: string) =>
  (admin: Client, { id }: Stuck) =>
    admin.post(`/v1/admin/orders/${id}/decide`, { outcome, reason: 'seen in the dashboard' })

const cases: Record<string, Case> = {
  'an order in doubt is decided to be paid': {
    points: ['operator.begun', 'decision.asked', 'settle.deciding_paid', 'settle.decided_paid', 'operator.acted'],
    order: () => chargedInDoubt(scene),
    press: decide('paid'),
    again: [200],
    effects: {},
  },
  'an order in doubt is reconciled': {
    points: ['operator.begun', 'recovery.asked', 'operator.acted'],
    order: () => chargedInDoubt(scene),
    press: (admin, { id }) => admin.post(`/v1/admin/orders/${id}/reconcile`),
    again: [200],
    effects: {},
  },
  'an order that waits for its customer is canceled': {
    points: ['decision.close_requested', 'recovery.closed', 'operator.acted'],
    order: () => waitsForCustomer(scene),
    press: decide('canceled'),
    again: [200],
    effects: {
      status: 'canceled',
      story: ['pending to requires_action', 'requires_action to canceled'],
      payments: ['0 canceled'],
      ledger: [],
      stock: ['1 release', '1 reserve'],
      mailed: [],
      told: ['order.canceled'],
    },
  },
  'money that does not match is accepted': {
    points: ['decision.asked', 'settle.deciding_paid', 'settle.decided_paid'],
    order: () => mismatched(scene, 1200),
    press: decide('accept_captured'),
    again: [200, 409],
    effects: {
      payments: ['1200 succeeded'],
      ledger: ['1200 capture', '1200 mismatch', '1200 mismatch_resolved'],
    },
  },
  'money that does not match is given back': {
    points: ['decision.asked', 'settle.deciding_canceled', 'settle.decided_canceled'],
    order: () => mismatched(scene, 777),
    press: decide('refund_suspense'),
    again: [200, 409],
    effects: givenBack,
  },
  'money that does not match an order that has ended is given back': {
    points: ['decision.asked', 'decision.giving_back', 'operator.acted'],
    async order() {
      const order = await neverArrived(scene)
      await endSending(scene.db, order.key)
      expect((await decide('canceled')(scene.admin, order)).json.status).toBe('canceled')
      const payment = await providerObject(scene, `payment_intents/${await payAtProvider(scene, order, 777)}`)
      await deliver(scene.service.url, notification('payment_intent.succeeded', payment))
      await runJobs(unhurried(scene.service))
      return order
    },
    press: decide('refund_suspense'),
    again: [200, 409],
    effects: givenBack,
  },
  'a notification is applied by hand': {
    points: ['settle.decided_paid', 'events.replayed', 'operator.acted'],
    async order() {
      const order = await chargedInDoubt(scene)
      const [payment] = await scene.books.paymentsFor(order.key)
      const event = notification('payment_intent.succeeded', {
        ...(await providerObject(scene, `payment_intents/${payment?.id}`)),
      })
      await deliver(scene.service.url, event)
      return { ...order, event: event.id }
    },
    press: (admin, { event }) => admin.post(`/v1/admin/events/${event}/replay`),
    again: [200],
    effects: {},
  },
}

const named = Object.entries(cases).flatMap(([what, how]) => how.points.map((point) => ({ what, point, how })))

interface Stranded {
  what: string
  point: string
  how: Case
  order: Stuck & { event?: string }
}

let scene: Scene
let audience: Audience
const stranded: Stranded[] = []

beforeAll(async () => {
  audience = await startAudience()
  scene = await startScene({ settings: audience.settings })
  await scene.books.webhooks({ drop: 1 })
  await scene.backend.put('/v1/webhook-endpoint', { url: audience.merchant.url })
  const victim = await startServiceProcess(scene.env(audience.settings))
  for (const each of named) stranded.push({ ...each, order: await each.how.order() })
  await strandAndKill(
    victim,
    stranded.map(({ point, how, order }) => ({
      point,
      provoke: ({ shop }) => how.press(shop.withKey(keys.admin), order),
    })),
  )
  await endAllLeases(scene)
}, 240_000)
afterAll(async () => {
  await scene.stop()
  await audience.stop()
})

describe('a process killed', () => {
  it('is followed by another, to which the operator goes with the same wish', async () => {
    for (const { how, order } of stranded) {
      const { status } = await how.press(scene.admin, order)
      expect(how.again).toContain(status)
    }
    await takeOver(scene, audience.settings)
  }, 180_000)

  it.each(named)('at $point while $what: each effect once', async ({ what, point, how }) => {
    const { order } = stranded.find((each) => each.what === what && each.point === point) as Stranded
    expect(await effectsOf(scene, audience, order.id)).toEqual({ ...paid, ...how.effects })
    const { data } = (await scene.admin.get(`/v1/admin/audit?target=${order.event ?? order.id}`)).json
    const outcomes = data.map(({ outcome }: { outcome: string }) => outcome)
    // Newest first: what the dead was about to do stays known as begun.
    expect(outcomes[0]).not.toBe('started')
    expect(outcomes.filter((outcome: string) => outcome === 'started')).toHaveLength(1)
  })
})

it('leaves our books equal to the provider’s, and late notifications change nothing', async () => {
  await deliverAgain(scene, await notificationsOf(scene))
  await runJobs(unhurried(scene.service))
  for (const { how, order } of stranded)
    expect(await effectsOf(scene, audience, order.id)).toEqual({ ...paid, ...how.effects })
  await expectBooksInOrder(scene)
})

expectKilledAtEachStep(import.meta.filename)
