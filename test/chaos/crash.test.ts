/**
 * A process is killed at every named step of the saga and of recovery, with two orders at each: one is then driven on by
 * another process's worker, one by its client's repeat. A step of the service that no test kills at fails here, by name.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isOpen } from '../../src/domain/order.ts'
import { recoverOrders } from '../../src/workers/recover-orders.ts'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { endLease, endSending, expire, makeDue, orderOf } from '../support/aging.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import { type Client, cart, type Reply } from '../support/client.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { type ServiceProcess, startServiceProcess } from '../support/service-process.ts'
import { until } from '../support/until.ts'
import { everyStep, expectKilledAtEachStep, filesWithoutCheck, killedAt } from './steps.ts'

const charges = { method: 'POST', path: '/v1/payment_intents' } as const
const threeDSecure = { payment_method: 'pm_card_threeDSecure2Required' }

/** How a step is reached, and how the order may end. */
interface Case {
  points: string[]
  body?: Record<string, unknown>
  /** With a service that lives: what happens before. */
  before?(key: string, body: Record<string, unknown>): Promise<void>
  /** What the process that dies is asked to do. */
  request(shop: Client, key: string, body: Record<string, unknown>): Promise<Reply>
  /** What the customer does once the process is dead. */
  after?(key: string): Promise<void>
  ends: string[]
}

const send = (shop: Client, key: string, body: Record<string, unknown>) => shop.checkout(key, body)
const cancel = (shop: Client, key: string) => shop.post(`/v1/checkouts/${key}/cancel`)
const fault = (fault: 'error_after' | 'rate_limit') => () => scene.books.fault({ ...charges, fault, times: 1 })

const cases: Case[] = [
  {
    points: ['checkout.claimed', 'checkout.charged', 'settle.deciding_paid', 'settle.decided_paid'],
    request: send,
    ends: ['paid'],
  },
  {
    points: ['settle.deciding_authorized', 'settle.decided_authorized'],
    body: { capture: 'manual' },
    request: send,
    ends: ['authorized'],
  },
  {
    points: ['settle.deciding_requires_action', 'settle.decided_requires_action'],
    body: threeDSecure,
    request: send,
    after: (key) => act(key, 'succeed'),
    ends: ['paid'],
  },
  {
    points: ['settle.deciding_payment_failed', 'settle.decided_payment_failed'],
    body: { payment_method: 'pm_card_chargeDeclined' },
    request: send,
    ends: ['payment_failed'],
  },
  {
    points: ['settle.deciding_needs_reconcile', 'settle.decided_needs_reconcile'],
    before: fault('error_after'),
    request: send,
    ends: ['paid'],
  },
  {
    // Whoever died before it was written down may have sent; otherwise only its customer sends.
    points: ['settle.deciding_pending', 'settle.decided_pending'],
    before: fault('rate_limit'),
    request: send,
    ends: ['paid', 'canceled'],
  },
  {
    points: ['cancel.requested', 'settle.deciding_canceled', 'settle.decided_canceled'],
    body: threeDSecure,
    before: waiting,
    request: cancel,
    ends: ['canceled'],
  },
  {
    points: ['recovery.taking_over', 'recovery.sending', 'recovery.sent'],
    async before(key, body) {
      await fault('error_after')()
      expect((await scene.shop.checkout(key, body)).status).toBe(202)
      await makeDue(scene.db, key)
    },
    request: send,
    ends: ['paid'],
  },
  {
    points: ['recovery.asked', 'recovery.closed'],
    body: threeDSecure,
    async before(key, body) {
      await waiting(key, body)
      await act(key, 'fail')
      await makeDue(scene.db, key)
    },
    request: send,
    ends: ['payment_failed'],
  },
]

interface Stranded {
  key: string
  body: Record<string, unknown>
  request: Promise<Reply>
}

let scene: Scene
/** By point: the worker's order and the client's. */
const stranded = new Map<string, [Stranded, Stranded]>()
beforeAll(async () => {
  scene = await startScene()
  await scene.books.webhooks({ drop: 1 })
  const victim = await startServiceProcess(scene.env())
  for (const how of cases) {
    for (const point of how.points)
      stranded.set(point, [await strand(victim, point, how), await strand(victim, point, how)])
  }
  await victim.kill()
})
afterAll(() => scene.stop())

describe('a process killed at', () => {
  it.each(cases.flatMap((each) => each.points.map((point) => [point, each] as const)))('%s', async (point, how) => {
    const [forWorker, forClient] = stranded.get(point) as [Stranded, Stranded]
    for (const { key, request } of [forWorker, forClient]) {
      await expect(request).rejects.toThrow()
      await how.after?.(key)
      await endLease(scene.db, key)
    }
    await workOn(forWorker.key)
    await repeatUntilEnd(forClient.key, forClient.body)

    for (const { key, body } of [forWorker, forClient]) {
      expect(how.ends).toContain((await orderOf(scene.db, key)).status)
      const [first, second] = [await scene.shop.checkout(key, body), await scene.shop.checkout(key, body)]
      expect(second.text).toBe(first.text)
      expect([first.replayed, second.replayed]).toEqual([true, true])
      expect((await scene.books.paymentsFor(key)).length).toBeLessThanOrEqual(1)
    }
    await expectBooksInOrder(scene, { unfinished: true })
  })
})

it('leaves nothing unfinished', async () => {
  await runJobs(scene.service.deps)
  await expectBooksInOrder(scene)
})

expectKilledAtEachStep(import.meta.filename)

describe('every named step of the service', () => {
  it('is one at which a test kills a process, and no other is listed', async () => {
    const steps = await everyStep()
    const tested = new Set(Object.values(killedAt).flat())
    expect(steps.length).toBeGreaterThan(60)
    expect(steps.filter((step) => !tested.has(step))).toEqual([])
    expect([...tested].filter((step) => !steps.includes(step))).toEqual([])
  })

  it('is held against what has died, in each file that is listed', async () => {
    expect(await filesWithoutCheck()).toEqual([])
  })
})

/** Brings a request to the point in the process that is about to die. */
async function strand(victim: ServiceProcess, point: string, how: Case): Promise<Stranded> {
  const key = newKey()
  const body = cart({ ...how.body, cart_id: newKey() })
  await how.before?.(key, body)
  await victim.arm({ [point]: { do: 'pause' } })
  const request = how.request(victim.shop, key, body)
  request.catch(() => {})
  const times = (pauses.get(point) ?? 0) + 1
  await victim.reached(point, times)
  pauses.set(point, times)
  return { key, body, request }
}
const pauses = new Map<string, number>()

async function waiting(key: string, body: Record<string, unknown>): Promise<void> {
  expect((await scene.shop.checkout(key, body)).status).toBe(202)
}

async function act(key: string, outcome: 'succeed' | 'fail'): Promise<void> {
  for (const payment of await scene.books.paymentsFor(key)) await scene.books.act(payment.id, outcome)
}

/** The worker alone, and time. */
async function workOn(key: string): Promise<void> {
  await until(
    async () => {
      // Also of a try that a busy machine has cut off.
      await endLease(scene.db, key)
      await recoverOrders(scene.service.deps)
      const { state } = await scene.db
        .selectFrom('attempts')
        .select('state')
        .where('key', '=', key)
        .executeTakeFirstOrThrow()
      // Surely nothing was sent, and the customer does not come back.
      if (state === 'resumable') await expire(scene.db, key)
      return !isOpen((await orderOf(scene.db, key)).status)
    },
    { what: 'the worker to finish the order' },
  )
}

/** The client alone. */
async function repeatUntilEnd(key: string, body: Record<string, unknown>): Promise<void> {
  await until(
    async () => {
      const { status } = await scene.shop.checkout(key, body)
      expect(status).not.toBe(500)
      await endLease(scene.db, key)
      if (status === 202) await endSending(scene.db, key)
      return status === 201 || status === 402 || status === 409
    },
    { what: 'an answer for good' },
  )
}
