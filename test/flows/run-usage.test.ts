import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { expectBooksInOrder } from '../support/audit.ts'
import { keys, type Reply } from '../support/client.ts'
import { activeRun, hold, startRun, use } from '../support/runs.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'

let scene: Scene
beforeAll(async () => {
  scene = await startScene({ settings: { PROVIDER_TIMEOUT_MS: '500', CHECKOUT_BUDGET_MS: '1500' } })
  await price('half', { price: 1, per: 2, currency: 'EUR' })
  await price('cents', { price: 1, per: 1, currency: 'EUR' })
  await price('dollars', { price: 1, per: 1, currency: 'USD' })
  await price('free', { price: 0, per: 1, currency: 'EUR' })
})
afterEach(async () => {
  await scene.books.noFaults()
  await expectBooksInOrder(scene, { unfinished: true })
})
afterAll(() => scene.stop())

describe('usage', () => {
  it('is recorded once per run and meter: the same again gets the same bytes', async () => {
    const runId = await activeRun(scene.backend)
    const first = await use(scene.backend, runId, 'input_tokens', 120_000)
    expect([first.status, first.replayed]).toEqual([201, false])
    expect(first.json).toEqual({
      object: 'usage',
      run_id: runId,
      meter_type: 'input_tokens',
      quantity: 120_000,
      amount: 36,
      currency: 'EUR',
      used_amount: 36,
      over_hold: false,
      created_at: expect.any(String),
    })
    await use(scene.backend, runId, 'output_tokens', 10_000)
    const repeat = await use(scene.backend, runId, 'input_tokens', 120_000)
    expect([repeat.status, repeat.replayed, repeat.text]).toEqual([200, true, first.text])
    expect((await scene.backend.get(`/v1/runs/${runId}`)).json).toMatchObject({
      status: 'active',
      used_amount: 51,
      captured: 0,
      usage: [
        { meter_type: 'input_tokens', quantity: 120_000, amount: 36 },
        { meter_type: 'output_tokens', quantity: 10_000, amount: 15 },
      ],
    })
  })

  it('with another quantity is a conflict and changes nothing', async () => {
    const runId = await activeRun(scene.backend)
    await use(scene.backend, runId, 'cents', 5)
    const other = await use(scene.backend, runId, 'cents', 6)
    expect([other.status, other.json.code, other.json.recorded_quantity]).toEqual([409, 'usage_conflict', 5])
    expect((await scene.backend.get(`/v1/runs/${runId}`)).json.used_amount).toBe(5)
  })

  it('is rounded half up once a line, and lines are summed as they are', async () => {
    const runId = await activeRun(scene.backend)
    // 0.5 each: rounded by themselves they come to 2, together they would come to 1.
    await price('half_too', { price: 1, per: 2, currency: 'EUR' })
    const [a, b] = [await use(scene.backend, runId, 'half', 1), await use(scene.backend, runId, 'half_too', 1)]
    expect([a?.json.amount, b?.json.amount]).toEqual([1, 1])
    expect((await scene.backend.get(`/v1/runs/${runId}`)).json.used_amount).toBe(2)

    const third = await activeRun(scene.backend)
    // 300 for 1000000: 1666 come to 0.4998, 1667 to 0.5001.
    expect((await use(scene.backend, third, 'input_tokens', 1666)).json.amount).toBe(0)
    const fourth = await activeRun(scene.backend)
    expect((await use(scene.backend, fourth, 'input_tokens', 1667)).json.amount).toBe(1)
  })

  it('keeps the price that it was recorded at, and a repeat needs neither the price nor the currency of today', async () => {
    await price('changing', { price: 7, per: 1, currency: 'EUR' })
    const runId = await activeRun(scene.backend)
    const first = await use(scene.backend, runId, 'changing', 3)
    await price('changing', { price: 9, per: 1, currency: 'USD' })
    const repeat = await use(scene.backend, runId, 'changing', 3)
    expect([repeat.status, repeat.text]).toEqual([200, first.text])
    expect((await scene.backend.get(`/v1/runs/${runId}`)).json.used_amount).toBe(21)
  })

  it('beyond the hold is recorded and said to be so, exactly from the first unit beyond it', async () => {
    const runId = await activeRun(scene.backend, newKey(), hold({ hold_amount: 100 }))
    const within = await use(scene.backend, runId, 'cents', 100)
    expect([within.status, within.json.over_hold]).toEqual([201, false])
    const beyond = await use(scene.backend, runId, 'half', 1)
    expect([beyond.status, beyond.json.over_hold, beyond.json.used_amount]).toEqual([201, true, 101])
    expect((await use(scene.backend, runId, 'cents', 100)).json.over_hold).toBe(false)
  })

  it('of nothing, or of what is free, is recorded as such', async () => {
    const runId = await activeRun(scene.backend)
    expect((await use(scene.backend, runId, 'cents', 0)).json).toMatchObject({ amount: 0, used_amount: 0 })
    expect((await use(scene.backend, runId, 'free', 12)).json).toMatchObject({ amount: 0, quantity: 12 })
  })

  it('of an unknown meter or in another currency is refused', async () => {
    const runId = await activeRun(scene.backend)
    const unknown = await use(scene.backend, runId, 'nobody_priced_this', 1)
    expect([unknown.status, unknown.json.code]).toEqual([422, 'unknown_meter'])
    const dollars = await use(scene.backend, runId, 'dollars', 1)
    expect([dollars.status, dollars.json.code]).toEqual([422, 'currency_mismatch'])
    expect((await scene.backend.get(`/v1/runs/${runId}`)).json.usage).toEqual([])
  })

  it('that comes to more than can be counted is refused, also together with what is recorded', async () => {
    await price('dear', { price: 999_999_999_999, per: 1, currency: 'EUR' })
    const runId = await activeRun(scene.backend)
    const tooMuch = await use(scene.backend, runId, 'dear', 1_000_000_000_000)
    expect([tooMuch.status, tooMuch.json.code]).toEqual([422, 'amount_not_chargeable'])
    expect((await use(scene.backend, runId, 'dear', 1)).status).toBe(201)
    const more = await use(scene.backend, runId, 'cents', 1)
    expect([more.status, more.json.code]).toEqual([422, 'amount_not_chargeable'])
  })

  it.each([
    ['a negative quantity', { meter_type: 'cents', quantity: -1 }],
    ['a fraction', { meter_type: 'cents', quantity: 0.5 }],
    ['a prompt', { meter_type: 'cents', quantity: 1, prompt: 'tell me' }],
    ['no meter', { quantity: 1 }],
    ['a strange meter', { meter_type: 'a b', quantity: 1 }],
  ])('with %s is refused', async (_what, body) => {
    const runId = await activeRun(scene.backend)
    const reply = await scene.backend.post(`/v1/runs/${runId}/usage`, body)
    expect([reply.status, reply.json.code]).toEqual([400, 'invalid_request'])
  })

  it("of nobody's or somebody else's run is not found, and a storefront may not record any", async () => {
    const runId = await activeRun(scene.backend)
    expect((await use(scene.backend, 'run_none', 'cents', 1)).status).toBe(404)
    expect((await use(scene.backend.withKey(keys.otherBackend), runId, 'cents', 1)).status).toBe(404)
    expect((await use(scene.shop, runId, 'cents', 1)).status).toBe(403)
  })

  it('of a run that was declined is refused, and while the hold is in doubt is told to wait', async () => {
    const declined = await startRun(scene.backend, newKey(), hold({ payment_method: 'pm_card_chargeDeclined' }))
    const refused = await use(scene.backend, declined.json.run_id, 'cents', 1)
    expect([refused.status, refused.json.code]).toEqual([409, 'run_closed'])

    await scene.books.fault({ method: 'POST', path: '/v1/payment_intents', fault: 'error_after' })
    const inDoubt = await startRun(scene.backend, newKey())
    const early = await use(scene.backend, inDoubt.json.id, 'cents', 1)
    expect([early.status, early.json.code, early.headers.get('retry-after')]).toEqual([
      409,
      'order_state_conflict',
      '1',
    ])
  })
})

describe('usage from many at once', () => {
  it('of one meter over two services is recorded once, and everybody reads the same', async () => {
    const other = scene.backend.at((await scene.start()).url)
    for (let round = 0; round < 10; round++) {
      const runId = await activeRun(scene.backend)
      const replies = await Promise.all(
        Array.from({ length: 12 }, (_, i) => use(i % 2 === 0 ? scene.backend : other, runId, 'cents', 7)),
      )
      expect(replies.map(statusOf).sort()).toEqual([...Array(11).fill(200), 201])
      expect(new Set(replies.map((reply) => reply.text)).size).toBe(1)
      expect((await scene.backend.get(`/v1/runs/${runId}`)).json.used_amount).toBe(7)
    }
  })

  it('of one meter with different quantities is recorded once, and the rest are conflicts', async () => {
    const other = scene.backend.at((await scene.start()).url)
    const runId = await activeRun(scene.backend)
    const replies = await Promise.all(
      Array.from({ length: 12 }, (_, i) => use(i % 2 === 0 ? scene.backend : other, runId, 'cents', i + 1)),
    )
    expect(replies.map(statusOf).sort()).toEqual([201, ...Array(11).fill(409)])
    const won = replies.find((reply) => reply.status === 201) as Reply
    expect((await scene.backend.get(`/v1/runs/${runId}`)).json.usage).toEqual([
      { meter_type: 'cents', quantity: won.json.quantity, amount: won.json.quantity },
    ])
  })

  it('of many meters over two services adds up, and is over the hold exactly from where it is', async () => {
    const other = scene.backend.at((await scene.start()).url)
    const meters = Array.from({ length: 16 }, (_, i) => `many_${i}`)
    await Promise.all(meters.map((meter) => price(meter, { price: 1, per: 1, currency: 'EUR' })))
    const runId = await activeRun(scene.backend, newKey(), hold({ hold_amount: 80 }))
    const replies = await Promise.all(
      meters.map((meter, i) => use(i % 2 === 0 ? scene.backend : other, runId, meter, 10)),
    )
    expect(replies.map(statusOf)).toEqual(Array(16).fill(201))
    const inOrder = replies.map((reply) => reply.json).sort((a, b) => a.used_amount - b.used_amount)
    expect(inOrder.map((line) => line.used_amount)).toEqual(meters.map((_, i) => (i + 1) * 10))
    expect(inOrder.map((line) => line.over_hold)).toEqual(meters.map((_, i) => (i + 1) * 10 > 80))
  })
})

function price(meterType: string, body: Record<string, unknown>): Promise<Reply> {
  return scene.backend.put(`/v1/meters/${meterType}`, body)
}

function statusOf(reply: Reply): number {
  return reply.status
}
