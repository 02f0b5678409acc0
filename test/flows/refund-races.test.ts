import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Deps } from '../../src/deps.ts'
import type { Service } from '../../src/service.ts'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { settleRefunds } from '../../src/workers/settle-refunds.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import type { Client } from '../support/client.ts'
import {
  booked,
  makeRefundsDue,
  movedFor,
  orderShown,
  place,
  refund,
  refundsOf,
  sumRefunded,
  unhurried,
} from '../support/money-back.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { until } from '../support/until.ts'

let scene: Scene
let other: Service
let doors: [Client, Client]
let workers: Deps[]
beforeAll(async () => {
  scene = await startScene()
  other = await scene.start()
  doors = [scene.backend, scene.backend.at(other.url)]
  workers = [unhurried(scene.service), unhurried(other)]
})
afterAll(() => scene.stop())

function door(index: number): Client {
  return doors[index % 2] as Client
}

function each<Result>(count: number, work: (index: number) => Promise<Result>): Promise<Result[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => work(index)))
}

describe('refunds that race', () => {
  it('with keys of their own, over two services, never give back more than was captured', async () => {
    const order = await place(scene)
    const replies = await each(30, (index) => refund(door(index), order.id, { amount: 200 }))
    const won = replies.filter(({ status }) => status === 201)
    expect(won).toHaveLength(12)
    const refused = replies.filter(({ status }) => status !== 201)
    for (const { status, json } of refused) expect([status, json.code]).toEqual([409, 'refund_exceeds_captured'])
    expect(new Set(won.map(({ json }) => json.id)).size).toBe(12)
    expect(await sumRefunded(scene, order)).toBe(2400)
    expect(await orderShown(scene, order.id)).toMatchObject({ refunded: 2400, status: 'partially_refunded' })
    const rest = await each(6, (index) => refund(door(index), order.id))
    expect(rest.filter(({ status }) => status === 201).map(({ json }) => json.amount)).toEqual([100])
    expect(await movedFor(scene, order.id)).toEqual({ capture: 2500, refund: 2500 })
  })

  it('with one key, over two services, are one refund with one answer', async () => {
    const order = await place(scene)
    await scene.books.fault({ method: 'POST', path: '/v1/refunds', fault: 'latency', latency_ms: 200, times: 1 })
    const key = newKey()
    const replies = await each(30, (index) => refund(door(index), order.id, { amount: 700 }, key))
    expect(new Set(replies.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    expect(replies[0]?.status).toBe(201)
    expect(replies.filter(({ replayed }) => !replayed)).toHaveLength(1)
    expect((await booked(scene, order)).refunds).toHaveLength(1)
    await scene.books.noFaults()
  })

  it('with one key for two orders are one refund and a conflict', async () => {
    for (let round = 0; round < 5; round++) {
      const orders = [await place(scene), await place(scene)]
      const key = newKey()
      const replies = await each(10, (index) => refund(door(index), orders[index % 2]?.id ?? '', { amount: 700 }, key))
      const conflicts = replies.filter(({ json }) => json.code === 'idempotency_key_conflict')
      expect(replies.filter(({ status }) => status === 201)).toHaveLength(5)
      expect(conflicts).toHaveLength(5)
      const sums = await Promise.all(orders.map((order) => sumRefunded(scene, order)))
      expect(sums.sort()).toEqual([0, 700])
    }
  })

  it('with a dispute never draw more on the order than was captured', async () => {
    for (let round = 0; round < 4; round++) {
      const order = await place(scene)
      const [replies] = await Promise.all([
        each(10, (index) => refund(door(index), order.id, { amount: 500 })),
        scene.books
          .control('POST', '/disputes', { payment_intent: order.intent, amount: 1200 })
          .then(() => Promise.all(workers.map(runWorker))),
      ])
      for (const { status, json } of replies) {
        // A refund that the provider refuses for the dispute has failed and draws on nothing.
        if (status === 201) expect(['succeeded', 'failed']).toContain(json.status)
        else expect([status, json.code]).toEqual([409, 'refund_exceeds_captured'])
      }
      await until(async () => {
        await Promise.all(workers.map(runWorker))
        return (await orderShown(scene, order.id)).disputed
      })
      const sum = await sumRefunded(scene, order)
      expect((await orderShown(scene, order.id)).refunded).toBe(sum)
      const more = await refund(scene.backend, order.id)
      const left = Math.max(0, 2500 - sum - 1200)
      if (left === 0) expect([more.status, more.json.refundable]).toEqual([409, 0])
      else expect([more.status, more.json.status, more.json.amount]).toEqual([201, 'failed', left])
    }
  })

  it('with their own notifications, repeats and workers end once each', async () => {
    const order = await place(scene, { payment_method: 'pm_card_pendingRefund' })
    await scene.books.webhooks({ duplicates: 2, shuffle: true, delay_ms: 5 })
    const sent = Array.from({ length: 6 }, () => newKey())
    const ended = async () => (await refundsOf(scene.db, order.id)).every(({ status }) => status === 'succeeded')
    await each(18, (index) => refund(door(index), order.id, { amount: 100 }, sent[index % 6]))
    await until(async () => {
      await makeRefundsDue(scene.db, order.id)
      await Promise.all([
        ...workers.map(runWorker),
        ...workers.map((deps) => settleRefunds(deps)),
        each(6, (index) => refund(door(index), order.id, { amount: 100 }, sent[index])),
      ])
      return ended()
    })
    expect(await refundsOf(scene.db, order.id)).toHaveLength(6)
    expect(await movedFor(scene, order.id)).toEqual({ capture: 2500, refund: 600 })
    const replies = await each(6, (index) => refund(door(index), order.id, { amount: 100 }, sent[index]))
    for (const { status, json, replayed } of replies)
      expect([status, json.status, replayed]).toEqual([201, 'succeeded', true])
    await scene.books.webhooks({})
  })

  it('leave our books equal to the provider’s', async () => {
    await until(async () => {
      await Promise.all(workers.map(runWorker))
      const waiting = await scene.db.selectFrom('jobs').select('topic').where('state', '=', 'ready').execute()
      return waiting.every(({ topic }) => topic !== 'provider_event')
    })
    await expectBooksInOrder(scene)
  })
})

async function runWorker(deps: Deps): Promise<void> {
  await runJobs(deps)
}
