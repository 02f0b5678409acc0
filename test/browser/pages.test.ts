/** What holds for every page. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { accessibilityFaults, launchBrowser, noBrowser, widths } from '../support/browser.ts'
import { type Scene, startScene } from '../support/scene.ts'

let scene: Scene
let url: string
beforeAll(async () => {
  scene = await startScene()
  url = scene.service.url ?? ''
})
afterAll(() => scene?.stop())

describe.skipIf(noBrowser)('in a browser', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(() => browser?.close())

  for (const path of ['/shop', '/admin', '/docs']) {
    for (const [name, viewport] of Object.entries(widths)) {
      it(`${path} loads without a fault on a ${name}, is accessible and does not scroll sideways`, async () => {
        const page = await browser.newPage({ viewport })
        const faults: string[] = []
        page.on('console', (message) => message.type() === 'error' && faults.push(message.text()))
        page.on('pageerror', (error) => faults.push(error.message))
        page.on('request', (request) => {
          if (!request.url().startsWith(url)) faults.push(`asks elsewhere: ${request.url()}`)
        })
        await page.goto(`${url}${path}`, { waitUntil: 'networkidle' })
        expect(await page.locator('h1').count()).toBe(1)
        expect(await accessibilityFaults(page)).toEqual([])
        const root = 'document.documentElement'
        expect(await page.evaluate(`${root}.scrollWidth - ${root}.clientWidth`)).toBeLessThanOrEqual(0)
        expect(faults).toEqual([])
        await page.close()
      })
    }
  }
})

it('every page and file says what may be loaded, and is not sent again while unchanged', async () => {
  for (const path of ['/shop', '/admin', '/docs', '/assets/common/base.css']) {
    const first = await fetch(`${url}${path}`)
    expect(first.status).toBe(200)
    expect(first.headers.get('content-security-policy')).toContain("default-src 'none'; script-src 'self'")
    const again = await fetch(`${url}${path}`, { headers: { 'if-none-match': first.headers.get('etag') ?? '' } })
    expect(again.status).toBe(304)
    await again.body?.cancel()
    await first.body?.cancel()
  }
})
