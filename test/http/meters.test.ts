import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { keys } from '../support/client.ts'
import { type Scene, startScene } from '../support/scene.ts'

let scene: Scene
beforeAll(async () => {
  scene = await startScene()
})
afterAll(() => scene.stop())

describe('meters', () => {
  it('of the demo have their prices', async () => {
    const { json } = await scene.backend.withKey(keys.otherBackend).get('/v1/meters')
    expect(json).toEqual({
      object: 'list',
      data: [
        { object: 'meter', type: 'input_tokens', price: 300, per: 1_000_000, currency: 'EUR' },
        { object: 'meter', type: 'output_tokens', price: 1500, per: 1_000_000, currency: 'EUR' },
      ],
      has_more: false,
      next_cursor: null,
    })
  })

  it('are created and replaced, for their own tenant alone', async () => {
    const first = await scene.backend.put('/v1/meters/gpu_seconds', { price: 12, per: 60, currency: 'USD' })
    expect(first.status).toBe(200)
    expect(first.json).toEqual({ object: 'meter', type: 'gpu_seconds', price: 12, per: 60, currency: 'USD' })
    await scene.backend.put('/v1/meters/gpu_seconds', { price: 0, per: 1, currency: 'JPY' })
    expect(await typesOf(keys.backend)).toContainEqual({
      object: 'meter',
      type: 'gpu_seconds',
      price: 0,
      per: 1,
      currency: 'JPY',
    })
    expect(await typesOf(keys.otherBackend)).toHaveLength(2)
  })

  it('are listed by type, page by page', async () => {
    const other = scene.backend.withKey(keys.otherBackend)
    const first = await other.get('/v1/meters?limit=1')
    expect(first.json).toMatchObject({ data: [{ type: 'input_tokens' }], has_more: true })
    const second = await other.get(`/v1/meters?limit=1&cursor=${first.json.next_cursor}`)
    expect(second.json).toMatchObject({ data: [{ type: 'output_tokens' }], has_more: false, next_cursor: null })
  })

  it.each([
    ['a price below 0', { price: -1, per: 1, currency: 'EUR' }],
    ['a fraction of a unit', { price: 1, per: 0.5, currency: 'EUR' }],
    ['no units', { price: 1, per: 0, currency: 'EUR' }],
    ['no currency', { price: 1, per: 1 }],
    ['a price as text', { price: '1', per: 1, currency: 'EUR' }],
    ['an unknown field', { price: 1, per: 1, currency: 'EUR', name: 'x' }],
  ])('with %s are refused', async (_what, body) => {
    const reply = await scene.backend.put('/v1/meters/broken', body)
    expect([reply.status, reply.json.code]).toEqual([400, 'invalid_request'])
    expect(await typesOf(keys.backend)).not.toContainEqual(expect.objectContaining({ type: 'broken' }))
  })

  it('in a currency that cannot be charged are refused', async () => {
    const reply = await scene.backend.put('/v1/meters/broken', { price: 1, per: 1, currency: 'XXX' })
    expect([reply.status, reply.json.code]).toEqual([422, 'currency_mismatch'])
  })

  it('are for a backend only', async () => {
    for (const client of [scene.shop, scene.admin]) {
      expect((await client.get('/v1/meters')).status).toBe(403)
      expect((await client.put('/v1/meters/x', { price: 1, per: 1, currency: 'EUR' })).status).toBe(403)
    }
    expect((await scene.shop.withKey('sk_test_nobody').get('/v1/meters')).status).toBe(401)
  })
})

async function typesOf(key: string): Promise<unknown[]> {
  return (await scene.backend.withKey(key).get('/v1/meters')).json.data
}
