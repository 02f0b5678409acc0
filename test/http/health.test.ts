import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newKey, type Scene, startScene } from '../support/scene.ts'

let scene: Scene
beforeAll(async () => {
  scene = await startScene()
})
afterAll(() => scene.stop())

const nobody = () => scene.shop.withKey('none')

describe('those who run the service', () => {
  it('learn without a key that it lives and is ready', async () => {
    expect((await nobody().get('/healthz')).json).toEqual({ status: 'ok' })
    expect((await nobody().get('/readyz')).json).toEqual({ status: 'ready' })
  })

  it('may probe with HEAD, as anybody may read so', async () => {
    for (const [client, path] of [
      [nobody(), '/healthz'],
      [nobody(), '/readyz'],
      [nobody(), '/openapi.yaml'],
      [nobody(), '/metrics'],
      [scene.shop, '/v1/products/mug'],
      [scene.backend, '/v1/orders?limit=5'],
    ] as const) {
      const [head, get] = [await client.send('HEAD', path), await client.get(path)]
      expect([head.status, head.text], path).toEqual([200, ''])
      expect(head.headers.get('content-type')).toBe(get.headers.get('content-type'))
    }
    expect((await nobody().send('HEAD', '/v1/orders')).status).toBe(401)
    expect((await scene.shop.send('HEAD', `/v1/checkouts/${newKey()}`)).status).toBe(404)
    const post = await scene.shop.send('HEAD', '/v1/checkouts')
    expect([post.status, post.headers.get('allow')]).toEqual([405, 'POST'])
  })

  it('see what was answered, what the provider said and what waits', async () => {
    const key = newKey()
    await scene.shop.checkout(key)
    await scene.shop.checkout(key)
    await scene.books.fault({ method: 'POST', path: '/v1/payment_intents', fault: 'error_after', times: 1 })
    expect((await scene.shop.checkout(newKey())).status).toBe(202)
    const { text, headers } = await nobody().get('/metrics')
    expect(headers.get('content-type')).toMatch(/^text\/plain/)
    const value = (line: string) =>
      Number(
        text
          .split('\n')
          .find((each) => each.startsWith(`${line} `))
          ?.split(' ')
          .at(-1),
      )
    const requests = (rest: string) => value(`checkout_requests_total{method="POST",route="/v1/checkouts",${rest}}`)
    expect(requests('status="201",code="",replayed="false"')).toBe(1)
    expect(requests('status="201",code="",replayed="true"')).toBe(1)
    expect(value('checkout_settlements_total{to="paid",cause="answer",applied="true"}')).toBe(1)
    expect(
      value('checkout_provider_calls_total{operation="payment.create",outcome="succeeded",replayed="false"}'),
    ).toBe(1)
    expect(value('checkout_open_orders{status="needs_reconcile"}')).toBe(1)
    expect(value('checkout_open_order_age_seconds{status="needs_reconcile"}')).toBeGreaterThan(0)
    expect(text).not.toContain(key)
  })
})
