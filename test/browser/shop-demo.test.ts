/** What the demo shop may do beside the API, and where it is not there. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Scene, startScene } from '../support/scene.ts'

let scene: Scene
beforeAll(async () => {
  scene = await startScene()
})
afterAll(() => scene?.stop())

const calls = [
  ['POST', '/shop/bank', { payment: 'pi_1', outcome: 'approve' }],
  ['POST', '/shop/mishap', { mishap: 'answer_lost' }],
  ['POST', '/shop/shelf', { sku: 'mug', unit_price: 1 }],
  ['GET', '/shop/payments/a-key', undefined],
] as const

async function send(url: string | undefined, method: string, path: string, body?: object) {
  const response = await fetch(`${url}${path}`, {
    method,
    ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, json: text === '' ? undefined : JSON.parse(text) }
}

describe("the demo's own calls", () => {
  it('are not there while a real provider is charged', async () => {
    const { url } = scene.service
    const { json } = await send(url, 'GET', '/shop/config.json')
    expect(json).toEqual({ publishable_key: 'pk_test_demo', stand_in: false })
    for (const [method, path, body] of calls)
      expect([path, (await send(url, method, path, body)).status]).toEqual([path, 404])
  })

  it('are not there without the demo, nor is the shop', async () => {
    const { url } = await scene.start({ STRIPE_SECRET_KEY: '', SEED_DEMO: 'false' })
    for (const [method, path, body] of [...calls, ['GET', '/shop'], ['GET', '/shop/config.json']] as const) {
      expect([path, (await send(url, method, path, body)).status]).toEqual([path, 404])
    }
  })

  it('play the bank, fill shelves and read the books of the simulator', async () => {
    const { url } = await scene.start({ STRIPE_SECRET_KEY: '' })
    expect((await send(url, 'POST', '/shop/bank', { payment: 'pi_unknown', outcome: 'approve' })).status).toBe(409)
    expect((await send(url, 'POST', '/shop/bank', { payment: '../faults', outcome: 'approve' })).status).toBe(400)
    expect((await send(url, 'POST', '/shop/mishap', { mishap: 'meteor' })).status).toBe(400)
    expect((await send(url, 'POST', '/shop/mishap', { mishap: null })).status).toBe(204)
    expect((await send(url, 'POST', '/shop/shelf', { sku: 'none', available: 1 })).status).toBe(404)
    expect(await send(url, 'POST', '/shop/shelf', { sku: 'rare', available: 0 })).toEqual({
      status: 200,
      json: { unit_price: 5000, available: 0 },
    })
    await send(url, 'POST', '/shop/shelf', { sku: 'rare', unit_price: 5100 })
    expect((await send(url, 'POST', '/shop/shelf', { sku: 'rare', refill: true })).json).toEqual({
      unit_price: 5000,
      available: 5,
    })
    await scene.shop.at(url).checkout('a-key')
    expect((await send(url, 'GET', '/shop/payments/a-key')).json.data).toMatchObject([
      { status: 'succeeded', amount_received: 1250, currency: 'eur' },
    ])
    expect((await send(url, 'GET', '/shop/payments/another')).json).toEqual({ data: [] })
  })
})
