import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Deps } from '../../src/deps.ts'
import type { Service } from '../../src/service.ts'
import { endHolds } from '../../src/workers/end-holds.ts'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import type { Client } from '../support/client.ts'
import { booked, makeEndingDue, movedFor, orderShown, place, unhurried } from '../support/money-back.ts'
import { type Scene, startScene } from '../support/scene.ts'
import { until } from '../support/until.ts'

let scene: Scene
let other: Service
let workers: Deps[]
beforeAll(async () => {
  scene = await startScene()
  other = await scene.start()
  workers = [unhurried(scene.service), unhurried(other)]
})
afterEach(() => scene.books.noFaults())
afterAll(() => scene.stop())

function door(index: number): Client {
  return index % 2 === 0 ? scene.backend : scene.backend.at(other.url)
}

const held = () => place(scene, { capture: 'manual' })

describe('endings of one hold that race', () => {
  it('over two services have one winner, and the others are told', async () => {
    for (let round = 0; round < 8; round++) {
      const order = await held()
      const asked = [
        ['capture', { amount: 1000 }],
        ['cancel', undefined],
        ['capture', { amount: 2000 }],
        ['capture', { amount: 1000 }],
        ['cancel', undefined],
        ['capture', { amount: 0 }],
      ] as const
      const replies = await Promise.all(
        asked.map(([action, body], index) => door(index + round).post(`/v1/orders/${order.id}/${action}`, body)),
      )
      const won = replies.filter(({ status }) => status === 200)
      expect(won.length).toBeGreaterThan(0)
      expect(new Set(won.map(({ text }) => text)).size).toBe(1)
      for (const { status, json } of replies.filter((reply) => reply.status !== 200)) {
        expect([status, json.code]).toEqual([409, 'hold_already_ending'])
      }
      const shown = await orderShown(scene, order.id)
      const there = await booked(scene, order)
      if (shown.status === 'canceled') {
        expect(there).toMatchObject({ status: 'canceled', amount_received: 0 })
        expect(won).toHaveLength(3)
      } else {
        expect(there).toMatchObject({ status: 'succeeded', amount_received: shown.captured })
        expect(won).toHaveLength(shown.captured === 1000 ? 2 : 1)
      }
    }
  })

  it('when equal, wait for the first one’s answer', async () => {
    const order = await held()
    await scene.books.fault({
      method: 'POST',
      path: '/v1/payment_intents',
      fault: 'latency',
      latency_ms: 300,
      times: 1,
    })
    const replies = await Promise.all(
      Array.from({ length: 10 }, (_, index) => door(index).post(`/v1/orders/${order.id}/capture`)),
    )
    expect(new Set(replies.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    expect(replies[0]?.json).toMatchObject({ status: 'paid', captured: 2500 })
    expect(await movedFor(scene, order.id)).toEqual({ capture: 2500 })
  })

  it('with notifications and workers end once', async () => {
    await scene.books.webhooks({ duplicates: 2, shuffle: true })
    const order = await held()
    await scene.books.fault({ method: 'POST', path: '/v1/payment_intents', fault: 'drop_after', times: 3 })
    await Promise.all([0, 1, 2].map((index) => door(index).post(`/v1/orders/${order.id}/capture`, { amount: 700 })))
    await until(async () => {
      await makeEndingDue(scene.db, order.id)
      await Promise.all(workers.flatMap((deps) => [endHolds(deps), runJobs(deps)]))
      return (await orderShown(scene, order.id)).status === 'paid'
    })
    const transitions = await scene.db
      .selectFrom('order_transitions')
      .selectAll()
      .where('order_id', '=', order.id)
      .where('to_status', '=', 'paid')
      .execute()
    expect(transitions).toHaveLength(1)
    expect(await movedFor(scene, order.id)).toEqual({ capture: 700 })
  })
})

it('leaves our books equal to the provider’s', async () => {
  await expectBooksInOrder(scene)
})
