import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Deps } from '../../src/deps.ts'
import { settleRefunds } from '../../src/workers/settle-refunds.ts'
import { expectKilledAtEachStep } from '../chaos/steps.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import { keys } from '../support/client.ts'
import {
  booked,
  endRefundLeases,
  makeRefundsDue,
  movedFor,
  orderShown,
  type Placed,
  place,
  refund,
  refundsOf,
  unhurried,
} from '../support/money-back.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { type Reactions, type ServiceProcess, startServiceProcess } from '../support/service-process.ts'

let scene: Scene
let deps: Deps
beforeAll(async () => {
  scene = await startScene()
  deps = unhurried(scene.service)
  await scene.books.webhooks({ drop: 1 })
})
afterAll(() => scene.stop())

function start(reactions: Reactions): Promise<ServiceProcess> {
  return startServiceProcess(scene.env(), reactions)
}

describe('a refund whose process is killed', () => {
  it('is made once, by the worker once its lease has ended, and a repeat gets its answer', async () => {
    const order = await place(scene)
    const key = newKey()
    await killedAt('refund.sending', order.id, key)
    // Not while its lease holds.
    await makeRefundsDue(scene.db, order.id)
    await settleRefunds(deps)
    await endRefundLeases(scene.db, order.id)
    await Promise.all([settleRefunds(deps), settleRefunds(deps)])
    expect(await refundsOf(scene.db, order.id)).toMatchObject([{ status: 'succeeded', attempt_key: key }])
    const reply = await refund(scene.backend, order.id, { amount: 800 }, key)
    expect([reply.status, reply.json.status, reply.replayed]).toEqual([201, 'succeeded', true])
    await expectMadeOnce(order)
  })

  it.each(['refund.claimed', 'refund.sent'])('at %s is made once by the repeats, with one answer', async (point) => {
    const order = await place(scene)
    const key = newKey()
    await killedAt(point, order.id, key)
    await endRefundLeases(scene.db, order.id)
    const replies = await Promise.all([1, 2, 3].map(() => refund(scene.backend, order.id, { amount: 800 }, key)))
    for (const { status, json, text } of replies) {
      expect([status, json.status]).toEqual([201, 'succeeded'])
      expect(text).toBe(replies[0]?.text)
    }
    await expectMadeOnce(order)
  })

  it('and whose worker is killed as well goes on with the next one', async () => {
    const order = await place(scene)
    await scene.books.fault({ method: 'POST', path: '/v1/refunds', fault: 'error_after', times: 1 })
    const key = newKey()
    expect((await refund(scene.backend, order.id, { amount: 800 }, key)).status).toBe(202)
    const doomed = await startServiceProcess(scene.env({ ROLES: 'api,worker', RECOVERY_INTERVAL_MS: '20' }), {
      'refund.asked': { do: 'kill' },
    })
    await makeRefundsDue(scene.db, order.id)
    await doomed.gone
    await endRefundLeases(scene.db, order.id)
    await settleRefunds(deps)
    const reply = await refund(scene.backend, order.id, { amount: 800 }, key)
    expect([reply.status, reply.json.status]).toEqual([201, 'succeeded'])
    await expectMadeOnce(order)
  })
})

async function killedAt(point: string, orderId: string, key: string): Promise<void> {
  const doomed = await start({ [point]: { do: 'kill' } })
  await expect(refund(doomed.shop.withKey(keys.backend), orderId, { amount: 800 }, key)).rejects.toThrow()
  await doomed.gone
  // In doubt or made, it counts as spent.
  expect((await orderShown(scene, orderId)).refunded).toBe(800)
}

async function expectMadeOnce(order: Placed): Promise<void> {
  expect((await booked(scene, order)).refunds).toMatchObject([{ amount: 800, status: 'succeeded' }])
  expect(await movedFor(scene, order.id)).toEqual({ capture: 2500, refund: 800 })
}

describe('a refund whose process was frozen past its lease', () => {
  it('changes nothing when it wakes up, and tells its client what the one that took over has brought about', async () => {
    const order = await place(scene)
    const key = newKey()
    const late = await start({ 'refund.sent': { do: 'pause' } })
    const first = refund(late.shop.withKey(keys.backend), order.id, { amount: 800 }, key)
    await late.reached('refund.sent')
    await endRefundLeases(scene.db, order.id)
    const second = await refund(scene.backend, order.id, { amount: 800 }, key)
    expect([second.status, second.json.status]).toEqual([201, 'succeeded'])
    late.resume('refund.sent')
    expect((await first).text).toBe(second.text)
    await expectMadeOnce(order)
    await late.stop()
  })

  it('may not call it unsent when somebody else has sent it meanwhile', async () => {
    const order = await place(scene)
    const key = newKey()
    await scene.books.fault({ method: 'POST', path: '/v1/refunds', fault: 'rate_limit', times: 1 })
    const late = await start({ 'refund.deciding_unsent': { do: 'pause' } })
    const first = refund(late.shop.withKey(keys.backend), order.id, { amount: 800 }, key)
    await late.reached('refund.deciding_unsent')
    await endRefundLeases(scene.db, order.id)
    await scene.books.fault({ method: 'POST', path: '/v1/refunds', fault: 'drop_after', times: 9 })
    const takesOver = await scene.start({ CHECKOUT_BUDGET_MS: '1500' })
    const second = await refund(scene.backend.at(takesOver.url), order.id, { amount: 800 }, key)
    expect(second.status).toBe(202)
    late.resume('refund.deciding_unsent')
    expect((await first).status).toBe(202)
    expect((await orderShown(scene, order.id)).refunded).toBe(800)
    await scene.books.noFaults()
    await makeRefundsDue(scene.db, order.id)
    await settleRefunds(deps)
    expect(await refundsOf(scene.db, order.id)).toMatchObject([{ status: 'succeeded' }])
    await late.stop()
  })
})

it('leaves our books equal to the provider’s', async () => {
  await expectBooksInOrder(scene)
})

expectKilledAtEachStep(import.meta.filename)
