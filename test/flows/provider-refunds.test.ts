import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Deps } from '../../src/deps.ts'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { settleRefunds } from '../../src/workers/settle-refunds.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import {
  booked,
  makeRefundsDue,
  movedFor,
  orderShown,
  type Placed,
  place,
  refund,
  refundsOf,
  sumRefunded,
  unhurried,
} from '../support/money-back.ts'
import { deliver, notification, providerObject } from '../support/notifications.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { until } from '../support/until.ts'

let scene: Scene
let deps: Deps
beforeAll(async () => {
  scene = await startScene({ settings: { PROVIDER_TIMEOUT_MS: '1000', CHECKOUT_BUDGET_MS: '1500' } })
  deps = unhurried(scene.service)
})
afterEach(async () => {
  await scene.books.noFaults()
  await scene.books.webhooks({})
})
afterAll(() => scene.stop())

function inDashboard(order: Placed, amount: number): Promise<unknown> {
  return scene.books.control('POST', '/refunds', { payment_intent: order.intent, amount })
}

async function untilShown(order: Placed, expected: Record<string, unknown>): Promise<void> {
  await until(async () => {
    await runJobs(deps)
    const shown = await orderShown(scene, order.id)
    return Object.entries(expected).every(([name, value]) => shown[name] === value)
  })
}

describe('a refund made in the provider’s dashboard', () => {
  it('gets a row of its own without a key, and counts on the budget', async () => {
    await scene.books.webhooks({ duplicates: 2, shuffle: true })
    const order = await place(scene)
    await inDashboard(order, 1000)
    await untilShown(order, { refunded: 1000, status: 'partially_refunded' })
    const rows = await refundsOf(scene.db, order.id)
    expect(rows).toMatchObject([{ attempt_key: null, amount: 1000, status: 'succeeded' }])
    expect(rows[0]?.provider_refund_id).toBe((await booked(scene, order)).refunds[0]?.id)
    expect((await scene.backend.get(`/v1/refunds/${rows[0]?.refund_id}`)).json).toMatchObject({
      amount: 1000,
      reason: null,
    })
    const beyond = await refund(scene.backend, order.id, { amount: 1501 })
    expect([beyond.status, beyond.json.refundable]).toEqual([409, 1500])
    expect((await refund(scene.backend, order.id)).json.amount).toBe(1500)
    expect(await movedFor(scene, order.id)).toEqual({ capture: 2500, refund: 2500 })
  })

  it('while ours is in doubt is told from it: each real refund is one row', async () => {
    const order = await place(scene)
    await scene.books.webhooks({ drop: 1 })
    await scene.books.fault({ method: 'POST', path: '/v1/refunds', fault: 'drop_after' })
    const key = newKey()
    const first = await refund(scene.backend, order.id, { amount: 700 }, key)
    expect([first.status, first.json.status]).toEqual([202, 'pending'])
    await scene.books.noFaults()
    // The same amount, so that only the metadata tells them apart.
    await scene.books.webhooks({ duplicates: 1, shuffle: true })
    await inDashboard(order, 700)
    await untilShown(order, { refunded: 1400 })
    const same = await refund(scene.backend, order.id, { amount: 700 }, key)
    expect([same.status, same.json.id, same.json.status]).toEqual([201, first.json.id, 'succeeded'])
    const other = await refund(scene.backend, order.id, { amount: 700 })
    expect([other.status, other.json.status]).toEqual([201, 'succeeded'])
    const rows = await refundsOf(scene.db, order.id)
    const there = (await booked(scene, order)).refunds.map(({ id }) => id)
    expect(rows.map((row) => row.provider_refund_id).sort()).toEqual(there.sort())
    expect(rows).toHaveLength(3)
    expect(await sumRefunded(scene, order)).toBe(2100)
    expect(await movedFor(scene, order.id)).toEqual({ capture: 2500, refund: 2100 })
  })

  it('over money that a refund of ours in doubt has reserved flags the order until that is read back', async () => {
    await scene.books.webhooks({ drop: 1 })
    const order = await place(scene)
    await scene.books.fault({ method: 'POST', path: '/v1/refunds', fault: 'drop_before' })
    const key = newKey()
    expect((await refund(scene.backend, order.id, { amount: 2000 }, key)).status).toBe(202)
    await scene.books.webhooks({})
    await inDashboard(order, 1500)
    await untilShown(order, { refunded: 2500, reconcile_reason: 'refunds_exceed_captured' })
    await scene.books.noFaults()
    await makeRefundsDue(scene.db, order.id)
    await settleRefunds(deps)
    const reply = await refund(scene.backend, order.id, { amount: 2000 }, key)
    expect([reply.status, reply.json.status]).toEqual([201, 'failed'])
    const shown = await orderShown(scene, order.id)
    expect([shown.refunded, shown.reconcile_reason]).toEqual([1500, undefined])
  })

  it('that fails frees its part, also when its news comes in the wrong order', async () => {
    await scene.books.webhooks({ drop: 1 })
    const order = await place(scene)
    await inDashboard(order, 900)
    const [made] = (await booked(scene, order)).refunds
    const created = await providerObject(scene, `refunds/${made?.id}`)
    await scene.books.control('POST', `/refunds/${made?.id}`, { status: 'failed' })
    const failed = await providerObject(scene, `refunds/${made?.id}`)
    const news = [
      notification('refund.created', created),
      notification('refund.failed', failed),
      notification('refund.updated', failed),
      notification('charge.refund.updated', failed),
      notification('refund.updated', created),
    ]
    for (const order of [
      [0, 1, 2, 3, 4, 0],
      [4, 3, 2, 1, 0, 4],
    ]) {
      for (const index of order) {
        const event = news[index] as (typeof news)[number]
        expect((await deliver(scene.service.url, { ...event, id: `${event.id}${order[0]}` })).status).toBe(200)
        await runJobs(deps)
      }
    }
    await untilShown(order, { refunded: 0, status: 'paid' })
    expect(await refundsOf(scene.db, order.id)).toMatchObject([{ status: 'failed', amount: 900 }])
    const moved = await movedFor(scene, order.id)
    expect(moved.refund).toBe(moved.refund_reversal)
  })

  it('is not taken from an event that tells of another amount', async () => {
    const order = await place(scene)
    const done = await refund(scene.backend, order.id, { amount: 400 })
    const [made] = (await booked(scene, order)).refunds
    const real = await providerObject(scene, `refunds/${made?.id}`)
    await deliver(scene.service.url, notification('refund.updated', { ...real, amount: 4, status: 'failed' }))
    await untilShown(order, { reconcile_reason: 'notification_mismatch' })
    expect((await scene.backend.get(`/v1/refunds/${done.json.id}`)).json).toMatchObject({
      status: 'succeeded',
      amount: 400,
    })
  })

  it('that does not exist there changes nothing, whatever a signed event says', async () => {
    const order = await place(scene)
    const forged = {
      id: 're_forged',
      object: 'refund',
      amount: 2500,
      currency: 'eur',
      status: 'succeeded',
      created: Math.floor(Date.now() / 1000),
      payment_intent: order.intent,
      charge: null,
      metadata: {},
    }
    await deliver(scene.service.url, notification('refund.created', forged))
    await until(async () => {
      await runJobs(deps)
      const waiting = await scene.db.selectFrom('jobs').select('topic').where('state', '=', 'ready').execute()
      return waiting.every(({ topic }) => topic !== 'provider_event')
    })
    expect(await refundsOf(scene.db, order.id)).toEqual([])
    expect(await orderShown(scene, order.id)).toMatchObject({ status: 'paid', refunded: 0 })
  })
})

it('leaves our books equal to the provider’s', async () => {
  await expectBooksInOrder(scene)
})
