/** The demo shop: whatever a customer does with buttons, tabs and cards, a cart is one order and one payment. */
import type { BrowserContext, Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { noBrowser } from '../support/browser.ts'
import {
  type Change,
  chooseCard,
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

describe.skipIf(noBrowser)('in the shop', () => {
  let stage: ShopStage
  let context: BrowserContext
  let changes: () => Promise<Change>
  eachVisit((visit) => {
    ;({ stage, context, changes } = visit)
  })

  /** The bank takes its time with the next charge. */
  const slowBank = () =>
    stage.scene.books.fault({
      method: 'POST',
      path: '/v1/payment_intents',
      fault: 'latency',
      latency_ms: 2500,
      times: 1,
    })
  /** Presses Pay; resolves when the request has been sent. */
  const send = async (page: Page) => {
    const sent = page.waitForRequest(
      (request) => request.method() === 'POST' && request.url().endsWith('/v1/checkouts'),
    )
    await payButton(page).click()
    await sent
  }

  it('a double click, and another, buys once', async () => {
    const page = await toReview(stage, context, 'Mug')
    await payButton(page).dblclick()
    await page.evaluate("document.querySelector('.pay')?.click()")
    await receipt(page)
    expect(await changes()).toEqual(onceForAMug)
  })

  it('a reload while the payment is under way goes on with the same payment', async () => {
    const page = await toReview(stage, context, 'Mug')
    const key = await keptKey(page)
    await slowBank()
    await send(page)
    const sent = sentCheckouts(page)
    await page.reload()
    await receipt(page)
    expect(new Set(sent.map((each) => each.key))).toEqual(new Set([key]))
    expect(await changes()).toEqual(onceForAMug)
  })

  it('going back while the payment is under way leaves the cart as it was sent, and tells there how it ended', async () => {
    const page = await toReview(stage, context, 'Mug')
    await slowBank()
    await send(page)
    await page.goBack()
    await page.getByText('A payment for this cart is under way').waitFor()
    expect(await page.getByRole('button', { name: 'One Mug more' }).count()).toBe(0)
    await page.getByText('Your payment went through').waitFor()
    await page.getByText('It is empty.').waitFor()
    await page.getByRole('link', { name: 'See the receipt' }).click()
    const order = await receipt(page)
    expect(await page.getByText('Your payment went through').count()).toBe(0)
    await page.goBack()
    await page.getByText('It is empty.').waitFor()
    await page.goForward()
    expect(await receipt(page)).toBe(order)
    expect(await changes()).toEqual(onceForAMug)
  })

  it('two tabs that pay for the same cart at once buy once, and show the same order', async () => {
    const first = await toReview(stage, context, 'Mug')
    const second = await context.newPage()
    await second.goto(`${stage.url}/shop#/review`)
    await payButton(second).waitFor()
    await chooseCard(second, 'Your bank asks you first')
    expect(await keptKey(second)).toBe(await keptKey(first))
    // Both must be able to draw.
    await Promise.all([first, second].map((page) => page.evaluate("document.querySelector('.pay').click()")))
    await approveWhereAsked(first, second)
    expect(await receipt(first)).toBe(await receipt(second))
    expect(await changes()).toEqual(onceForAMug)
  })

  it('a tab that was closed while the payment was under way is taken up by the next one', async () => {
    const page = await toReview(stage, context, 'Mug')
    await slowBank()
    await send(page)
    await page.close()
    const reopened = await context.newPage()
    await reopened.goto(`${stage.url}/shop#/review`)
    await receipt(reopened)
    expect(await changes()).toEqual(onceForAMug)
  })

  it('a tab that was left open shows that another one has paid', async () => {
    const first = await toReview(stage, context, 'Mug')
    const second = await context.newPage()
    await second.goto(`${stage.url}/shop#/review`)
    await payButton(second).click()
    expect(await receipt(first)).toBe(await receipt(second))
    expect(await changes()).toEqual(onceForAMug)
  })

  it('a customer whose bank asks approves and has bought once', async () => {
    const page = await toReview(stage, context, 'Mug')
    await chooseCard(page, 'Your bank asks you first')
    await payButton(page).click()
    await page.getByRole('button', { name: 'Approve' }).click()
    await receipt(page)
    expect(await changes()).toEqual(onceForAMug)
  })

  it('a customer who leaves their bank, reloads and comes back to it has bought once', async () => {
    const page = await toReview(stage, context, 'Mug')
    await chooseCard(page, 'Your bank asks you first')
    await payButton(page).click()
    await page.getByRole('dialog').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Continue to your bank' }).waitFor()
    await page.reload()
    await page.getByRole('dialog').waitFor()
    expect(await page.getByLabel('Visa ending in 3220').isChecked()).toBe(true)
    await page.getByRole('button', { name: 'Approve' }).click()
    await receipt(page)
    expect(await changes()).toEqual(onceForAMug)
  })

  it('a customer who refuses at their bank is not charged, and pays with another card under another key', async () => {
    const page = await toReview(stage, context, 'Mug')
    const firstKey = await keptKey(page)
    await chooseCard(page, 'Your bank asks you first')
    await payButton(page).click()
    await page.getByRole('button', { name: 'Refuse' }).click()
    await page.getByText('You refused at your bank, or it could not tell that it was you.').waitFor()
    expect(await changes()).toEqual({ orders: ['payment_failed'], charged: [], stock: {} })
    await page.getByText('Mastercard ending in 4444').click()
    const sent = sentCheckouts(page)
    await payButton(page).click()
    await receipt(page)
    expect(sent.map((each) => each.key)).not.toContain(firstKey)
    expect(await changes()).toEqual({ ...onceForAMug, orders: ['paid', 'payment_failed'] })
  })

  it('a declined card says why, also after a reload, and another one pays under a new key', async () => {
    const page = await toReview(stage, context, 'Mug', 'Poster')
    const sent = sentCheckouts(page)
    await chooseCard(page, 'Is declined: not enough money')
    await payButton(page).click()
    await page.getByText('There is not enough money on it.').waitFor()
    await page.reload()
    await page.getByText('There is not enough money on it.').waitFor()
    await payButton(page).click()
    await receipt(page)
    expect(sent.map(({ body }) => JSON.parse(body).payment_method)).toEqual([
      'pm_card_chargeDeclinedInsufficientFunds',
      'pm_card_visa',
    ])
    expect(sent[0]?.key).not.toBe(sent[1]?.key)
    expect(await changes()).toEqual({
      orders: ['paid', 'payment_failed'],
      charged: [2150],
      stock: { mug: -1, poster: -1 },
    })
  })

  it('a customer who gives up at their bank is not charged, has the cart back and can pay for it', async () => {
    const page = await toReview(stage, context, 'Mug')
    await chooseCard(page, 'Your bank asks you first')
    await payButton(page).click()
    await page.getByRole('dialog').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Give up this payment' }).click()
    await page.getByText('Payment ended').waitFor()
    expect(await changes()).toEqual({ orders: ['canceled'], charged: [], stock: {} })
    await chooseCard(page, 'Is declined')
    await page.getByText('Visa ending in 4242').click()
    await payButton(page).click()
    await receipt(page)
    expect(await changes()).toEqual({ ...onceForAMug, orders: ['canceled', 'paid'] })
  })

  it('everything can be done with the keyboard alone', async () => {
    const page = await context.newPage()
    await page.goto(`${stage.url}/shop`)
    const tabTo = async (name: string) => {
      for (let presses = 0; presses < 40; presses++) {
        const label = await page.evaluate<string>(
          "document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent",
        )
        if (label.trim().startsWith(name)) return
        await page.keyboard.press('Tab')
      }
      throw new Error(`the keyboard does not get to ${name}`)
    }
    await page.getByRole('button', { name: 'Add to cart Mug' }).waitFor()
    await tabTo('Add to cart Mug')
    await page.keyboard.press('Enter')
    await page.keyboard.press('Enter')
    await page.keyboard.press('Shift+Tab')
    await tabTo('Cart')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Your cart' }).waitFor()
    await tabTo('One Mug more')
    await page.keyboard.press('Space')
    await page.getByText('€37.50').first().waitFor()
    await page.keyboard.press('Space')
    await page.getByText('€50.00').first().waitFor()
    await tabTo('Review and pay')
    await page.keyboard.press('Enter')
    await payButton(page).waitFor()
    // Past the way back and the email on to the cards, and down to the one whose bank asks.
    for (let presses = 0; presses < 3; presses++) await page.keyboard.press('Tab')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowDown')
    await tabTo('Pay ')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    await tabTo('Approve')
    await page.keyboard.press('Enter')
    await receipt(page)
    expect(await changes()).toEqual({ orders: ['paid'], charged: [5000], stock: { mug: -4 } })
  })

  it('nothing of the customer stays in the browser once the payment is settled', async () => {
    const page = await toReview(stage, context, 'Mug')
    await chooseCard(page, 'Your bank asks you first')
    await payButton(page).click()
    await page.getByRole('dialog').waitFor()
    expect(JSON.stringify(await storage(page))).toContain('ada@example.com')
    await page.getByRole('button', { name: 'Approve' }).click()
    await receipt(page)
    const kept = JSON.stringify(await storage(page))
    expect(kept).toContain('ord_')
    expect(kept).not.toContain('ada@example.com')
    expect(kept).not.toContain('pm_card')
    await page.getByText("In the bank's own books: 1 payment, €12.50.").waitFor()
  })
})

/** Whichever tab was first decided whose card it is. */
async function approveWhereAsked(...pages: Page[]): Promise<void> {
  const [first] = pages
  if (first === undefined) return
  const isAsked = first
    .getByRole('dialog')
    .waitFor()
    .then(() => true)
  const isPaid = first
    .getByRole('heading', { name: 'Thank you' })
    .waitFor()
    .then(() => false)
  if (await Promise.any([isAsked, isPaid])) await first.getByRole('button', { name: 'Approve' }).click()
  await Promise.allSettled([isAsked, isPaid])
}
