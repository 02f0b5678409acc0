/** Who lost the lease changes nothing any more; who races for an order moves it once. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Deps } from '../../src/deps.ts'
import { recoverOrders } from '../../src/workers/recover-orders.ts'
import { endLease, endSending, makeDue, orderOf } from '../support/aging.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import { cart, type Reply } from '../support/client.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { type Reactions, type ServiceProcess, startServiceProcess } from '../support/service-process.ts'
import { until } from '../support/until.ts'

const charges = { method: 'POST', path: '/v1/payment_intents' } as const

let scene: Scene
let deps: Deps
let first: ServiceProcess
let other: ServiceProcess
beforeAll(async () => {
  scene = await startScene()
  deps = scene.service.deps
  ;[first, other] = await Promise.all([
    startServiceProcess(scene.env({ LOG_LEVEL: 'info' })),
    startServiceProcess(scene.env()),
  ])
})
afterEach(async () => {
  await scene.books.noFaults()
  await expectBooksInOrder(scene)
})
afterAll(async () => {
  await Promise.all([first.stop(), other.stop()])
  await scene.stop()
})

async function transitionsOf(key: string): Promise<string[]> {
  const { order_id } = await orderOf(scene.db, key)
  const rows = await scene.db
    .selectFrom('order_transitions')
    .select('to_status')
    .where('order_id', '=', order_id)
    .orderBy('at')
    .execute()
  return rows.map((row) => row.to_status)
}

describe('a first owner that froze past its lease', () => {
  it('in the provider call, while a repeat takes over and settles: one charge, both read the same', async () => {
    const key = newKey()
    await scene.books.fault({ ...charges, fault: 'latency', latency_ms: 700, times: 1 })
    const frozen = first.shop.checkout(key)
    await until(async () => (await requestsUnder(key)) > 0, { what: 'the call is at the provider' })
    first.freeze()
    await endLease(scene.db, key)
    const repeat = await scene.shop.checkout(key)
    expect(repeat.status).toBe(201)
    first.thaw()
    const late = await frozen
    expect([late.status, late.text]).toEqual([repeat.status, repeat.text])
    expect(await scene.books.paymentsFor(key)).toMatchObject([{ status: 'succeeded' }])
    expect(await transitionsOf(key)).toEqual(['paid'])
    await until(() => first.log.some((line) => line.includes('came late')), { what: 'the late settlement is logged' })
  })

  const stops: [point: string, overrides: Record<string, unknown>, status: number][] = [
    ['checkout.claimed', {}, 201],
    ['checkout.charged', {}, 201],
    ['settle.deciding_paid', {}, 201],
    ['settle.deciding_payment_failed', { payment_method: 'pm_card_chargeDeclined' }, 402],
    ['settle.deciding_authorized', { capture: 'manual' }, 201],
    // What it decides from ignorance: that nothing was sent.
    ['settle.deciding_pending', {}, 201],
  ]
  it.each(stops)('at %s, while a repeat settles: it changes no row', async (point, overrides, status) => {
    const key = newKey()
    await first.arm({ [point]: { do: 'pause' } } satisfies Reactions)
    const reached = first.log.length
    if (point === 'settle.deciding_pending') await scene.books.fault({ ...charges, fault: 'rate_limit', times: 1 })
    const frozen = first.shop.checkout(key, cart(overrides))
    await until(
      async () => (await scene.db.selectFrom('attempts').select('key').where('key', '=', key).execute()).length === 1,
    )
    await pausedAt(point)
    await endLease(scene.db, key)
    const repeat = await scene.shop.checkout(key, cart(overrides))
    expect(repeat.status).toBe(status)
    const settled = await orderOf(scene.db, key)
    first.resume(point)
    const late = await frozen
    expect([late.status, late.text]).toEqual([repeat.status, repeat.text])
    expect(late.replayed).toBe(true)
    expect(await orderOf(scene.db, key)).toEqual(settled)
    expect(await transitionsOf(key)).toHaveLength(1)
    expect(await scene.books.paymentsFor(key)).toHaveLength(1)
    await until(() => first.log.slice(reached).some((line) => line.includes('came late')), { what: 'it is logged' })
  })

  it('about to end an order of which nothing is found, while a repeat sends and pays: it stays paid', async () => {
    const key = newKey()
    await scene.books.fault({ ...charges, fault: 'rate_limit', times: 1 })
    expect((await scene.shop.checkout(key)).status).toBe(503)
    // As if it had been sent long ago and nobody knew what became of it; now it is only looked for.
    await scene.db
      .updateTable('orders')
      .set({ maybe_sent: true, send_is_pointless: true })
      .where('attempt_key', '=', key)
      .execute()
    await endLease(scene.db, key)
    expect((await scene.shop.checkout(key)).status).toBe(202)
    await endSending(scene.db, key)
    await first.arm({ 'settle.deciding_canceled': { do: 'pause' } })
    const frozen = first.shop.checkout(key)
    await pausedAt('settle.deciding_canceled')
    await scene.db.updateTable('orders').set({ send_is_pointless: false }).where('attempt_key', '=', key).execute()
    await endLease(scene.db, key)
    expect((await scene.shop.checkout(key)).status).toBe(201)
    first.resume('settle.deciding_canceled')
    expect((await frozen).status).toBe(201)
    expect((await orderOf(scene.db, key)).status).toBe('paid')
  })

  it('with nothing but doubt to tell, while another works on it: the lease stays where it is', async () => {
    const key = newKey()
    await scene.books.fault({ ...charges, fault: 'error_after', times: 1 })
    await first.arm({ 'settle.deciding_needs_reconcile': { do: 'pause' } })
    const frozen = first.shop.checkout(key)
    await pausedAt('settle.deciding_needs_reconcile')
    await endLease(scene.db, key)
    await other.arm({ 'recovery.sending': { do: 'pause' } })
    const repeat = other.shop.checkout(key)
    await pausedAt('recovery.sending', other)
    const before = await attemptOf(key)
    first.resume('settle.deciding_needs_reconcile')
    expect(await frozen).toMatchObject({ status: 409, json: { code: 'idempotency_key_in_progress' } })
    expect(await attemptOf(key)).toEqual(before)
    expect(await transitionsOf(key)).toEqual([])
    other.resume('recovery.sending')
    // The provider replays its stored failure; only a look-up tells.
    expect((await repeat).status).toBe(202)
    await makeDue(scene.db, key)
    expect((await scene.shop.checkout(key)).status).toBe(201)
  })
})

describe('a cancel', () => {
  it('that comes while a repeat is about to send waits for what becomes of it', async () => {
    const key = newKey()
    await scene.books.fault({ ...charges, fault: 'rate_limit', times: 1 })
    expect((await scene.shop.checkout(key)).status).toBe(503)
    await other.arm({ 'recovery.sending': { do: 'pause' } })
    const repeat = other.shop.checkout(key)
    await pausedAt('recovery.sending', other)
    const cancel = scene.shop.post(`/v1/checkouts/${key}/cancel`)
    other.resume('recovery.sending')
    expect((await repeat).status).toBe(201)
    expect(await cancel).toMatchObject({ status: 409, json: { code: 'checkout_already_settled' } })
  })

  it('that comes between reading and taking over an order keeps it from being sent', async () => {
    const key = newKey()
    await scene.books.fault({ ...charges, fault: 'error_before', times: 1 })
    expect((await scene.shop.checkout(key)).status).toBe(202)
    await other.arm({ 'recovery.taking_over': { do: 'pause' } })
    await makeDue(scene.db, key)
    const repeat = other.shop.checkout(key)
    await pausedAt('recovery.taking_over', other)
    expect((await scene.shop.post(`/v1/checkouts/${key}/cancel`)).status).toBe(202)
    const requests = await requestsUnder(key)
    other.resume('recovery.taking_over')
    expect((await repeat).status).toBe(202)
    expect(await requestsUnder(key)).toBe(requests)
    await endDoubt(key)
  })
})

describe('all at once on one order, many rounds', () => {
  it('recovery of two processes, repeats and a cancel: one transition to its end, and every client is told of it', async () => {
    const second = await scene.start()
    const shops = [scene.shop, scene.shop.at(second.url)]
    for (let round = 0; round < 12; round++) {
      const key = newKey()
      const overrides = round % 3 === 2 ? { payment_method: 'pm_card_threeDSecure2Required' } : {}
      if (round % 3 !== 2)
        await scene.books.fault({ ...charges, fault: round % 3 === 0 ? 'error_after' : 'error_before', times: 1 })
      const started = await scene.shop.checkout(key, cart(overrides))
      expect(started.status).toBe(202)
      if (round % 6 === 2) await scene.books.act(started.json.payment.reference, 'succeed')
      await makeDue(scene.db, key)
      const replies = await Promise.all<Reply | number>([
        recoverOrders(deps),
        recoverOrders(second.deps),
        ...shops.map((shop) => shop.checkout(key, cart(overrides))),
        ...shops.map((shop) => shop.post(`/v1/checkouts/${key}/cancel`)),
      ])
      for (const reply of replies) if (typeof reply !== 'number') expect(reply.status).toBeLessThan(500)
      await endDoubt(key)
      const order = await orderOf(scene.db, key)
      expect(['paid', 'canceled']).toContain(order.status)
      const ends = (await transitionsOf(key)).filter((status) => status === 'paid' || status === 'canceled')
      expect(ends).toEqual([order.status])
      const after = await Promise.all(shops.map((shop) => shop.checkout(key, cart(overrides))))
      expect(after.map(({ status }) => status)).toEqual(order.status === 'paid' ? [201, 201] : [409, 409])
      expect(after[0]?.text).toBe(after[1]?.text)
    }
  })
})

/** Lets time pass until nothing that was sent can still arrive, and recovery has had its say. */
async function endDoubt(key: string): Promise<void> {
  await until(
    async () => {
      await scene.db
        .updateTable('orders')
        .set({ last_send_before: new Date(Date.now() - 601_000) })
        .where('attempt_key', '=', key)
        .execute()
      await makeDue(scene.db, key)
      await recoverOrders(deps)
      const { status } = await orderOf(scene.db, key)
      return status !== 'needs_reconcile' && status !== 'pending' && status !== 'requires_action'
    },
    { what: 'the order to end' },
  )
}

/** Resolves when the process has paused there once more, counted over all tests. */
async function pausedAt(point: string, process: ServiceProcess = first): Promise<void> {
  const counted = pauses.get(process) ?? new Map<string, number>()
  pauses.set(process, counted)
  const times = (counted.get(point) ?? 0) + 1
  counted.set(point, times)
  await process.reached(point, times)
}
const pauses = new Map<ServiceProcess, Map<string, number>>()

async function attemptOf(key: string) {
  return scene.db.selectFrom('attempts').selectAll().where('key', '=', key).executeTakeFirstOrThrow()
}

/** Requests that came to the simulator under the attempt's key. */
async function requestsUnder(key: string): Promise<number> {
  const { data } = (await scene.books.control('GET', '/requests')) as {
    data: { idempotency_key: string | null }[]
  }
  return data.filter((request) => request.idempotency_key === `ten_demo:${key}`).length
}
