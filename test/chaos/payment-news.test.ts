/**
 * A worker is killed at every step of applying news of a payment, the provider delivers everything again, and a new process
 * goes on. Each effect is there once.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import { endAllLeases } from '../support/deaths.ts'
import { type Effects, effectsOf, paidFor } from '../support/effects.ts'
import { type Placed, paidAfterCancel, unhurried } from '../support/money-back.ts'
import { notification, providerObject } from '../support/notifications.ts'
import type { Scene } from '../support/scene.ts'
import { chargedInDoubt, waitsForCustomer } from '../support/stuck.ts'
import { everyDeath, type NewsCase, NewsScene } from './news.ts'
import { expectKilledAtEachStep } from './steps.ts'

const paid = paidFor(1, ['pending to requires_action', 'requires_action to paid'])
const unpaid: Effects = { ...paid, status: 'payment_failed', ledger: [], stock: ['1 release', '1 reserve'] }

const asked =
  (outcome: 'succeed' | 'fail') =>
  async (scene: Scene): Promise<Placed> => {
    const order = await waitsForCustomer(scene)
    await scene.books.act(order.intent, outcome)
    return order
  }

const success: Record<string, NewsCase> = {
  'a payment that has succeeded': {
    points: [
      'jobs.taken',
      'events.read',
      'events.found',
      'settle.deciding_paid',
      'settle.decided_paid',
      'events.applied',
      'events.ended',
    ],
    happen: asked('succeed'),
    news: 'payment_intent.succeeded',
    effects: paid,
  },
}

const others: Record<string, NewsCase> = {
  'a payment of which the answer was lost': {
    points: ['settle.decided_paid'],
    async happen(scene) {
      const order = await chargedInDoubt(scene)
      return { ...order, intent: (await scene.books.paymentsFor(order.key))[0]?.id ?? '' }
    },
    // Not what it has come to, so that the provider is asked.
    news: async (scene, { intent }) =>
      notification('payment_intent.requires_action', await providerObject(scene, `payment_intents/${intent}`)),
    effects: { ...paid, story: ['needs_reconcile to paid', 'pending to needs_reconcile'] },
  },
  '3-D Secure that has failed': {
    points: ['recovery.asked', 'recovery.closed', 'settle.decided_payment_failed'],
    happen: asked('fail'),
    news: 'payment_intent.payment_failed',
    effects: {
      ...unpaid,
      story: ['pending to requires_action', 'requires_action to payment_failed'],
      payments: ['0 canceled'],
      mailed: ['payment_failed'],
      told: ['order.payment_failed'],
    },
  },
  'money for an order that has ended': {
    points: ['settle.decided_needs_reconcile', 'unexpected_money.recorded', 'late_money.refunding', 'late_money.asked'],
    happen: (scene) => paidAfterCancel(scene),
    news: 'payment_intent.succeeded',
    effects: {
      ...unpaid,
      status: 'canceled',
      story: ['pending to requires_action', 'requires_action to canceled'],
      payments: ['0 canceled', '1250 succeeded'],
      refunds: ['1250 succeeded'],
      ledger: ['1250 late_capture', '1250 late_refund'],
      mailed: [],
      told: ['order.canceled'],
    },
  },
}

const batches = [success, others]
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
})

it('leaves our books equal to the provider’s, and the same news once more changes nothing', async () => {
  const { scene, audience } = stage
  await stage.deliverEverything()
  await endAllLeases(scene)
  await runJobs(unhurried(scene.service))
  for (const death of deaths)
    expect(await effectsOf(scene, audience, stage.orderAt(death).id)).toEqual(death.how.effects)
  await expectBooksInOrder(scene)
})

expectKilledAtEachStep(import.meta.filename)
