import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { expireRuns } from '../../src/workers/expire-runs.ts'
import { expire } from '../support/aging.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import type { BookedPayment } from '../support/books.ts'
import { type Client, keys, type Reply } from '../support/client.ts'
import { activeRun, endOfRun, finalize, hold, makeRunDue, startRun, use } from '../support/runs.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { until } from '../support/until.ts'

let scene: Scene
let other: Client
beforeAll(async () => {
  scene = await startScene({ settings: { PROVIDER_TIMEOUT_MS: '500', CHECKOUT_BUDGET_MS: '1500' } })
  other = scene.backend.at((await scene.start()).url)
  await scene.backend.put('/v1/meters/cents', { price: 1, per: 1, currency: 'EUR' })
})
afterEach(async () => {
  await scene.books.noFaults()
  await expectBooksInOrder(scene)
})
afterAll(() => scene.stop())

describe('finalizing a run', () => {
  it('captures what was used, lets go of the rest, and gives the same answer however often', async () => {
    const key = newKey()
    const runId = await activeRun(scene.backend, key)
    await use(scene.backend, runId, 'input_tokens', 1_000_000)
    await use(scene.backend, runId, 'output_tokens', 200_000)
    const first = await finalize(scene.backend, runId)
    expect(first.status).toBe(200)
    expect(first.json).toMatchObject({
      id: runId,
      status: 'finalized',
      hold_amount: 1000,
      used_amount: 600,
      captured: 600,
      usage: [
        { meter_type: 'input_tokens', quantity: 1_000_000, amount: 300 },
        { meter_type: 'output_tokens', quantity: 200_000, amount: 300 },
      ],
    })
    for (const client of [scene.backend, other]) {
      const again = await finalize(client, runId)
      expect([again.status, again.text]).toEqual([200, first.text])
    }
    expect((await scene.backend.get(`/v1/runs/${runId}`)).json).toEqual(first.json)
    expect(await paymentOf(key)).toMatchObject({ status: 'succeeded', amount_received: 600 })
    expect(await transfersOf(first)).toEqual([['capture', 600]])
  })

  it('of which nothing was used lets the hold go', async () => {
    const key = newKey()
    const runId = await activeRun(scene.backend, key)
    const first = await finalize(scene.backend, runId)
    expect([first.status, first.json.status, first.json.captured]).toEqual([200, 'finalized', 0])
    expect((await finalize(scene.backend, runId)).text).toBe(first.text)
    expect(await paymentOf(key)).toMatchObject({ status: 'canceled', amount_received: 0, amount_capturable: 0 })
    expect(await transfersOf(first)).toEqual([])
  })

  it('that used more than its hold captures the hold, and the excess is booked as unbilled once', async () => {
    const key = newKey()
    const runId = await activeRun(scene.backend, key, hold({ hold_amount: 100 }))
    await use(scene.backend, runId, 'cents', 175)
    const first = await finalize(scene.backend, runId)
    expect(first.json).toMatchObject({ status: 'finalized', used_amount: 175, captured: 100 })
    await finalize(scene.backend, runId)
    expect(await paymentOf(key)).toMatchObject({ status: 'succeeded', amount_received: 100 })
    expect(await transfersOf(first)).toEqual([
      ['capture', 100],
      ['unbilled', 75],
    ])
  })

  it('in a currency with a step captures whole steps, and what is below is booked as unbilled', async () => {
    await scene.backend.put('/v1/meters/fils', { price: 1, per: 1, currency: 'KWD' })
    const key = newKey()
    const runId = await activeRun(scene.backend, key, hold({ hold_amount: 2000, currency: 'KWD' }))
    await use(scene.backend, runId, 'fils', 1234)
    const first = await finalize(scene.backend, runId)
    expect(first.json).toMatchObject({ status: 'finalized', used_amount: 1234, captured: 1230 })
    expect(await paymentOf(key)).toMatchObject({ status: 'succeeded', amount_received: 1230 })
    expect(await transfersOf(first)).toEqual([
      ['capture', 1230],
      ['unbilled', 4],
    ])
  })

  it('ends it for usage: what is new is refused, what is recorded is still found', async () => {
    const runId = await activeRun(scene.backend)
    const line = await use(scene.backend, runId, 'cents', 80)
    await finalize(scene.backend, runId)
    const late = await use(scene.backend, runId, 'input_tokens', 1)
    expect([late.status, late.json.code, late.json.run_status]).toEqual([409, 'run_closed', 'finalized'])
    const again = await use(scene.backend, runId, 'cents', 80)
    expect([again.status, again.text]).toEqual([200, line.text])
  })

  it("of nobody's or somebody else's run is not found, a storefront may not, and there is nothing to send", async () => {
    const runId = await activeRun(scene.backend)
    expect((await finalize(scene.backend, 'run_none')).status).toBe(404)
    expect((await finalize(scene.backend.withKey(keys.otherBackend), runId)).status).toBe(404)
    expect((await finalize(scene.shop, runId)).status).toBe(403)
    expect((await scene.backend.post(`/v1/runs/${runId}/finalize`, { amount: 5 })).status).toBe(400)
    expect((await scene.backend.get(`/v1/runs/${runId}`)).json.status).toBe('active')
  })

  it('by many at once over two services captures once', async () => {
    for (let round = 0; round < 8; round++) {
      const key = newKey()
      const runId = await activeRun(scene.backend, key)
      await use(scene.backend, runId, 'cents', 300 + round)
      const replies = await Promise.all(
        Array.from({ length: 10 }, (_, i) => finalize(i % 2 === 0 ? scene.backend : other, runId)),
      )
      // A repeat that finds the capture under way is told so.
      for (const reply of replies) expect([200, 202]).toContain(reply.status)
      const last = await endOfRun(scene, runId)
      expect(last.json).toMatchObject({ status: 'finalized', captured: 300 + round })
      for (const reply of replies.filter(({ status }) => status === 200)) expect(reply.text).toBe(last.text)
      expect(await paymentOf(key)).toMatchObject({ status: 'succeeded', amount_received: 300 + round })
      expect(await transfersOf(last)).toEqual([['capture', 300 + round]])
    }
  })

  it('while usage arrives over two services captures exactly what was accepted', async () => {
    const meters = Array.from({ length: 12 }, (_, i) => `racing_${i}`)
    await Promise.all(
      meters.map((meter) => scene.backend.put(`/v1/meters/${meter}`, { price: 1, per: 1, currency: 'EUR' })),
    )
    const accepted: number[] = []
    for (let round = 0; round < 15; round++) {
      const key = newKey()
      const runId = await activeRun(scene.backend, key, hold({ hold_amount: 600 }))
      const usage: Reply[] = []
      // Two consumers each, one line after the other; the run is ended while some have been recorded and others have not.
      const consumers = [0, 1, 2, 3].map(async (consumer) => {
        for (const meter of meters.slice(consumer * 3, consumer * 3 + 3)) {
          usage.push(await use(consumer % 2 === 0 ? scene.backend : other, runId, meter, 70 + round))
        }
      })
      await until(() => usage.length >= round % 10, { everyMs: 1 })
      await Promise.all([...consumers, finalize(round % 2 === 0 ? other : scene.backend, runId)])
      for (const reply of usage) expect([201, 409]).toContain(reply.status)
      for (const reply of usage.filter(({ status }) => status === 409)) expect(reply.json.code).toBe('run_closed')
      const sum = usage.reduce((total, reply) => total + (reply.status === 201 ? reply.json.amount : 0), 0)
      const last = await endOfRun(scene, runId)
      expect(last.json).toMatchObject({ status: 'finalized', used_amount: sum, captured: Math.min(sum, 600) })
      expect((await paymentOf(key)).amount_received).toBe(Math.min(sum, 600))
      accepted.push(sum)
    }
    // The race is one: it went this way and that.
    expect(new Set(accepted).size).toBeGreaterThan(1)
  })

  it('of a run whose hold was declined tells so', async () => {
    const declined = await startRun(scene.backend, newKey(), hold({ payment_method: 'pm_card_chargeDeclined' }))
    const failed = await finalize(scene.backend, declined.json.run_id)
    expect([failed.status, failed.json.status, failed.json.captured]).toEqual([200, 'failed', 0])
  })

  it('whose hold was canceled by hand at the provider captures nothing: all that was used is unbilled', async () => {
    const key = newKey()
    const runId = await activeRun(scene.backend, key)
    await use(scene.backend, runId, 'cents', 60)
    await cancelAtTheProvider((await paymentOf(key)).id)
    const end = await finalize(scene.backend, runId)
    expect([end.status, end.json.used_amount, end.json.captured]).toEqual([200, 60, 0])
    expect(await transfersOf(end)).toEqual([['unbilled', 60]])
    const late = await use(scene.backend, runId, 'input_tokens', 1_000_000)
    expect([late.status, late.json.code]).toEqual([409, 'run_closed'])
    expect((await finalize(scene.backend, runId)).text).toBe(end.text)
  })

  it('is the only way to end it: its order can be neither captured nor canceled', async () => {
    const { json } = await startRun(scene.backend, newKey())
    for (const end of ['capture', 'cancel']) {
      const reply = await scene.backend.post(`/v1/orders/${json.order_id}/${end}`)
      expect([reply.status, reply.json.code]).toEqual([409, 'order_state_conflict'])
    }
    expect((await scene.backend.get(`/v1/runs/${json.id}`)).json.status).toBe('active')
  })
})

describe('finalizing a run whose hold is in doubt', () => {
  it('gives the hold up: nothing is captured, and the hold that was placed is let go', async () => {
    const key = newKey()
    await scene.books.fault({ method: 'POST', path: '/v1/payment_intents', fault: 'error_after', times: 1 })
    const inDoubt = await startRun(scene.backend, key)
    expect(inDoubt.status).toBe(202)
    const runId = inDoubt.json.id
    const first = await finalize(scene.backend, runId)
    expect([200, 202]).toContain(first.status)
    const last = await endOfRun(scene, runId)
    expect(last.json).toMatchObject({ status: 'finalized', captured: 0, used_amount: 0 })
    expect(await paymentOf(key)).toMatchObject({ status: 'canceled', amount_received: 0, amount_capturable: 0 })
    const repeat = await startRun(scene.backend, key)
    expect([repeat.status, repeat.json.code, repeat.json.new_key_safe]).toEqual([409, 'run_closed', true])
  })
})

describe('a capture whose answer is lost', () => {
  it.each(['drop_after', 'error_after', 'hang'] as const)('by %s is captured once', async (fault) => {
    const key = newKey()
    const runId = await activeRun(scene.backend, key, hold({ hold_amount: 200 }))
    await use(scene.backend, runId, 'cents', 250)
    const intent = (await paymentOf(key)).id
    await scene.books.fault({ method: 'POST', path: `/v1/payment_intents/${intent}/capture`, fault, times: 1 })
    const first = await finalize(scene.backend, runId)
    expect([200, 202]).toContain(first.status)
    if (first.status === 202) expect(first.json).toMatchObject({ status: 'finalizing', captured: 0, used_amount: 250 })
    const last = await endOfRun(scene, runId)
    expect(last.json).toMatchObject({ status: 'finalized', used_amount: 250, captured: 200 })
    expect(await paymentOf(key)).toMatchObject({ status: 'succeeded', amount_received: 200 })
    expect(await transfersOf(last)).toEqual([
      ['capture', 200],
      ['unbilled', 50],
    ])
  })

  it.each(['drop_before', 'error_before', 'rate_limit'] as const)(
    'or that never arrived, by %s, is made up for by the worker',
    async (fault) => {
      const key = newKey()
      const runId = await activeRun(scene.backend, key)
      await use(scene.backend, runId, 'cents', 250)
      const intent = (await paymentOf(key)).id
      await scene.books.fault({ method: 'POST', path: `/v1/payment_intents/${intent}/capture`, fault, times: 8 })
      const first = await finalize(scene.backend, runId)
      expect(first.status).toBe(202)
      expect(first.json).toMatchObject({ status: 'finalizing', used_amount: 250, captured: 0 })
      const late = await use(scene.backend, runId, 'input_tokens', 1_000_000)
      expect([late.status, late.json.code]).toEqual([409, 'run_closed'])
      await scene.books.noFaults()
      const last = await endOfRun(scene, runId)
      expect(last.json).toMatchObject({ status: 'finalized', captured: 250 })
      expect(await paymentOf(key)).toMatchObject({ status: 'succeeded', amount_received: 250 })
    },
  )
})

describe('a run whose worker died', () => {
  it('is ended when it expires: what was used is captured', async () => {
    const key = newKey()
    const runId = await activeRun(scene.backend, key, hold({ hold_amount: 100 }))
    await use(scene.backend, runId, 'cents', 130)
    expect(await expireRuns(scene.service.deps)).toBe(0)
    await makeRunDue(scene.db, runId)
    expect(await expireRuns(scene.service.deps)).toBe(1)
    const run = await scene.backend.get(`/v1/runs/${runId}`)
    expect(run.json).toMatchObject({ status: 'expired', used_amount: 130, captured: 100 })
    expect(await transfersOf(run)).toEqual([
      ['capture', 100],
      ['unbilled', 30],
    ])
    expect(await paymentOf(key)).toMatchObject({ status: 'succeeded', amount_received: 100 })
    // The worker comes back after all.
    const late = await finalize(scene.backend, runId)
    expect([late.status, late.json]).toEqual([200, run.json])
    const usage = await use(scene.backend, runId, 'input_tokens', 1)
    expect([usage.status, usage.json.code]).toEqual([409, 'run_closed'])
  })

  it('and that used nothing is let go when it expires', async () => {
    const key = newKey()
    const runId = await activeRun(scene.backend, key)
    await makeRunDue(scene.db, runId)
    await expireRuns(scene.service.deps)
    expect((await scene.backend.get(`/v1/runs/${runId}`)).json).toMatchObject({ status: 'expired', captured: 0 })
    expect(await paymentOf(key)).toMatchObject({ status: 'canceled' })
  })

  it('is looked at by one of many workers at once, and finalized by its own at the same moment: captured once', async () => {
    for (let round = 0; round < 6; round++) {
      const key = newKey()
      const runId = await activeRun(scene.backend, key)
      await use(scene.backend, runId, 'cents', 90)
      await makeRunDue(scene.db, runId)
      await Promise.all([
        expireRuns(scene.service.deps),
        expireRuns(scene.service.deps),
        finalize(other, runId),
        finalize(scene.backend, runId),
      ])
      const last = await endOfRun(scene, runId)
      expect(['expired', 'finalized']).toContain(last.json.status)
      expect(last.json.captured).toBe(90)
      expect(await paymentOf(key)).toMatchObject({ status: 'succeeded', amount_received: 90 })
    }
  })

  it('before its hold was placed is given up when it expires', async () => {
    const key = newKey()
    await scene.books.fault({ method: 'POST', path: '/v1/payment_intents', fault: 'error_after' })
    const { json } = await startRun(scene.backend, key)
    await scene.books.noFaults()
    await expire(scene.db, key)
    await makeRunDue(scene.db, json.id)
    await expireRuns(scene.service.deps)
    const last = await endOfRun(scene, json.id)
    expect(last.json).toMatchObject({ status: 'expired', captured: 0 })
    expect(await paymentOf(key)).toMatchObject({ status: 'canceled', amount_received: 0 })
  })

  it('and whose hold was declined needs no more looks once it would have expired', async () => {
    const { json } = await startRun(scene.backend, newKey(), hold({ payment_method: 'pm_card_chargeDeclined' }))
    await makeRunDue(scene.db, json.run_id)
    expect(await expireRuns(scene.service.deps)).toBe(1)
    await makeRunDue(scene.db, json.run_id)
    expect(await expireRuns(scene.service.deps)).toBe(0)
    expect((await scene.backend.get(`/v1/runs/${json.run_id}`)).json.status).toBe('failed')
  })
})

async function paymentOf(key: string): Promise<BookedPayment> {
  const payments = await scene.books.paymentsFor(key)
  expect(payments).toHaveLength(1)
  return payments[0] as BookedPayment
}

async function cancelAtTheProvider(intentId: string): Promise<void> {
  const response = await fetch(`${scene.simulatorUrl}/v1/payment_intents/${intentId}/cancel`, {
    method: 'POST',
    headers: { authorization: 'Bearer sk_test_scene' },
  })
  expect(response.status).toBe(200)
}

/** What the ledger says of the run's order: kind and amount. */
async function transfersOf({ json }: Reply): Promise<[string, number][]> {
  const { data } = (await scene.backend.get(`/v1/ledger/transfers?order_id=${json.order_id}`)).json
  return data.map(({ kind, amount }: { kind: string; amount: number }) => [kind, amount]).sort()
}
