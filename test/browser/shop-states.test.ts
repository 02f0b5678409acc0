/** What the demo shop shows in each state, for everybody: both widths, light and dark. */
import { randomUUID } from 'node:crypto'
import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { accessibilityFaults, noBrowser, widths } from '../support/browser.ts'
import { cart } from '../support/client.ts'
import { chooseCard, payButton, receipt, type ShopStage, startShopStage, storage, toReview } from './shop-stage.ts'

describe.skipIf(noBrowser)('each state of the shop can be read and used by everybody:', () => {
  let stage: ShopStage
  let context: BrowserContext
  beforeAll(async () => {
    // Nobody else works on what is open: it stays as it is while it is looked at.
    stage = await startShopStage({ ROLES: 'api', RECONCILE_AFTER_MS: '60000' })
  })
  afterAll(() => stage?.stop())
  beforeEach(async () => {
    context = await stage.visitor()
    return () => context.close()
  })

  it('products', async () => {
    const page = await context.newPage()
    await page.goto(`${stage.url}/shop`)
    await page.getByRole('button', { name: 'Add to cart Mug' }).click()
    await expectForEverybody(page)
  })

  it('the cart', async () => {
    const page = await toReview(stage, context, 'Mug', 'Poster')
    await page.getByRole('link', { name: 'Back to the cart' }).click()
    await page.getByRole('heading', { name: 'Your cart' }).waitFor()
    await expectForEverybody(page)
  })

  it('review, and after a decline', async () => {
    const page = await toReview(stage, context, 'Mug', 'Poster')
    await expectForEverybody(page)
    await chooseCard(page, 'Is declined')
    await payButton(page).click()
    await page.getByText('Declined', { exact: true }).waitFor()
    await expectForEverybody(page)
  })

  it("the bank's question, and what is left when it is not answered", async () => {
    const page = await toReview(stage, context, 'Mug')
    await chooseCard(page, 'Your bank asks you first')
    await payButton(page).click()
    await page.getByRole('dialog').waitFor()
    await expectForEverybody(page)
    await page.getByRole('button', { name: 'Answer later' }).click()
    await page.getByRole('button', { name: 'Continue to your bank' }).waitFor()
    await expectForEverybody(page)
  })

  it('a payment that is being checked', async () => {
    const page = await toReview(stage, context, 'Mug')
    await stage.scene.books.fault({ method: 'POST', path: '/v1/payment_intents', times: 1, fault: 'error_after' })
    await payButton(page).click()
    await page.getByText('We are checking with your bank.').waitFor()
    await expectForEverybody(page)
  })

  it('a cart that was paid elsewhere', async () => {
    const page = await toReview(stage, context, 'Mug')
    const { id } = JSON.parse((await storage(page))['shop.cart'] ?? '{}') as { id: string }
    await stage.scene.shop.checkout(randomUUID(), cart({ cart_id: id }))
    await payButton(page).click()
    await page.getByText('Already paid', { exact: true }).waitFor()
    await expectForEverybody(page)
  })

  it('the receipt', async () => {
    const page = await toReview(stage, context, 'Mug')
    await payButton(page).click()
    await receipt(page)
    await page.getByText("In the bank's own books: 1 payment").waitFor()
    await expectForEverybody(page)
  })
})

/** axe finds nothing and nothing is cut off, with everything open that can be opened. */
async function expectForEverybody(page: Page): Promise<void> {
  await page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
  const faults: string[] = []
  for (const [name, viewport] of Object.entries(widths)) {
    await page.setViewportSize(viewport)
    const root = 'document.documentElement'
    const tooWide = await page.evaluate<number>(`${root}.scrollWidth - ${root}.clientWidth`)
    if (tooWide > 0) faults.push(`${name}: scrolls sideways by ${tooWide} px`)
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      faults.push(...(await accessibilityFaults(page)).map((fault) => `${name}, ${colorScheme}: ${fault}`))
    }
  }
  expect(faults).toEqual([])
}
