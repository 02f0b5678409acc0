import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Scene, startScene } from '../support/scene.ts'

let scene: Scene
beforeAll(async () => {
  scene = await startScene()
})
afterAll(() => scene.stop())

describe('OPTIONS', () => {
  it('is never refused in another form than problem details', async () => {
    for (const path of ['/v1/checkouts', '/v1/products', '/v1/orders', '/nowhere']) {
      const response = await fetch(`${scene.shop.url}${path}`, { method: 'OPTIONS' })
      const body = await response.text()
      if (response.status < 400) expect(body).toBe('')
      else
        expect([path, response.headers.get('content-type')]).toEqual([path, 'application/problem+json; charset=utf-8'])
    }
  })
})
