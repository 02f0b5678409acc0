import { afterAll, beforeAll, expect, it } from 'vitest'
import { expectBooksInOrder } from '../support/audit.ts'
import { cart } from '../support/client.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'

let scene: Scene
beforeAll(async () => {
  scene = await startScene()
})
afterAll(() => scene.stop())

it("another's request with the key, under way at the same time, does not make the owner's repeat a conflict", async () => {
  const other = cart({ items: [{ sku: 'tee', quantity: 1 }] })
  for (let round = 0; round < 10; round++) {
    const key = newKey()
    const first = await scene.shop.checkout(key)
    const [wrong, right] = await Promise.all([scene.shop.checkout(key, other), scene.shop.checkout(key)])
    expect([wrong.status, wrong.json.code, wrong.json.differing]).toEqual([409, 'idempotency_key_conflict', ['items']])
    expect([right.status, right.text, right.replayed]).toEqual([201, first.text, true])
  }
  await expectBooksInOrder(scene)
})

it('of two requests that use a key for the first time together, one wins and the other is the conflict', async () => {
  const other = cart({ items: [{ sku: 'tee', quantity: 1 }] })
  for (let round = 0; round < 10; round++) {
    const key = newKey()
    const replies = await Promise.all([scene.shop.checkout(key, other), scene.shop.checkout(key)])
    expect(replies.map(({ status }) => status).sort()).toEqual([201, 409])
    expect(await scene.books.paymentsFor(key)).toHaveLength(1)
  }
  await expectBooksInOrder(scene)
})
