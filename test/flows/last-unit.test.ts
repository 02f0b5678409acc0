import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { recoverOrders } from '../../src/workers/recover-orders.ts'
import { expire, makeDue, orderOf } from '../support/aging.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import { cart, type Reply } from '../support/client.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { type ServiceProcess, startServiceProcess } from '../support/service-process.ts'
import { until } from '../support/until.ts'

let scene: Scene
let second: ServiceProcess
const initial: Record<string, number> = {}
beforeAll(async () => {
  scene = await startScene()
  second = await startServiceProcess(scene.env())
})
afterEach(() => expectBooksInOrder(scene, { stock: initial }))
afterAll(async () => {
  await second.stop()
  await scene.stop()
})

describe('the last unit', () => {
  it('goes to one of 30 buyers over two processes; the rest are refused before any charge', async () => {
    await sell('last', 1)
    const replies = await buyers(30, 'last', () => 'pm_card_visa')
    expect(replies.filter((reply) => reply.status === 201)).toHaveLength(1)
    for (const reply of replies.filter((each) => each.status !== 201)) {
      expect([reply.status, reply.json.code, reply.json.new_key_safe]).toEqual([409, 'out_of_stock', true])
    }
    expect(await stock('last')).toBe(0)
    expect(await scene.books.payments()).toHaveLength(1)
  })

  it('comes back when the winner is declined for good, and goes to the next buyer', async () => {
    await sell('again', 1)
    const declined = await buy('again', 'pm_card_chargeDeclined')
    expect(declined.status).toBe(402)
    const next = await buyers(10, 'again', () => 'pm_card_visa')
    expect(next.filter((reply) => reply.status === 201)).toHaveLength(1)
    expect(next.filter((reply) => reply.json.code === 'out_of_stock')).toHaveLength(9)
    expect(await stock('again')).toBe(0)
  })

  it('is sold once among 40 buyers of whom most are declined: each who reached the provider had it in hand', async () => {
    await sell('contested', 1)
    const replies = await buyers(40, 'contested', (i) => (i % 4 === 0 ? 'pm_card_visa' : 'pm_card_chargeDeclined'))
    for (const reply of replies) expect([201, 402, 409]).toContain(reply.status)
    const sold = replies.filter((reply) => reply.status === 201).length
    expect(sold).toBeLessThanOrEqual(1)
    expect(await stock('contested')).toBe(1 - sold)
    // Whoever still wants it can have it exactly then.
    expect((await buy('contested', 'pm_card_visa')).status).toBe(sold === 1 ? 409 : 201)
  })

  it('waits with a customer who has to act; given up twice and expired at once, it comes back once', async () => {
    await sell('waiting', 1)
    const key = newKey()
    const body = cart({ items: [{ sku: 'waiting', quantity: 1 }], payment_method: 'pm_card_threeDSecure2Required' })
    expect((await scene.shop.checkout(key, body)).status).toBe(202)
    expect((await buy('waiting', 'pm_card_visa')).json.code).toBe('out_of_stock')
    await expire(scene.db, key)
    await Promise.all([
      scene.shop.post(`/v1/checkouts/${key}/cancel`),
      second.shop.post(`/v1/checkouts/${key}/cancel`),
      recoverOrders(scene.service.deps),
      scene.shop.checkout(key, body),
    ])
    await until(async () => {
      await makeDue(scene.db, key)
      await recoverOrders(scene.service.deps)
      return (await orderOf(scene.db, key)).status === 'canceled'
    })
    expect(await stock('waiting')).toBe(1)
    expect((await buy('waiting', 'pm_card_visa')).status).toBe(201)
  })

  it('of several products is taken whole or not at all, also by carts that cross', async () => {
    await sell('left', 5)
    await sell('right', 5)
    const lines = [
      { sku: 'left', quantity: 1 },
      { sku: 'right', quantity: 1 },
    ]
    const replies = await Promise.all(
      Array.from({ length: 24 }, (_, i) =>
        (i % 2 === 0 ? scene.shop : second.shop).checkout(
          newKey(),
          cart({ items: i % 4 < 2 ? lines : lines.toReversed(), customer: { email: `cross${i % 5}@example.com` } }),
        ),
      ),
    )
    expect(replies.filter((reply) => reply.status === 201)).toHaveLength(5)
    expect(replies.filter((reply) => reply.json.code === 'out_of_stock')).toHaveLength(19)
    expect([await stock('left'), await stock('right')]).toEqual([0, 0])
  })

  it('of a cart that names one product on two lines counts both', async () => {
    await sell('pair', 3)
    const two = [
      { sku: 'pair', quantity: 2 },
      { sku: 'pair', quantity: 2 },
    ]
    const refused = await scene.shop.checkout(newKey(), cart({ items: two }))
    expect(refused.json).toMatchObject({ code: 'out_of_stock', items: [{ sku: 'pair', requested: 4, available: 3 }] })
    const paid = await scene.shop.checkout(newKey(), cart({ items: two.map((line) => ({ ...line, quantity: 1 })) }))
    expect(paid.json).toMatchObject({ status: 'paid', total: 2000, lines: [{ quantity: 1 }, { quantity: 1 }] })
    expect(await stock('pair')).toBe(1)
  })

  it('is not lost to those who ask for more than is left, in one group with those who do not', async () => {
    await sell('mixed', 10)
    const replies = await Promise.all(
      Array.from({ length: 30 }, (_, i) =>
        scene.shop.checkout(newKey(), cart({ items: [{ sku: 'mixed', quantity: i % 3 === 0 ? 11 : 1 }] })),
      ),
    )
    expect(replies.filter((reply) => reply.status === 201)).toHaveLength(10)
    expect(await stock('mixed')).toBe(0)
  })
})

async function sell(sku: string, available: number): Promise<void> {
  initial[sku] = available
  await scene.backend.put(`/v1/products/${sku}`, { name: sku, unit_price: 1000, currency: 'EUR', available })
}

function buy(sku: string, paymentMethod: string, shop = scene.shop): Promise<Reply> {
  return shop.checkout(newKey(), cart({ items: [{ sku, quantity: 1 }], payment_method: paymentMethod }))
}

function buyers(count: number, sku: string, methodOf: (i: number) => string): Promise<Reply[]> {
  return Promise.all(
    Array.from({ length: count }, (_, i) => buy(sku, methodOf(i), i % 2 === 0 ? scene.shop : second.shop)),
  )
}

async function stock(sku: string): Promise<number> {
  return (await scene.shop.get(`/v1/products/${sku}`)).json.available
}
