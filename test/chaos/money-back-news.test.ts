/**
 * A worker is killed at every step of applying a notification that moves money back, the provider delivers everything
 * again, and a new process goes on. Each effect is there once.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { orderOf } from '../support/aging.ts'
import { audit } from '../support/audit.ts'
import { endAllLeases } from '../support/deaths.ts'
import { type Effects, effectsOf, paidFor } from '../support/effects.ts'
import { type Placed, paidAfterCancel, place, refund, unhurried } from '../support/money-back.ts'
import { deliverAgain, notificationsOf, providerCall } from '../support/notifications.ts'
import type { Scene } from '../support/scene.ts'
import { until } from '../support/until.ts'
import { everyDeath, type NewsCase, NewsScene, newsOf, tellSoFar } from './news.ts'
import { expectKilledAtEachStep } from './steps.ts'

const paid = paidFor(2)
const disputed: Effects = {
  ...paid,
  disputes: ['2500 needs_response'],
  disputeRows: ['2500 needs_response'],
  ledger: ['2500 capture', '2500 dispute_withdrawn'],
  told: ['order.disputed', 'order.paid'],
}
const refunded: Effects = {
  ...paid,
  refunds: ['800 succeeded'],
  refundRows: ['800 succeeded'],
  ledger: ['2500 capture', '800 refund'],
  mailed: ['paid', 'refunded'],
  told: ['order.paid', 'order.refunded'],
}

async function disputedOrder(scene: Scene, overrides: Record<string, unknown> = {}): Promise<Placed & { id: string }> {
  const order = await place(scene, overrides)
  await scene.books.control('POST', '/disputes', { payment_intent: order.intent })
  return order
}

const disputes: Record<string, NewsCase> = {
  'a dispute that opens': {
    points: ['disputes.listed', 'dispute.applying', 'dispute.applied'],
    happen: disputedOrder,
    news: 'charge.dispute.created',
    effects: disputed,
  },
  'a dispute whose money is withdrawn': {
    points: ['dispute.applying', 'dispute.applied'],
    happen: disputedOrder,
    news: 'charge.dispute.funds_withdrawn',
    effects: disputed,
  },
  'a dispute that is won': {
    points: ['dispute.applying', 'dispute.applied'],
    async happen(scene) {
      const order = await disputedOrder(scene)
      await tellSoFar(scene, order)
      const [payment] = await scene.books.paymentsFor(order.key)
      await scene.books.control('POST', `/disputes/${payment?.disputes[0]?.id}`, { outcome: 'won' })
      return order
    },
    news: 'charge.dispute.funds_reinstated',
    effects: {
      ...disputed,
      disputes: ['2500 won'],
      disputeRows: ['2500 won'],
      ledger: ['2500 capture', '2500 dispute_reinstated', '2500 dispute_withdrawn'],
    },
  },
}

const refunds: Record<string, NewsCase> = {
  'a refund that was made in the dashboard': {
    points: ['provider_refunds.listed', 'provider_refunds.adopted'],
    async happen(scene) {
      const order = await place(scene)
      await scene.books.control('POST', '/refunds', { payment_intent: order.intent, amount: 800 })
      return order
    },
    news: 'refund.created',
    effects: refunded,
  },
  'a refund of ours, of which the answer was lost': {
    points: ['refund.deciding_succeeded', 'refund.decided_succeeded'],
    async happen(scene) {
      const order = await place(scene)
      await scene.books.fault({ method: 'POST', path: '/v1/refunds', fault: 'error_after', times: 1 })
      expect((await refund(scene.backend, order.id, { amount: 800 })).status).toBe(202)
      return order
    },
    news: 'refund.created',
    effects: refunded,
  },
  'a refund that the bank sends back': {
    points: ['refund.deciding_failed', 'refund.decided_failed'],
    async happen(scene) {
      const order = await place(scene, { payment_method: 'pm_card_refundFail' })
      expect((await refund(scene.backend, order.id, { amount: 800 })).json.status).toBe('succeeded')
      return order
    },
    news: 'refund.failed',
    effects: {
      ...refunded,
      refunds: ['800 failed'],
      refundRows: ['800 failed'],
      ledger: ['2500 capture', '800 refund', '800 refund_reversal'],
      told: ['order.paid', 'order.refund_failed', 'order.refunded'],
    },
  },
}

const others: Record<string, NewsCase> = {
  'a dispute of a hold that was captured in the dashboard': {
    points: ['settle.deciding_paid', 'settle.decided_paid'],
    async happen(scene) {
      const order = await place(scene, { capture: 'manual' })
      await providerCall(scene, 'POST', `payment_intents/${order.intent}/capture`)
      await scene.books.control('POST', '/disputes', { payment_intent: order.intent })
      return order
    },
    news: 'charge.dispute.created',
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
    news: 'refund.failed',
    effects: {
      status: 'canceled',
      story: ['pending to requires_action', 'requires_action to canceled'],
      payments: ['0 canceled', '2500 succeeded'],
      refunds: ['2500 failed'],
      disputes: [],
      ledger: ['2500 late_capture', '2500 late_refund', '2500 late_refund_reversal'],
      stock: ['2 release', '2 reserve'],
      refundRows: [],
      disputeRows: [],
      mailed: [],
      told: ['order.canceled'],
    },
  },
}

/** Money that arrived for an order that was given up, and went back. */
async function lateMoney(scene: Scene): Promise<Placed> {
  const overrides = { items: [{ sku: 'mug', quantity: 2 }], payment_method: 'pm_card_refundFail' }
  const order = await paidAfterCancel(scene, overrides)
  await deliverAgain(scene, [await newsOf(scene, order, 'payment_intent.succeeded')])
  const booked = scene.db.selectFrom('ledger_transfers').select('amount').where('order_id', '=', order.id)
  await until(async () => (await booked.where('kind', '=', 'late_refund').execute()).length > 0, {
    what: 'the money to go back',
  })
  return order
}

const batches = [disputes, refunds, others]
const deaths = everyDeath(batches)

let stage: NewsScene
beforeAll(async () => {
  stage = await NewsScene.start()
  await stage.killAndTakeOver(batches)
}, 240_000)
afterAll(() => stage.stop())

describe('a worker killed', () => {
  it.each(deaths)('at $point with news of $what: each effect once', async ({ what, point, how }) => {
    const { id } = stage.orderAt({ what, point })
    expect(await effectsOf(stage.scene, stage.audience, id)).toEqual(how.effects)
  })

  it('leaves what the bank sends back of late money to a person, once', async () => {
    for (const death of deaths.filter(({ how }) => how.happen === lateMoney)) {
      const { key, intent } = stage.orderAt(death)
      expect((await orderOf(stage.scene.db, key)).reconcile_reason).toBe('late_refund_failed')
      const jobs = stage.scene.db
        .selectFrom('jobs')
        .select(['state', 'last_error'])
        .where('topic', '=', 'refund_late_payment')
        .where('business_id', '=', intent)
      expect(await jobs.execute()).toEqual([{ state: 'dead', last_error: 'refund_failed' }])
    }
  })
})

it('leaves our books equal to the provider’s, and the same news once more changes nothing', async () => {
  const { scene, audience } = stage
  await deliverAgain(scene, (await notificationsOf(scene)).reverse())
  await endAllLeases(scene)
  await runJobs(unhurried(scene.service))
  for (const death of deaths)
    expect(await effectsOf(scene, audience, stage.orderAt(death).id)).toEqual(death.how.effects)
  // But for the late money, for which a person finds another way.
  const late = deaths.filter(({ how }) => how.happen === lateMoney).map((death) => stage.orderAt(death).id)
  const findings = (await audit(scene)).map(({ rule, subject }) => ({ rule, subject }))
  expect(findings).toHaveLength(late.length)
  for (const subject of late)
    expect(findings).toContainEqual({ rule: 'an order that has ended unpaid keeps no money', subject })
})

expectKilledAtEachStep(import.meta.filename)
