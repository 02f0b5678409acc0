/**
 * A process is killed at every step of a refund, of the end of a hold and of taking a notification in, with two orders at
 * each: one is gone on with by its client's repeat, one by a new process's workers. At last the provider notifies of
 * everything once more. Each effect is there once.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import { keys, type Reply } from '../support/client.ts'
import { type Doomed, endAllLeases, strandAndKill, takeOver } from '../support/deaths.ts'
import { type Audience, type Effects, effectsOf, paidFor, startAudience } from '../support/effects.ts'
import { makeRefundsDue, type Placed, place, unhurried } from '../support/money-back.ts'
import { deliver, deliverAgain, notificationsOf } from '../support/notifications.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { startServiceProcess } from '../support/service-process.ts'
import { until } from '../support/until.ts'
import { expectKilledAtEachStep } from './steps.ts'

type Api = (path: string, body?: unknown, headers?: Record<string, string>) => Promise<Reply>

interface Case {
  points: string[]
  order?: Record<string, unknown>
  /** What happens before, with a service that lives. */
  before?(order: Placed, key: string): Promise<unknown>
  /** What the process that dies is asked for, and what is then repeated. */
  request(post: Api, order: Placed, key: string): Promise<Reply>
  /** What the repeat is told in the end. */
  answer: number
  /** What is refused from the first step on. */
  different?(post: Api, order: Placed): Promise<Reply>
  effects: Partial<Effects>
  /** Only the provider's notification tells of a part of it. */
  needsNews?: true
}

const paid = paidFor(2)
const refunded: Partial<Effects> = {
  refunds: ['800 succeeded'],
  refundRows: ['800 succeeded'],
  ledger: ['2500 capture', '800 refund'],
  mailed: ['paid', 'refunded'],
  told: ['order.paid', 'order.refunded'],
}
const captured: Partial<Effects> = {
  story: ['authorized to paid', 'pending to authorized'],
  payments: ['900 succeeded'],
  ledger: ['900 capture'],
  mailed: ['authorized', 'paid'],
  told: ['order.authorized', 'order.paid'],
}
const letGo: Partial<Effects> = {
  status: 'canceled',
  story: ['authorized to canceled', 'pending to authorized'],
  payments: ['0 canceled'],
  ledger: [],
  stock: ['2 release', '2 reserve'],
  mailed: ['authorized', 'canceled'],
  told: ['order.authorized', 'order.canceled'],
}

const hold = { capture: 'manual' }
const holdSteps = ['hold.decided', 'hold.ending', 'hold.asked', 'hold.ended']
const capture = (post: Api, order: Placed) => post(`/v1/orders/${order.id}/capture`, { amount: 900 })
const cancel = (post: Api, order: Placed) => post(`/v1/orders/${order.id}/cancel`)
const refund800 = (post: Api, order: Placed, key: string) =>
  post(`/v1/orders/${order.id}/refunds`, { amount: 800 }, { 'idempotency-key': key })
const fault = (fault: 'error_after' | 'rate_limit', path: string) => () =>
  scene.books.fault({ method: 'POST', path, fault, times: 1 })

const cases: Record<string, Case> = {
  'a hold that is captured in part': {
    points: [...holdSteps, 'settle.deciding_paid', 'settle.decided_paid'],
    order: hold,
    request: capture,
    different: cancel,
    answer: 200,
    effects: captured,
  },
  'a hold that is let go': {
    points: [...holdSteps, 'settle.deciding_canceled', 'settle.decided_canceled'],
    order: hold,
    request: cancel,
    different: capture,
    answer: 200,
    effects: letGo,
  },
  'a capture of which the answer was lost': {
    points: ['hold.left_in_doubt'],
    order: hold,
    before: fault('error_after', '/v1/payment_intents/'),
    request: capture,
    different: cancel,
    answer: 200,
    effects: captured,
  },
  'a hold that was let go, of which the answer was lost': {
    points: ['hold.left_in_doubt'],
    order: hold,
    before: fault('error_after', '/v1/payment_intents/'),
    request: cancel,
    different: capture,
    answer: 200,
    effects: letGo,
  },
  'a refund': {
    points: [
      'refund.claimed',
      'refund.sending',
      'refund.sent',
      'refund.deciding_succeeded',
      'refund.decided_succeeded',
    ],
    request: refund800,
    answer: 201,
    effects: refunded,
  },
  'a refund over which the bank takes its time': {
    points: ['refund.deciding_pending', 'refund.decided_pending'],
    order: { payment_method: 'pm_card_pendingRefund' },
    request: refund800,
    answer: 201,
    effects: refunded,
  },
  'a refund that is asked about by its id': {
    points: ['refund.asked'],
    order: { payment_method: 'pm_card_pendingRefund' },
    async before(order, key) {
      expect((await refund800(post, order, key)).status).toBe(202)
      await makeRefundsDue(scene.db, order.id)
    },
    request: refund800,
    answer: 201,
    effects: refunded,
  },
  'a refund of which the answer was lost': {
    points: ['refund.deciding_pending', 'refund.decided_pending'],
    before: fault('error_after', '/v1/refunds'),
    request: refund800,
    answer: 201,
    effects: refunded,
  },
  'a refund that surely was not sent': {
    points: ['refund.deciding_unsent', 'refund.decided_unsent'],
    before: fault('rate_limit', '/v1/refunds'),
    request: refund800,
    answer: 201,
    effects: refunded,
  },
  'a refund that the provider rejects, because of one in its dashboard': {
    points: ['refund.deciding_failed', 'refund.decided_failed', 'provider_refunds.listed', 'provider_refunds.adopted'],
    before: ({ intent }) => scene.books.control('POST', '/refunds', { payment_intent: intent, amount: 2000 }),
    request: refund800,
    answer: 201,
    effects: {
      refunds: ['2000 succeeded'],
      refundRows: ['2000 succeeded', '800 failed'],
      ledger: ['2000 refund', '2500 capture'],
      mailed: ['paid', 'refunded'],
      told: ['order.paid', 'order.refund_failed', 'order.refunded'],
    },
    needsNews: true,
  },
}

interface Stranded {
  how: Case
  order: Placed
  key: string
  /** By its client's repeat, not by workers. */
  repeated: boolean
}

let scene: Scene
let audience: Audience
const stranded: (Doomed & Stranded)[] = []
const named = Object.entries(cases).flatMap(([what, how]) => how.points.map((point) => ({ what, point, how })))

const post: Api = (path, body, headers) => scene.backend.post(path, body, headers)

beforeAll(async () => {
  audience = await startAudience()
  scene = await startScene({ settings: audience.settings })
  await scene.books.webhooks({ drop: 1 })
  await scene.backend.put('/v1/webhook-endpoint', { url: audience.merchant.url })
  const victim = await startServiceProcess(scene.env(audience.settings))
  for (const { point, how } of named) {
    for (const repeated of [false, true]) {
      const [order, key] = [await place(scene, how.order), newKey()]
      stranded.push({
        how,
        order,
        key,
        repeated,
        point,
        before: async () => how.before?.(order, key),
        async provoke({ shop }) {
          const backend = shop.withKey(keys.backend)
          return how.request((path, body, headers) => backend.post(path, body, headers), order, key)
        },
      })
    }
  }
  await strandAndKill(victim, stranded)
}, 240_000)
afterAll(async () => {
  await scene.stop()
  await audience.stop()
})

/** The client alone. */
async function repeatUntilEnd({ how, order, key }: Stranded): Promise<Reply> {
  return until(
    async () => {
      const reply = await how.request(post, order, key)
      expect([how.answer, 202, 503]).toContain(reply.status)
      if (reply.status === how.answer) return reply
      await endAllLeases(scene)
      return null
    },
    { what: 'an answer for good' },
  )
}

describe('a process killed', () => {
  it('has decided how a hold ends', async () => {
    for (const { how, order } of stranded.filter((each) => each.how.different)) {
      const different = await how.different?.(post, order)
      expect([different?.status, different?.json.code]).toEqual([409, 'hold_already_ending'])
    }
  })

  it('is taken over from by repeats and by a new process', async () => {
    await endAllLeases(scene)
    for (const each of stranded) if (each.repeated) await repeatUntilEnd(each)
    await takeOver(scene, audience.settings)
    for (const each of stranded) {
      const [first, second] = [await repeatUntilEnd(each), await repeatUntilEnd(each)]
      expect(second.text).toBe(first.text)
    }
    await runJobs(unhurried(scene.service))
  }, 240_000)

  it.each(named.filter(({ how }) => !how.needsNews))('at $point in $what: each effect once', async ({ point, how }) => {
    for (const { order } of stranded.filter((each) => each.point === point && each.how === how))
      expect(await effectsOf(scene, audience, order.id)).toEqual({ ...paid, ...how.effects })
  })
})

it('leaves our books equal to the provider’s, and late notifications change nothing', async () => {
  await deliverAgain(scene, await notificationsOf(scene))
  await deliverAgain(scene, await notificationsOf(scene))
  await runJobs(unhurried(scene.service))
  for (const { how, order } of stranded)
    expect(await effectsOf(scene, audience, order.id)).toEqual({ ...paid, ...how.effects })
  await expectBooksInOrder(scene)
})

describe('a process killed at events.accepted, after a notification was kept and before it was answered', () => {
  it('has it delivered again, and applied once', async () => {
    const order = await place(scene)
    await scene.books.control('POST', '/refunds', { payment_intent: order.intent, amount: 800 })
    const events = (await notificationsOf(scene)).filter((each) => JSON.stringify(each).includes(order.intent))
    const [news] = events.filter(({ type }) => type === 'refund.created')
    if (news === undefined) expect.fail('the provider told of no refund')
    const victim = await startServiceProcess(scene.env(audience.settings), { 'events.accepted': { do: 'kill' } })
    await expect(deliver(victim.url, news)).rejects.toThrow()
    await victim.gone
    await deliverAgain(scene, [news, ...events])
    await takeOver(scene, audience.settings)
    const jobs = await scene.db.selectFrom('jobs').select('attempts').where('business_id', '=', news.id).execute()
    expect(jobs).toEqual([{ attempts: 1 }])
    expect(await effectsOf(scene, audience, order.id)).toEqual({ ...paid, ...refunded })
    await expectBooksInOrder(scene)
  }, 240_000)
})

expectKilledAtEachStep(import.meta.filename)
