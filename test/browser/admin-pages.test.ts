/** Every page of the operator's console: accessible, in its own width, in both schemes, and without a fault of its own. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { accessibilityFaults, launchBrowser, noBrowser, widths } from '../support/browser.ts'
import { keys } from '../support/client.ts'
import { type ConsoleStage, fillConsole, hostile, startConsoleStage } from '../support/console-stage.ts'

describe.skipIf(noBrowser)('the console', () => {
  let stage: ConsoleStage
  let browser: Browser
  let page: Page
  let made: Awaited<ReturnType<typeof fillConsole>>
  const faults: string[] = []

  beforeAll(async () => {
    stage = await startConsoleStage()
    made = await fillConsole(stage)
    browser = await launchBrowser()
    page = await open()
    await page.getByLabel('API key').fill(keys.admin)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { name: 'What needs a person' }).waitFor()
  })
  afterAll(async () => {
    await browser?.close()
    await stage?.stop()
  })

  async function open(): Promise<Page> {
    const opened = await browser.newPage({ viewport: widths.desktop })
    const url = stage.scene.service.url ?? ''
    opened.on('console', (message) => message.type() === 'error' && faults.push(message.text()))
    opened.on('pageerror', (error) => faults.push(error.message))
    opened.on('request', (request) => {
      if (!request.url().startsWith(url)) faults.push(`asks elsewhere: ${request.url()}`)
      if (request.url().includes(keys.admin)) faults.push(`has the key in a URL: ${request.url()}`)
    })
    await opened.goto(`${url}/admin`)
    return opened
  }

  async function expectSound(name: string, page: Page): Promise<void> {
    // Each width and each scheme once: neither changes what the other is judged by.
    for (const [width, colorScheme] of [
      ['desktop', 'dark'],
      ['phone', 'light'],
    ] as const) {
      await page.emulateMedia({ colorScheme })
      await page.setViewportSize(widths[width])
      const where = `${name}, ${width}, ${colorScheme}`
      expect([where, await accessibilityFaults(page)]).toEqual([where, []])
      const root = 'document.documentElement'
      expect([where, await page.evaluate(`${root}.scrollWidth - ${root}.clientWidth`)]).toEqual([where, 0])
    }
    if (process.env.SHOTS) {
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme })
        for (const [width, viewport] of Object.entries(widths)) {
          await page.setViewportSize(viewport)
          const path = `${process.env.SHOTS}/admin-${name}-${width}-${colorScheme}.png`
          await page.screenshot({ path, fullPage: true })
        }
      }
    }
    await page.setViewportSize(widths.desktop)
    expect(await page.locator('h1').count()).toBe(1)
    expect(faults).toEqual([])
  }

  it('asks for a key', async () => {
    const form = await open()
    await form.getByText('This is the demo').waitFor()
    await expectSound('sign-in', form)
    await form.close()
  })

  const pages: Record<string, [heading: string, hash: () => string]> = {
    start: ['What needs a person', () => '#/'],
    orders: ['Orders', () => '#/orders'],
    order: ['Order', () => `#/orders/${made.rich}`],
    'order-stuck': ['Order', () => `#/orders/${made.stuck}`],
    'order-suspense': ['Order', () => `#/orders/${made.suspense}`],
    jobs: ['Jobs', () => '#/jobs'],
    events: ['Notifications', () => '#/events'],
    event: ['Notification', () => `#/events/${made.event}`],
    emails: ['Emails', () => '#/emails'],
    deliveries: ['Deliveries', () => '#/deliveries'],
    reports: ['Reconciliation reports', () => '#/reports'],
    report: ['Reconciliation report', () => `#/reports/${made.report}`],
    audit: ['Audit log', () => '#/audit'],
    search: ['Search', () => '#/search'],
    nowhere: ['There is no such page', () => '#/nowhere'],
  }

  it.each(Object.keys(pages))('%s', async (name) => {
    const [heading, hash] = pages[name] as (typeof pages)[string]
    await page.evaluate(`location.hash = ${JSON.stringify(hash())}`)
    await page.getByRole('heading', { name: heading, exact: true, level: 1 }).waitFor()
    await page.locator('main:not([aria-busy])').waitFor()
    if (name === 'order') {
      await page.evaluate('for (const fold of document.querySelectorAll("details")) fold.open = true')
      expect(await page.locator('main').textContent()).toContain(hostile)
    }
    await expectSound(name, page)
    expect(await page.title()).not.toContain('owned')
    expect(await page.locator('main img, main script').count()).toBe(0)
  })

  it('asks before it acts', async () => {
    await page.evaluate(`location.hash = '#/orders/${made.stuck}'`)
    await page.getByRole('button', { name: 'Reconcile now' }).click()
    await page.getByRole('dialog').waitFor()
    await page.getByRole('button', { name: 'Ask now' }).isEnabled()
    await expectSound('question', page)
    await page.keyboard.press('Escape')
    expect(await page.getByRole('dialog').count()).toBe(0)
  })
})
