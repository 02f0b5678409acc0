/** How often the provider is asked about an open order, by whom, and who goes first. */
import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Deps } from '../../src/deps.ts'
import type { Order } from '../../src/domain/order.ts'
import { Gate } from '../../src/runtime/gate.ts'
import { claimAsk, claimDueOrders } from '../../src/store/orders.ts'
import { recoverOrders } from '../../src/workers/recover-orders.ts'
import { makeDue, makeOlder, orderOf } from '../support/aging.ts'
import { cart } from '../support/client.ts'
import { putOffAsking } from '../support/deaths.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'

const firstMs = 2000
const threeDSecure = { payment_method: 'pm_card_threeDSecure2Required' }

let scene: Scene
let deps: Deps
beforeAll(async () => {
  // Nothing becomes due by itself while the tests run.
  scene = await startScene({ settings: { RECONCILE_AFTER_MS: '600000', ORDER_EXPIRY_MINUTES: '600' } })
  deps = scene.service.deps
  await scene.books.webhooks({ drop: 1 })
})
afterAll(() => scene.stop())

async function waiting(): Promise<string> {
  const key = newKey()
  expect((await scene.shop.checkout(key, cart(threeDSecure))).status).toBe(202)
  return key
}

async function asksOf(key: string): Promise<number> {
  const { order_id } = await orderOf(scene.db, key)
  const calls = await scene.db
    .selectFrom('provider_calls')
    .select('operation')
    .where('order_id', '=', order_id)
    .execute()
  return calls.filter(({ operation }) => operation !== 'payment.create').length
}

describe('asking about an open order', () => {
  it('is claimed in its row: of recoveries and repeats at once, one asks', async () => {
    const key = await waiting()
    const second = await scene.start()
    await makeDue(scene.db, key)
    await Promise.all([
      recoverOrders(deps),
      recoverOrders(second.deps),
      ...[1, 2, 3].map(() => scene.shop.checkout(key, cart(threeDSecure))),
      ...[1, 2, 3].map(() => scene.shop.at(second.url).checkout(key, cart(threeDSecure))),
    ])
    expect(await asksOf(key)).toBe(1)
    // And until the pause is over, nobody.
    expect((await scene.shop.checkout(key, cart(threeDSecure))).status).toBe(202)
    expect(await recoverOrders(deps)).toBe(0)
    expect(await asksOf(key)).toBe(1)
  })

  it('pauses twice as long each time, up to a quarter of an hour, give or take a quarter', async () => {
    const key = await waiting()
    const { tenant_id, order_id, asks } = await orderOf(scene.db, key)
    expect(asks).toBe(0)
    for (let ask = 0; ask < 14; ask++) {
      await makeDue(scene.db, key)
      // By the database's clock, as the pause is.
      const before = await databaseNow()
      const asked = (await claimAsk(deps.pool, tenant_id, order_id, firstMs)) as Order
      const after = await databaseNow()
      const expected = Math.min(firstMs * 2 ** ask, 900_000)
      expect(asked.next_ask_at.getTime()).toBeGreaterThanOrEqual(before + expected * 0.75 - 1)
      expect(asked.next_ask_at.getTime()).toBeLessThanOrEqual(after + expected * 1.25 + 1)
      expect(asked.asks).toBe(ask + 1)
    }
  })

  it('begins anew with short pauses when the order waits for something else', async () => {
    const key = newKey()
    await scene.books.fault({ method: 'POST', path: '/v1/payment_intents', fault: 'error_after', times: 1 })
    expect((await scene.shop.checkout(key, cart(threeDSecure))).json.status).toBe('needs_reconcile')
    await scene.db.updateTable('orders').set({ asks: 10 }).where('attempt_key', '=', key).execute()
    await makeOlder(scene.db, key, 6)
    await recoverOrders(deps)
    expect(await orderOf(scene.db, key)).toMatchObject({ status: 'requires_action', asks: 0 })
  })

  it('comes to those first that have waited longest, and to each once', async () => {
    const keys = [await waiting(), await waiting(), await waiting()]
    for (const key of keys) await makeDue(scene.db, key)
    const claimed: string[] = []
    for (let count = 0; count < 3; count++) {
      const [order] = await claimDueOrders(deps.pool, { firstMs: 600_000, atMost: 1 })
      claimed.push(order?.attempt_key ?? '')
    }
    expect(claimed).toEqual(keys)
    expect(await claimDueOrders(deps.pool, { firstMs: 600_000, atMost: 1 })).toEqual([])
  })
})

describe('calls in the background', () => {
  it('take a turn each, also where one look-up needs several', async () => {
    const key = newKey()
    await scene.books.fault({ method: 'POST', path: '/v1/payment_intents', fault: 'error_before', times: 1 })
    expect((await scene.shop.checkout(key)).status).toBe(202)
    // More payments than a page of the list holds.
    for (let count = 0; count < 101; count += 20) {
      await Promise.all(Array.from({ length: 20 }, () => scene.shop.checkout(newKey())))
    }
    // On a slow machine others of this file may have come due meanwhile.
    await putOffAsking(scene)
    await makeOlder(scene.db, key, 6)
    let turns = 0
    const gate = new Gate({ perSecond: 1e6, customersMax: 1e6, patienceMs: 0 })
    const counted = Object.assign(Object.create(gate) as Gate, {
      turn: () => {
        turns += 1
        return gate.turn()
      },
    })
    expect(await recoverOrders({ ...deps, gate: counted })).toBe(1)
    expect(await asksOf(key)).toBe(2)
    expect(turns).toBe(2)
  })

  it('wait while many customers have calls under way', async () => {
    const gate = new Gate({ perSecond: 1e6, customersMax: 1, patienceMs: 600_000 })
    const ends: (() => void)[] = []
    const calls = [1, 2].map(() => gate.customer(() => new Promise<void>((resolve) => ends.push(resolve))))
    let hasTurn = false
    const turn = gate.turn().then(() => {
      hasTurn = true
    })
    for (let look = 0; look < 50; look++) await turnOfTheLoop()
    expect(hasTurn).toBe(false)
    ends[0]?.()
    await turn
    expect(hasTurn).toBe(true)
    ends[1]?.()
    await Promise.all(calls)
  })
})

async function databaseNow(): Promise<number> {
  const { rows } = await deps.pool.query<{ now: Date }>('SELECT clock_timestamp() AS now')
  return (rows[0]?.now ?? new Date(Number.NaN)).getTime()
}
