/** The demo shop when something goes wrong: on the way, at the bank, in the shop, on another device. */
import { randomUUID } from 'node:crypto'
import type { BrowserContext } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { noBrowser } from '../support/browser.ts'
import { cart } from '../support/client.ts'
import { until } from '../support/until.ts'
import {
  type Change,
  eachVisit,
  keptKey,
  onceForAMug,
  payButton,
  receipt,
  type ShopStage,
  sentCheckouts,
  storage,
  toReview,
} from './shop-stage.ts'

const charging = { method: 'POST', path: '/v1/payment_intents', times: 1 } as const

describe.skipIf(noBrowser)('in the shop, when something goes wrong', () => {
  let stage: ShopStage
  let context: BrowserContext
  let changes: () => Promise<Change>
  eachVisit((visit) => {
    ;({ stage, context, changes } = visit)
  })

  /** Every repeat was the same request. */
  const expectOneRequest = (sent: { key: string; body: string }[]) => {
    expect(sent.length).toBeGreaterThan(1)
    expect(new Set(sent.map(({ key, body }) => `${key} ${body}`)).size).toBe(1)
  }
  /** What a shopkeeper changes. */
  const shelve = (sku: string, change: { unit_price?: number; available?: number }) =>
    stage.scene.backend
      .get(`/v1/products/${sku}`)
      .then(({ json: { name, currency, unit_price, available } }) =>
        stage.scene.backend.put(`/v1/products/${sku}`, { name, currency, unit_price, available, ...change }),
      )

  it('an answer that is lost on its way is asked for again, and nothing happens twice', async () => {
    const page = await toReview(stage, context, 'Mug')
    const sent = sentCheckouts(page)
    let lost = 0
    await page.route('**/v1/checkouts', async (route) => {
      if (lost++ > 0) return route.continue()
      await route.fetch()
      await route.abort('connectionreset')
    })
    await payButton(page).click()
    await receipt(page)
    expectOneRequest(sent)
    await page.getByText('replayed', { exact: true }).waitFor()
    expect(await changes()).toEqual(onceForAMug)
  })

  it('a request that never arrives is sent again', async () => {
    const page = await toReview(stage, context, 'Mug')
    const sent = sentCheckouts(page)
    let lost = 0
    await page.route('**/v1/checkouts', (route) => (lost++ > 0 ? route.continue() : route.abort('connectionreset')))
    await payButton(page).click()
    await receipt(page)
    expectOneRequest(sent)
    expect(await changes()).toEqual(onceForAMug)
  })

  it("an answer of the bank that is lost is no second charge, nor is the visitor's own mishap on top", async () => {
    await stage.scene.books.fault({ ...charging, fault: 'drop_after' })
    const page = await toReview(stage, context, 'Mug')
    const sent = sentCheckouts(page)
    await page.getByLabel('Lose the next answer').check()
    await payButton(page).click()
    await receipt(page)
    expectOneRequest(sent)
    expect(await page.getByLabel('Lose the next answer').isChecked()).toBe(false)
    expect(await changes()).toEqual(onceForAMug)
  })

  it('a payment whose outcome nobody knows is looked up, and the page goes on by itself', async () => {
    const page = await toReview(stage, context, 'Mug')
    await stage.scene.books.webhooks({ delay_ms: 700 })
    await page.getByRole('button', { name: 'Lose the bank’s next answer' }).click()
    await page.getByText('The bank will charge, and its answer will be lost.').waitFor()
    const sent = sentCheckouts(page)
    await payButton(page).click()
    await page.getByText('We are checking with your bank. You will not be charged twice.').waitFor()
    await receipt(page)
    await stage.scene.books.webhooks({})
    expectOneRequest(sent)
    expect(await changes()).toEqual(onceForAMug)
  })

  it('a bank that cannot be reached at first is asked again', async () => {
    const page = await toReview(stage, context, 'Mug')
    await page.getByRole('button', { name: 'Bank not reachable once' }).click()
    await page.getByText('The next payment will not reach the bank at first.').waitFor()
    const sent = sentCheckouts(page)
    await payButton(page).click()
    await receipt(page)
    expectOneRequest(sent)
    expect(await changes()).toEqual(onceForAMug)
  })

  it('who is offline is told so, and the payment goes on when they are back', async () => {
    const page = await toReview(stage, context, 'Mug')
    await context.setOffline(true)
    await payButton(page).click()
    await page.getByText('You are offline.').waitFor()
    await context.setOffline(false)
    await receipt(page)
    expect(await changes()).toEqual(onceForAMug)
  })

  it('what was sold meanwhile is not paid, and the same key pays once it is there again', async () => {
    const page = await toReview(stage, context, 'Rare print')
    const key = await keptKey(page)
    await shelve('rare', { available: 0 })
    await payButton(page).click()
    await page.getByText('Rare print is sold out. Nothing was charged.').waitFor()
    await shelve('rare', { available: 5 })
    const sent = sentCheckouts(page)
    await payButton(page).click()
    await receipt(page)
    expect(sent.map((each) => each.key)).toEqual([key])
    expect(await changes()).toEqual({ orders: ['paid'], charged: [5000], stock: { rare: -1 } })
  })

  it('another price is shown before it is paid', async () => {
    const page = await toReview(stage, context, 'T-shirt')
    await shelve('tee', { unit_price: 2600 })
    await payButton(page).click()
    await page.getByText('The price has changed: the total is now €26.00. Nothing was charged.').waitFor()
    await page.getByRole('button', { name: 'Pay €26.00' }).click()
    await receipt(page)
    expect(await changes()).toEqual({ orders: ['paid'], charged: [2600], stock: { tee: -1 } })
  })

  it('a cart that another device pays or has paid for is not paid again', async () => {
    const page = await toReview(stage, context, 'Mug')
    const cartId = JSON.parse((await storage(page))['shop.cart'] ?? '').id as string
    const elsewhere = randomUUID()
    const body = cart({ cart_id: cartId, payment_method: 'pm_card_threeDSecure2Required' })
    const waiting = await stage.scene.shop.checkout(elsewhere, body)
    await payButton(page).click()
    await page.getByText('Another device is paying for this cart.').waitFor()
    await stage.scene.books.act(waiting.json.payment.reference, 'succeed')
    await until(async () => (await stage.scene.shop.get(`/v1/checkouts/${elsewhere}`)).json.state === 'settled', {
      what: 'the other device to have paid',
    })
    await page.reload()
    await payButton(page).click()
    await page.getByText('Already paid', { exact: true }).waitFor()
    await page.getByRole('link', { name: 'Start a new cart' }).click()
    await page.getByRole('heading', { name: 'Products' }).waitFor()
    expect(await changes()).toEqual(onceForAMug)
  })

  it('a payment that has gone through can no longer be given up, and the customer is told', async () => {
    const page = await toReview(stage, context, 'Mug')
    await stage.scene.books.fault({ ...charging, fault: 'latency', latency_ms: 700 })
    await payButton(page).click()
    await page.getByRole('button', { name: 'Give up this payment' }).click()
    await receipt(page)
    await page.getByText('The payment had gone through before it could be given up.').waitFor()
    expect(await changes()).toEqual(onceForAMug)
  })
})
