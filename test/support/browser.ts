/** A real browser, headless: Debian's Chromium, or the one that CHROMIUM_PATH names. */
import { existsSync } from 'node:fs'
import axe from 'axe-core'
import { type Browser, chromium, type Page } from 'playwright-core'

const executablePath = process.env.CHROMIUM_PATH ?? '/usr/bin/chromium'

/** Why browser tests cannot run here; undefined where they can. `describe.skipIf(noBrowser)` skips them, and says so. */
export const noBrowser = existsSync(executablePath)
  ? undefined
  : `browser tests are skipped: no Chromium at ${executablePath}; install it (Debian: apt-get install chromium) or set CHROMIUM_PATH`
if (noBrowser !== undefined) console.warn(noBrowser)

export function launchBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath,
    headless: true,
    // As root, in a container, and talking to nobody but the pages under test.
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-dev-shm-usage',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--no-first-run',
      '--disable-default-apps',
      '--disable-extensions',
    ],
  })
}

export const widths = { phone: { width: 390, height: 844 }, desktop: { width: 1280, height: 900 } }

const levels = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']

/** What axe finds against WCAG 2.2 A and AA on the page as it stands, a line each; empty where it finds nothing. */
export async function accessibilityFaults(page: Page): Promise<string[]> {
  // Not by a script tag: the page's content security policy forbids it, as it should.
  if (!(await page.evaluate("'axe' in globalThis"))) await page.evaluate(axe.source)
  const { violations } = await page.evaluate(async (rules) => {
    const { axe } = globalThis as unknown as { axe: typeof import('axe-core') }
    return axe.run({ runOnly: rules, resultTypes: ['violations'] })
  }, levels)
  return violations.flatMap(({ id, help, nodes }) => nodes.map((node) => `${id}: ${help}: ${node.html}`))
}
