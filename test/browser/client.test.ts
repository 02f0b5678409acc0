/** The browser client in a storefront of another origin: one key per cart, and every repeat the same request. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { BrowserContext, Page, Request } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { noBrowser } from '../support/browser.ts'
import { type Change, eachVisit, onceForAMug, type ShopStage, sentCheckouts, storage } from './shop-stage.ts'

describe.skipIf(noBrowser)('the browser client', () => {
  let stage: ShopStage
  let storefront: Server
  let context: BrowserContext
  let changes: () => Promise<Change>
  let cart = 0
  eachVisit((visit) => {
    cart++
    ;({ stage, context, changes } = visit)
  })
  beforeAll(async () => {
    storefront = createServer((_request, response) => {
      response.setHeader('content-type', 'text/html').end('<!doctype html><title>A shop</title>')
    })
    await new Promise<void>((resolve) => storefront.listen(0, '127.0.0.1', resolve))
  })
  afterAll(() => {
    storefront?.closeAllConnections()
    storefront?.close()
  })

  const newTab = async () => {
    const page = await context.newPage()
    await page.goto(`http://127.0.0.1:${(storefront.address() as AddressInfo).port}/`)
    return page
  }
  /** Runs the code in the page, with the test's `attempt` and bodies to pay with; resolves with what it returns. */
  const run = <Result = unknown>(page: Page, code: string, options = ''): Promise<Result> =>
    page.evaluate<Result>(`(async () => {
      const { checkoutClient } = await import('${stage.url}/assets/client/index.ts')
      const checkout = checkoutClient({ baseUrl: '${stage.url}', publishableKey: 'pk_test_demo', ${options} })
      const attempt = checkout.attempt('cart-${cart}')
      const body = (change) => ({
        items: [{ sku: 'mug', quantity: 1 }],
        customer: { email: 'ada@example.com' },
        payment_method: 'pm_card_visa',
        ...change,
      })
      ${code}
    })()`)
  /** The next checkout of the page never arrives; resolves with it, to arrive later. */
  const loseNext = (page: Page): Promise<Request> =>
    new Promise((resolve) =>
      page.route(
        '**/v1/checkouts',
        async (route) => {
          resolve(route.request())
          await route.abort('connectionreset')
        },
        { times: 1 },
      ),
    )
  const arriveLate = async (request: Request) => {
    const { authorization = '', 'idempotency-key': key = '' } = request.headers()
    return (
      await stage.scene.shop
        .withKey(authorization.slice('Bearer '.length))
        .checkout(key, JSON.parse(request.postData() ?? ''))
    ).status
  }
  const shelve = (available: number) =>
    stage.scene.backend.put('/v1/products/rare', { name: 'Rare print', unit_price: 5000, currency: 'EUR', available })
  const rare = (quantity: number) => `body({ items: [{ sku: 'rare', quantity: ${quantity} }] })`

  it('buys from a page of another origin, and reads the catalog there', async () => {
    const page = await newTab()
    expect(await run(page, 'return (await checkout.products()).map(({ sku }) => sku)')).toContain('mug')
    expect(await run(page, 'await attempt.begin(); return attempt.pay(body())')).toMatchObject({
      kind: 'paid',
      order: { status: 'paid', total: 1250, lines: [{ sku: 'mug' }] },
    })
    expect(await changes()).toEqual(onceForAMug)
  })

  for (const [how, before] of [
    ['', ''],
    [', also where the browser has no locks', "Object.defineProperty(navigator, 'locks', { value: undefined });"],
  ]) {
    it(`makes one key for a cart, from whichever tabs at once${how}`, async () => {
      const tabs = [await newTab(), await newTab(), await newTab()]
      const keys = await Promise.all(tabs.map((page) => run(page, `${before} return (await attempt.begin()).key`)))
      expect(new Set(keys).size).toBe(1)
      const outcomes = await Promise.all(tabs.map((page) => run(page, 'return attempt.pay(body())')))
      expect(new Set(outcomes.map((outcome) => JSON.stringify(outcome))).size).toBe(1)
      expect(await changes()).toEqual(onceForAMug)
    })
  }

  it('sends what was sent first, whatever it is told while that is unsettled', async () => {
    const page = await newTab()
    const sent = sentCheckouts(page)
    const asked = await run(page, "return attempt.pay(body({ payment_method: 'pm_card_threeDSecure2Required' }))")
    expect(asked).toMatchObject({ kind: 'action_required', clientSecret: expect.stringMatching(/^pi_/) })
    const other = await newTab()
    const sentByOther = sentCheckouts(other)
    expect(await run(other, 'return attempt.pay(body({ items: [{ sku: "tee", quantity: 3 }] }))')).toMatchObject({
      kind: 'action_required',
      order: { id: (asked as { order: { id: string } }).order.id, total: 1250 },
    })
    expect(sentByOther[0]).toEqual(sent[0])
    expect(await run(other, 'return attempt.cancel()')).toMatchObject({ kind: 'canceled' })
    expect(await changes()).toEqual({ orders: ['canceled'], charged: [], stock: {} })
  })

  it('makes no new key after a refusal: a request that was lost may still arrive', async () => {
    await shelve(0)
    const page = await newTab()
    const sent = sentCheckouts(page)
    const lost = loseNext(page)
    expect(await run(page, `return attempt.pay(${rare(2)})`)).toMatchObject({
      kind: 'refused',
      problem: { code: 'out_of_stock' },
    })
    await shelve(5)
    expect(await run(page, `return attempt.pay(${rare(1)})`)).toMatchObject({ kind: 'paid', order: { total: 5000 } })
    expect(await arriveLate(await lost)).toBe(409)
    expect(new Set(sent.map(({ key }) => key)).size).toBe(1)
    expect(await changes()).toMatchObject({ orders: ['paid'], charged: [5000] })
  })

  it('finds what a request that arrived late has bought, instead of buying again', async () => {
    await shelve(0)
    const page = await newTab()
    const lost = loseNext(page)
    expect(await run(page, `return attempt.pay(${rare(2)})`)).toMatchObject({ kind: 'refused' })
    await shelve(5)
    expect(await arriveLate(await lost)).toBe(201)
    expect(await run(page, `return attempt.pay(${rare(1)})`)).toMatchObject({ kind: 'paid', order: { total: 10000 } })
    expect(await changes()).toMatchObject({ orders: ['paid'], charged: [10000] })
  })

  it('makes a new key after a decline, and keeps no request of it', async () => {
    const page = await newTab()
    const sent = sentCheckouts(page)
    expect(await run(page, "return attempt.pay(body({ payment_method: 'pm_card_chargeDeclined' }))")).toMatchObject({
      kind: 'declined',
      declineCode: 'generic_decline',
    })
    expect(JSON.stringify(await storage(page))).not.toContain('ada@example.com')
    expect(await run(page, 'return attempt.pay(body())')).toMatchObject({ kind: 'paid' })
    expect(new Set(sent.map(({ key }) => key)).size).toBe(2)
    expect(await changes()).toEqual({ ...onceForAMug, orders: ['paid', 'payment_failed'] })
  })

  it('sends what never arrived again only when the customer says so, once it is no longer fresh', async () => {
    const page = await newTab()
    const neverArrives = loseNext(page)
    void run(page, 'return attempt.pay(body())').catch(() => {})
    await neverArrives
    const sent = sentCheckouts(page)
    await page.reload()
    const ageMs = 3_600_000
    await run(
      page,
      `const name = 'checkout.attempt.cart-${cart}'
      const record = JSON.parse(localStorage.getItem(name))
      record.sent.at -= ${ageMs}
      localStorage.setItem(name, JSON.stringify(record))`,
    )
    sent.length = 0
    expect(await run(page, 'return attempt.resume()')).toEqual({ kind: 'not_started' })
    expect(sent).toEqual([])
    expect(await run(page, 'return attempt.resume()')).toBeNull()
    expect(await run(page, 'return attempt.pay(body())')).toMatchObject({ kind: 'paid' })
    expect(await changes()).toEqual(onceForAMug)
  })

  it('keeps the key where a payment is given up that has not arrived', async () => {
    const page = await newTab()
    await page.route('**/v1/checkouts', (route) => route.abort('connectionreset'))
    const lost = page.waitForRequest('**/v1/checkouts')
    void run(page, 'return attempt.pay(body())').catch(() => {})
    const key = (await lost).headers()['idempotency-key']
    const other = await newTab()
    expect(await run(other, 'return attempt.cancel()')).toEqual({ kind: 'not_started' })
    expect(await run(other, 'return attempt.record.key')).toBe(key)
    expect(await changes()).toEqual({ orders: [], charged: [], stock: {} })
  })

  it('sends nothing where the browser keeps nothing', async () => {
    const page = await newTab()
    const sent = sentCheckouts(page)
    const full = 'storage: { length: 0, key: () => null, getItem: () => null, removeItem() {}, setItem() {} }'
    await expect(run(page, 'return attempt.pay(body())', full)).rejects.toThrow('has kept nothing')
    expect(sent).toEqual([])
  })

  it('forgets after a day, what it may have to repeat included', async () => {
    const page = await newTab()
    await run(page, "return attempt.pay(body({ payment_method: 'pm_card_threeDSecure2Required' }))")
    await run(
      page,
      `const name = 'checkout.attempt.cart-${cart}'
      const record = JSON.parse(localStorage.getItem(name))
      localStorage.setItem(name, JSON.stringify({ ...record, madeAt: record.madeAt - 25 * 3_600_000 }))`,
    )
    expect(await run(page, 'return attempt.record ?? null')).toBeNull()
    const [order] = await stage.scene.db
      .selectFrom('orders')
      .select('attempt_key')
      .where('status', '=', 'requires_action')
      .execute()
    await stage.scene.shop.post(`/v1/checkouts/${order?.attempt_key}/cancel`)
  })

  it('tells of an API key that is not valid, and keeps the attempt', async () => {
    const page = await newTab()
    const outcome = await run(page, 'return attempt.pay(body())', "publishableKey: 'pk_revoked',")
    expect(outcome).toMatchObject({ kind: 'failed', problem: { code: 'unauthorized' } })
    expect(await run(page, 'return attempt.pay(body())')).toMatchObject({ kind: 'paid' })
    expect(await changes()).toEqual(onceForAMug)
  })

  it('waits as long as it is asked to, and otherwise longer each time, up to a limit, at random', async () => {
    const page = await newTab()
    const { asked, grows, read } = await page.evaluate<{ asked: number[]; grows: number[]; read: (number | null)[] }>(
      `import('${stage.url}/assets/client/backoff.ts').then(({ backoffMs, parseRetryAfterMs }) => ({
        asked: Array.from({ length: 100 }, (_none, tries) => backoffMs(tries, 3000)),
        grows: [0, 3, 50].map((tries) => Math.max(...Array.from({ length: 200 }, () => backoffMs(tries, null)))),
        read: ['7', null, 'soon', 'Mon, 30 Nov 2020 08:00:00 GMT'].map(parseRetryAfterMs),
      }))`,
    )
    expect(Math.min(...asked)).toBeGreaterThanOrEqual(3000)
    expect(Math.max(...asked)).toBeLessThan(4001)
    const limits = [400, 3200, 5000]
    grows.forEach((most, index) => {
      expect(most).toBeLessThanOrEqual(limits[index] ?? 0)
      expect(most).toBeGreaterThan((limits[index] ?? 0) / 2)
    })
    expect(read).toEqual([7000, null, null, 0])
  })
})
