import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cart } from '../support/client.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'

let scene: Scene
beforeAll(async () => {
  scene = await startScene()
})
afterAll(() => scene.stop())

async function paid(): Promise<string> {
  const reply = await scene.shop.checkout(newKey(), cart({ items: [{ sku: 'mug', quantity: 2 }] }))
  expect(reply.status).toBe(201)
  return reply.json.id
}

describe('a refund', () => {
  it('gives back what is left where no amount is given, once however often it is repeated', async () => {
    const order = await paid()
    const key = newKey()
    const post = () => scene.backend.post(`/v1/orders/${order}/refunds`, {}, { 'idempotency-key': key })
    const first = await post()
    expect([first.status, first.text]).toEqual([201, expect.stringContaining('"status":"succeeded"')])
    const second = await post()
    expect(second.text).toBe(first.text)
    expect([first.replayed, second.replayed]).toEqual([false, true])
  })
})
