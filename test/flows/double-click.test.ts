import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { expectBooksInOrder } from '../support/audit.ts'
import { cart, type Reply } from '../support/client.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { type ServiceProcess, startServiceProcess } from '../support/service-process.ts'

let scene: Scene
let others: ServiceProcess[]
beforeAll(async () => {
  scene = await startScene()
  others = await Promise.all([1, 2].map(() => startServiceProcess(scene.env({ LOG_LEVEL: 'info' }))))
})
afterEach(() => expectBooksInOrder(scene))
afterAll(async () => {
  await Promise.all(others.map((each) => each.stop()))
  await scene.stop()
})

describe('equal requests at once', () => {
  it('50 of one key on one process: one executes, the rest get its answer', async () => {
    const key = newKey()
    const replies = await Promise.all(Array.from({ length: 50 }, () => scene.shop.checkout(key)))
    expectOneAnswer(replies)
    expect(await scene.books.paymentsFor(key)).toMatchObject([{ status: 'succeeded', requests: 1 }])
    expect(await ordersOf(key)).toHaveLength(1)
  })

  it('200 first uses of one key over three processes: one executes, the rest get its answer, and no log speaks of an error', async () => {
    const key = newKey()
    const shops = [scene.shop, ...others.map((each) => each.shop)]
    const replies = await Promise.all(
      Array.from({ length: 200 }, (_, i) => (shops[i % shops.length] as typeof scene.shop).checkout(key)),
    )
    expectOneAnswer(replies)
    expect(await scene.books.paymentsFor(key)).toMatchObject([{ status: 'succeeded', requests: 1 }])
    expect(await ordersOf(key)).toHaveLength(1)
    expect(others.flatMap((each) => each.log).filter(isAlarming)).toEqual([])
  })

  it('many keys, each sent once to every process at the same moment: one order and one charge a key', async () => {
    const keys = Array.from({ length: 40 }, newKey)
    const shops = [scene.shop, ...others.map((each) => each.shop)]
    const replies = await Promise.all(
      keys.map((key, i) =>
        Promise.all(shops.map((shop) => shop.checkout(key, cart({ customer: { email: `race${i % 3}@example.com` } })))),
      ),
    )
    for (const [i, key] of keys.entries()) {
      expectOneAnswer(replies[i] as Reply[])
      expect(await scene.books.paymentsFor(key)).toMatchObject([{ status: 'succeeded', requests: 1 }])
    }
    expect(others.flatMap((each) => each.log).filter(isAlarming)).toEqual([])
  })

  it('of one cart under 30 keys over three processes: one is charged, the rest are told of it', async () => {
    const cartId = `cart-${newKey()}`
    const shops = [scene.shop, ...others.map((each) => each.shop)]
    const keys = Array.from({ length: 30 }, newKey)
    const replies = await Promise.all(
      keys.map((key, i) => (shops[i % shops.length] as typeof scene.shop).checkout(key, cart({ cart_id: cartId }))),
    )
    const winners = replies.filter((reply) => reply.status === 201)
    expect(winners).toHaveLength(1)
    for (const reply of replies.filter((each) => each.status !== 201)) {
      expect(reply.status).toBe(409)
      expect(['cart_in_progress', 'cart_already_paid']).toContain(reply.json.code)
      expect(reply.json).toMatchObject({ order_id: winners[0]?.json.id, new_key_safe: false })
    }
    const charged = await Promise.all(keys.map((key) => scene.books.paymentsFor(key)))
    expect(charged.flat()).toHaveLength(1)
  })

  it('with different bodies: one executes, the others conflict, and which fields differ is named', async () => {
    const key = newKey()
    const bodies = [cart(), cart({ items: [{ sku: 'mug', quantity: 2 }] }), cart({ payment_method: 'pm_card_amex' })]
    const shops = [scene.shop, ...others.map((each) => each.shop)]
    const replies = await Promise.all(bodies.map((body, i) => (shops[i] as typeof scene.shop).checkout(key, body)))
    expect(replies.map((reply) => reply.status).sort()).toEqual([201, 409, 409])
    for (const reply of replies.filter((each) => each.status === 409)) {
      expect(reply.json).toMatchObject({ code: 'idempotency_key_conflict', new_key_safe: false })
      expect(reply.json.differing.length).toBeGreaterThan(0)
    }
    expect(await scene.books.paymentsFor(key)).toHaveLength(1)
  })
})

function expectOneAnswer(replies: readonly Reply[]): void {
  expect(new Set(replies.map((reply) => reply.status))).toEqual(new Set([201]))
  expect(new Set(replies.map((reply) => reply.text)).size).toBe(1)
  expect(replies.filter((reply) => !reply.replayed)).toHaveLength(1)
}

function ordersOf(key: string): Promise<unknown[]> {
  return scene.db.selectFrom('orders').select('order_id').where('attempt_key', '=', key).execute()
}

/** pino's levels: 40 warns, 50 is an error. */
function isAlarming(line: string): boolean {
  return JSON.parse(line).level >= 40
}
