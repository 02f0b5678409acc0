/** The reference of the API: everything in it is shown, and what is tried there really happens. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { accessibilityFaults, launchBrowser, noBrowser, widths } from '../support/browser.ts'
import { type Scene, startScene } from '../support/scene.ts'

interface Contract {
  paths: Record<string, Record<string, { operationId: string; summary: string; responses: Record<string, object> }>>
}

const contract = JSON.parse(readFileSync(join(import.meta.dirname, '../../openapi.json'), 'utf8')) as Contract
const operations = Object.entries(contract.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), ...operation })),
)

describe.skipIf(noBrowser)('/docs', () => {
  let scene: Scene
  let browser: Browser
  let page: Page
  let faults: string[]
  beforeAll(async () => {
    scene = await startScene()
    browser = await launchBrowser()
    await newPage()
  })
  afterAll(async () => {
    await browser?.close()
    await scene?.stop()
  })
  afterEach(() => expect(faults).toEqual([]))

  async function newPage(url = scene.service.url ?? ''): Promise<void> {
    await page?.close()
    page = await browser.newPage({ viewport: widths.desktop })
    faults = []
    page.on('pageerror', (error) => faults.push(error.message))
    page.on('console', (message) => {
      // Of a refusal that was asked for the browser tells, too.
      if (message.type() === 'error' && !message.text().includes('the server responded')) faults.push(message.text())
    })
    page.on('request', (request) => {
      if (!request.url().startsWith(url)) faults.push(`asks elsewhere: ${request.url()}`)
    })
    await page.goto(`${url}/docs`)
    await page.locator('.page').waitFor()
  }

  /** Follows a deep link to what is not shown yet. */
  async function show(hash: string, title: string): Promise<void> {
    await page.evaluate(`location.hash = ${JSON.stringify(hash)}`)
    await page.getByRole('heading', { level: 1, name: title, exact: true }).waitFor()
  }
  const send = (label = 'Send') => page.getByRole('button', { name: label, exact: true }).click()
  const idempotencyKey = () => page.getByLabel('Idempotency-Key').inputValue()

  it('shows every operation of the contract with all its answers, and lists it at the side', async () => {
    const shown = (await page.evaluate(walkThrough)) as { id: string }[]
    const expected = operations.map(({ operationId, method, path, summary, responses }) => ({
      id: operationId,
      summary,
      route: `${method}${path}`,
      answers: Object.keys(responses),
    }))
    expect(shown.length).toBeGreaterThan(50)
    expect(shown.toSorted(byId)).toEqual(expected.toSorted(byId))
  })

  it('a checkout sent twice with one key pays once, and says that the second answer is a replay', async () => {
    await show('createCheckout', 'Pay for a cart')
    const key = await idempotencyKey()
    await send()
    await page.getByText('201 Created').waitFor()
    await send('Send again with the same key')
    await page.getByText('Answers to this key').waitFor()
    expect(await page.locator('.headline .badge').allTextContents()).toEqual(['201 Created', 'Replayed'])
    expect(await page.locator('.comparison li').last().textContent()).toMatch(
      /^201, replayed, the same byte for byte, \d+ ms$/,
    )
    expect(await scene.books.paymentsFor(key)).toMatchObject([{ status: 'succeeded', requests: 1 }])

    await page.getByRole('button', { name: 'New key' }).click()
    const next = await idempotencyKey()
    expect(next).not.toBe(key)
    await send()
    await page.locator('.comparison').waitFor({ state: 'detached' })
    const [payment, ...more] = await scene.books.paymentsFor(next)
    expect(more).toEqual([])

    await show('readOrder', 'One order')
    expect(await page.getByLabel('id', { exact: true }).inputValue()).toBe(payment?.metadata.order)
    await send()
    await page.getByText('200 OK').waitFor()
  })

  it('shows a refusal as one, with what its code means', async () => {
    await show('createCheckout', 'Pay for a cart')
    await page.getByLabel('Begin with').selectOption('declined_card')
    await send()
    await page.getByText('402 Payment Required').waitFor()
    const reply = await page.locator('.reply').textContent()
    expect(reply).toContain('card_declined: The card was declined.')
    expect(reply).toContain('a new key is safe')

    await page.getByLabel('Body', { exact: true }).fill('{"items": [')
    expect(await page.locator('.fault').textContent()).toContain('This is not JSON')
    await page.getByRole('button', { name: 'New key' }).click()
    await send()
    await page.getByText('400 Bad Request').waitFor()
  })

  it('gives the same call as a curl command, without a key that is secret', async () => {
    await show('putProduct', 'Create or replace a product')
    await page.getByLabel('sku', { exact: true }).fill("a'b")
    const curl = page.getByRole('region', { name: 'curl' })
    expect(await curl.textContent()).toMatch(
      /^curl -i -X PUT 'http:\/\/127.0.0.1:\d+\/v1\/products\/a'\\''b' \\\n {2}-H 'Authorization: Bearer sk_test_demo'/,
    )
    await page.getByLabel('API key').fill('sk_live_secret')
    expect(await curl.textContent()).toContain('-H "Authorization: Bearer $CHECKOUT_API_KEY"')
    expect(await curl.textContent()).not.toContain('sk_live_secret')
  })

  it('shows what a merchant wrote as text, whatever it is', async () => {
    const name = '<img src=x onerror=alert(1)><b>bold</b>'
    await scene.backend.put('/v1/products/odd', { name, unit_price: 100, currency: 'EUR', available: 1 })
    await newPage()
    await show('readProduct', 'One product')
    await page.getByLabel('sku', { exact: true }).fill('odd')
    await send()
    await page.getByText('200 OK').waitFor()
    expect(await page.locator('.reply').textContent()).toContain(name)
    expect(await page.locator('.reply').locator('img, b').count()).toBe(0)
  })

  it('is found by words and error codes, by deep links, and by keyboard alone', async () => {
    await newPage()
    await page.keyboard.press('/')
    await page.keyboard.type('out_of_stock')
    expect(await page.locator('#found').textContent()).toBe('1 operation')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Pay for a cart' }).waitFor()
    expect(await page.evaluate('document.activeElement.tagName')).toBe('H1')
    await page.goBack()
    await page.getByRole('heading', { level: 1, name: 'Checkout API' }).waitFor()

    await page.goto(`${scene.service.url}/docs?fresh#error-out_of_stock`)
    await page.getByRole('heading', { level: 1, name: 'Error codes' }).waitFor()
    expect(await page.evaluate('document.activeElement.id')).toBe('error-out_of_stock')
    await show('nothing', 'Checkout API')
    await page.getByText('There is no operation "nothing"').waitFor()
  })

  it('of a service that is no demo offers no key, and warns before a call that changes something', async () => {
    const real = await scene.start({ SEED_DEMO: 'false' })
    await newPage(real.url)
    await show('createCheckout', 'Pay for a cart')
    expect(await page.getByLabel('API key').inputValue()).toBe('')
    expect(await page.getByText('pk_test_demo').count()).toBe(0)
    await page.getByText('This is a real call').waitFor()
  })

  it('is accessible on a phone and on a desktop, light and dark, and does not scroll sideways', async () => {
    await newPage()
    await show('errors', 'Error codes')
    expect(await accessibilityFaults(page)).toEqual([])
    await show('createCheckout', 'Pay for a cart')
    await send()
    await page.locator('.reply').waitFor()
    // Each width and each scheme once: neither changes what the other is judged by.
    for (const [width, colorScheme] of [
      ['phone', 'light'],
      ['desktop', 'dark'],
    ] as const) {
      await page.setViewportSize(widths[width])
      await page.emulateMedia({ colorScheme })
      await page.evaluate(openMuch)
      expect([width, await accessibilityFaults(page)]).toEqual([width, []])
      const root = 'document.documentElement'
      expect([width, await page.evaluate(`${root}.scrollWidth - ${root}.clientWidth`)]).toEqual([width, 0])
    }
  })
})

/** Run in the page: follows every link at the side and takes down what it leads to. */
const walkThrough = `(async () => {
  const pages = []
  for (const link of document.querySelectorAll('#operations .group a')) {
    const moved = new Promise((resolve) => addEventListener('hashchange', resolve, { once: true }))
    link.click()
    await moved
    pages.push({
      id: document.querySelector('#sidebar [aria-current]').getAttribute('href').slice(1),
      summary: document.querySelector('h1').textContent,
      route: document.querySelector('.route').textContent,
      answers: [...document.querySelectorAll('.answer > summary .badge')].map((badge) => badge.textContent),
    })
  }
  return pages
})()`

/** Run in the page: opens the form, the members of the body and one answer. What is inside is built when it opens. */
const openMuch = `(async () => {
  const some = '.try details, .reference > .members details, .answer:nth-of-type(2), .answer:nth-of-type(2) details'
  for (;;) {
    const closed = [...document.querySelectorAll(some)].filter((each) => !each.open)
    if (closed.length === 0) return
    const opened = closed.map((each) => new Promise((resolve) => each.addEventListener('toggle', resolve, { once: true })))
    for (const each of closed) each.open = true
    await Promise.all(opened)
  }
})()`

function byId(a: { id?: string | undefined }, b: { id?: string | undefined }): number {
  return (a.id ?? '') < (b.id ?? '') ? -1 : 1
}
