/** What caches and browsers may do with answers. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cart, keys } from '../support/client.ts'
import { sendRaw } from '../support/raw-http.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'

let scene: Scene
beforeAll(async () => {
  scene = await startScene()
})
afterAll(() => scene.stop())

describe('an answer of the API', () => {
  it('is kept by no cache and taken for nothing but what it says it is, also a refusal and a replay', async () => {
    const key = newKey()
    const replies = [
      await scene.shop.checkout(key),
      await scene.shop.checkout(key),
      await scene.shop.get(`/v1/checkouts/${key}`),
      await scene.shop.get('/v1/products/mug'),
      await scene.shop.get('/v1/orders'),
      await scene.shop.withKey('wrong').get('/v1/orders'),
      await scene.shop.checkout(newKey(), cart({ items: [] })),
      await scene.backend.get('/v1/nothing'),
      await scene.backend.get('/v1/checkouts/%zz'),
      await scene.shop.get('/healthz'),
    ]
    for (const { status, headers } of replies) {
      expect([status, headers.get('cache-control'), headers.get('x-content-type-options')]).toEqual([
        status,
        'no-store',
        'nosniff',
      ])
    }
    expect(replies.map(({ status }) => status)).toEqual([201, 201, 200, 200, 403, 401, 400, 404, 400, 200])
  })
})

describe('a page', () => {
  it('is the same whatever a request says of itself, so that nothing of one can be kept for another', async () => {
    const plain = await fetch(`${scene.shop.url}/admin`)
    const bytes = await plain.text()
    const poisoned = await fetch(`${scene.shop.url}/admin?utm=<script>`, {
      headers: {
        'x-forwarded-host': 'evil.example',
        'x-forwarded-proto': 'https',
        'x-original-url': '/shop',
        'x-http-method-override': 'POST',
        origin: 'https://evil.example',
        'accept-language': 'de"><script>',
      },
    })
    expect([await poisoned.text(), poisoned.headers.get('etag')]).toEqual([bytes, plain.headers.get('etag')])
    expect(poisoned.headers.get('cache-control')).toBe('no-cache')
    expect(poisoned.headers.get('access-control-allow-origin')).toBeNull()
  })

  it.each([
    '/assets/../config.ts',
    '/assets/..%2fconfig.ts',
    '/assets/%2e%2e/config.ts',
    '/assets/..\\config.ts',
    '/assets//etc/passwd',
    '/assets/common/../../config.ts',
    '/assets/tsconfig.json',
    '/assets/',
    '/assets',
    '//admin',
  ])('is one of those in the folder: %s is none', async (path) => {
    const reply = await sendRaw(scene.shop.url, {
      method: 'GET',
      path,
      headers: ['Authorization', `Bearer ${keys.admin}`],
    })
    expect([reply.status, reply.json.code]).toEqual([404, 'not_found'])
  })
})
