/** The cart of the demo shop beside its payment: what is added meanwhile, what another tab does, what a browser keeps. */
import type { BrowserContext, Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { noBrowser } from '../support/browser.ts'
import {
  type Change,
  chooseCard,
  eachVisit,
  onceForAMug,
  payButton,
  receipt,
  type ShopStage,
  storage,
  toReview,
} from './shop-stage.ts'

describe.skipIf(noBrowser)('in the shop, the cart', () => {
  let stage: ShopStage
  let context: BrowserContext
  let changes: () => Promise<Change>
  eachVisit((visit) => {
    ;({ stage, context, changes } = visit)
  })

  /** Pays with a card whose bank asks, and leaves the question open. */
  const leaveAtBank = async (): Promise<Page> => {
    const page = await toReview(stage, context, 'Mug')
    await chooseCard(page, 'Your bank asks you first')
    await payButton(page).click()
    await page.getByRole('dialog').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Continue to your bank' }).waitFor()
    return page
  }
  const open = async (address: string): Promise<Page> => {
    const page = await context.newPage()
    await page.goto(`${stage.url}/shop${address}`)
    return page
  }

  it('takes nothing more while it is being paid, and keeps what another tab has added for the next payment', async () => {
    const page = await leaveAtBank()
    await page.getByRole('link', { name: 'Products' }).click()
    await page.getByRole('button', { name: 'Add to cart Poster' }).click()
    await page.getByText('Poster was not added: your cart is being paid.').waitFor()
    // As where it was added the moment before the payment was sent.
    await page.evaluate(`{
      const cart = JSON.parse(localStorage.getItem('shop.cart'))
      localStorage.setItem('shop.cart', JSON.stringify({ ...cart, quantities: { ...cart.quantities, tee: 2 } }))
    }`)
    await page.getByRole('link', { name: 'Cart' }).click()
    await page.getByText('A payment for this cart is under way').waitFor()
    expect(await page.locator('#main .total').textContent()).toBe('Total€12.50')
    await page.getByText('Not part of this payment, and kept for the next: 2 × T-shirt.').waitFor()
    await page.getByRole('link', { name: 'Go on with the payment' }).click()
    await page.getByRole('button', { name: 'Approve' }).click()
    await receipt(page)
    await page.getByRole('link', { name: 'Cart' }).click()
    await page.getByText('€50.00').first().waitFor()
    expect(await page.locator('.cart-lines li').count()).toBe(1)
    expect(await changes()).toEqual(onceForAMug)
  })

  it('comes back after a double click on giving up, and the cancel goes on when the view is left', async () => {
    const page = await leaveAtBank()
    let held = () => {}
    const isHeld = new Promise<void>((resolve) => {
      held = resolve
    })
    let letGo = () => {}
    const isLetGo = new Promise<void>((resolve) => {
      letGo = resolve
    })
    await page.route('**/cancel', async (route) => {
      held()
      await isLetGo
      await route.continue()
    })
    await page.getByRole('button', { name: 'Give up this payment' }).dblclick()
    await isHeld
    expect(page.url()).toContain('#/review')
    await page.getByRole('link', { name: 'Back to the cart' }).click()
    await page.getByText('A payment for this cart is under way').waitFor()
    letGo()
    await page.getByText('Payment ended').waitFor()
    await page.getByRole('button', { name: 'One Mug more' }).waitFor()
    expect(await changes()).toEqual({ orders: ['canceled'], charged: [], stock: {} })
  })

  it('shows in every tab how its payment ended, and the other one what was given up', async () => {
    const first = await leaveAtBank()
    const products = await open('')
    await products.getByText('The payment waits for your answer').waitFor()
    const second = await open('#/review')
    await second.getByRole('dialog').waitFor()
    await second.keyboard.press('Escape')
    await second.getByRole('button', { name: 'Give up this payment' }).click()
    for (const page of [first, second, products]) await page.getByText('Payment ended').waitFor()
    await first.getByText('Visa ending in 4242').click()
    await payButton(first).click()
    await receipt(first)
    await products.getByText('Your payment went through').waitFor()
    await products.getByRole('link', { name: 'See the receipt' }).click()
    expect(await receipt(products)).toBe(await receipt(first))
    expect(await changes()).toEqual({ ...onceForAMug, orders: ['canceled', 'paid'] })
  })

  it('is on the receipt as it was reviewed, also where only a look-up told that it was paid', async () => {
    const page = await toReview(stage, context, 'Mug')
    // The answer is lost, and the tab with it.
    const isSettled = new Promise<void>((resolve) => {
      void page.route('**/v1/checkouts', async (route) => {
        await route.fetch()
        resolve()
      })
    })
    await payButton(page).click()
    await isSettled
    await page.close()
    const next = await open('')
    await next.getByRole('link', { name: 'See the receipt' }).click()
    await receipt(next)
    expect(await next.locator('.receipt .summary-lines').textContent()).toBe('1 × Mug€12.50')
    expect(await changes()).toEqual(onceForAMug)
  })

  it('has no sum and cannot be paid with two currencies', async () => {
    await stage.scene.backend.put('/v1/products/yen', { name: 'Fan', unit_price: 900, currency: 'JPY', available: 9 })
    const page = await open('')
    for (const name of ['Mug', 'Fan']) await page.getByRole('button', { name: `Add to cart ${name}` }).click()
    for (const address of ['#/cart', '#/review']) {
      await page.goto(`${stage.url}/shop${address}`)
      await page.getByText('These cannot be paid together').waitFor()
      expect(await page.locator('.total, .pay').count()).toBe(0)
      expect(await page.getByRole('link', { name: 'Review and pay' }).count()).toBe(0)
    }
    await page.getByRole('button', { name: 'Take Fan out' }).click()
    await page.getByRole('link', { name: 'Review and pay' }).waitFor()
  })

  it('begins afresh where the browser keeps nonsense, and drops lines that make no sense', async () => {
    const page = await open('')
    const attempt = 'checkout.attempt.cart-1'
    for (const [kept, count] of [
      ['{}', ''],
      ['[]', ''],
      ['"x"', ''],
      ['null', ''],
      ['{"id":"cart-1","quantities":{"mug":2,"tee":-1,"poster":1.5,"rare":"3","gone":4,"yen":null}}', '2'],
    ] as const) {
      await page.evaluate(
        `localStorage.setItem('shop.cart', '${kept}'); localStorage.setItem('${attempt}', '{"sent":1}')`,
      )
      await page.reload()
      await page.getByRole('button', { name: 'Add to cart Mug' }).waitFor()
      expect([kept, await page.locator('#cart-count').textContent()]).toEqual([kept, count === '' ? '0' : count])
    }
    await page.goto(`${stage.url}/shop#/review`)
    await payButton(page).click()
    await receipt(page)
    expect(await changes()).toEqual({ orders: ['paid'], charged: [2500], stock: { mug: -2 } })
  })

  it('lasts as long as the page where the browser keeps nothing, and the customer is told', async () => {
    await context.addInitScript(`for (const name of ['localStorage', 'sessionStorage']) {
      Object.defineProperty(window, name, { get() { throw new DOMException('denied', 'SecurityError') } })
    }`)
    const page = await toReview(stage, context, 'Mug')
    await page.getByRole('link', { name: 'Products' }).click()
    await page.getByText('This browser keeps nothing for this page').waitFor()
    await page.getByRole('link', { name: 'Cart' }).click()
    await page.getByRole('link', { name: 'Review and pay' }).click()
    await payButton(page).click()
    await receipt(page)
    expect(await changes()).toEqual(onceForAMug)
  })

  it('is not paid for an email address that is none, and the field says so', async () => {
    const page = await toReview(stage, context, 'Mug')
    for (const wrong of ['a@b', 'nobody']) {
      await page.getByLabel('Email').fill(wrong)
      await payButton(page).click()
      await page.getByText('Please enter a whole email address').waitFor()
      await expect.poll(() => page.evaluate('document.activeElement.id')).toBe('email')
      expect(await page.getByLabel('Email').getAttribute('aria-invalid')).toBe('true')
    }
    await page.getByLabel('Email').fill('ada@example.com')
    expect(await page.getByLabel('Email').getAttribute('aria-invalid')).toBe('false')
    await payButton(page).click()
    await receipt(page)
    expect(JSON.stringify(await storage(page))).not.toContain('ada@example.com')
    expect(await changes()).toEqual(onceForAMug)
  })
})
