/** The demo shop in a browser, the service behind it charging the simulator, and what both have in their books. */
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach } from 'vitest'
import type { BookedPayment } from '../support/books.ts'
import { launchBrowser, widths } from '../support/browser.ts'
import { type Scene, startScene } from '../support/scene.ts'
import { until } from '../support/until.ts'

export interface ShopStage {
  scene: Scene
  url: string
  browser: Browser
  /** A visitor of their own: nothing in the browser's storage. Faults of the page are thrown by `stop`. */
  visitor(): Promise<BrowserContext>
  stop(): Promise<void>
}

export async function startShopStage(settings: Record<string, string> = {}): Promise<ShopStage> {
  const scene = await startScene({
    settings: {
      ROLES: 'api,worker',
      // The simulator of the scene as the demo uses it: without a provider's key.
      STRIPE_SECRET_KEY: '',
      RECONCILE_AFTER_MS: '300',
      WORKER_POLL_MS: '50',
      RECOVERY_INTERVAL_MS: '100',
      ...settings,
    },
  })
  const browser = await launchBrowser()
  const faults: string[] = []
  return {
    scene,
    url: scene.service.url ?? '',
    browser,
    async visitor() {
      const context = await browser.newContext({ viewport: widths.desktop })
      context.on('weberror', (error) => faults.push(String(error.error())))
      return context
    },
    async stop() {
      await browser.close()
      await scene.stop()
      if (faults.length > 0) throw new Error(`the page failed: ${faults.join('\n')}`)
    },
  }
}

interface Visit {
  stage: ShopStage
  context: BrowserContext
  /** What has changed in the books since the visit began. */
  changes: () => Promise<Change>
}

/** Opens the shop for the tests of a block; each has a visitor of its own and a provider without faults. */
export function eachVisit(begin: (visit: Visit) => void): void {
  let stage: ShopStage
  beforeAll(async () => {
    stage = await startShopStage()
  })
  afterAll(() => stage?.stop())
  beforeEach(async () => {
    await stage.scene.books.noFaults()
    const context = await stage.visitor()
    begin({ stage, context, changes: await watchBooks(stage) })
    return () => context.close()
  })
}

/** A tab on the review page with these products in the cart. */
export async function toReview(stage: ShopStage, context: BrowserContext, ...names: string[]): Promise<Page> {
  const page = await context.newPage()
  await page.goto(`${stage.url}/shop`)
  for (const name of names) await page.getByRole('button', { name: `Add to cart ${name}` }).click()
  await page.getByRole('link', { name: 'Cart' }).click()
  await page.getByRole('link', { name: 'Review and pay' }).click()
  await payButton(page).waitFor()
  return page
}

export function payButton(page: Page) {
  return page.getByRole('button', { name: /^Pay / })
}

export function chooseCard(page: Page, behaviour: string): Promise<void> {
  return page.getByText(behaviour, { exact: true }).click()
}

/** Resolves with the id of the order on the receipt. */
export async function receipt(page: Page): Promise<string> {
  await page.getByRole('heading', { name: 'Thank you' }).waitFor()
  return (await page.locator('#order-id').textContent()) ?? ''
}

/** The key that the browser keeps for the cart in the making; every attempt of an earlier cart has ended. */
export async function keptKey(page: Page): Promise<string> {
  return until(
    async () => {
      const kept = await storage(page)
      const { id } = JSON.parse(kept['shop.cart'] ?? '{}') as { id?: string }
      return (JSON.parse(kept[`checkout.attempt.${id}`] ?? '{}') as { key?: string }).key
    },
    { what: 'the browser to keep a key' },
  )
}

/** Everything that the browser keeps for the shop. */
export function storage(page: Page): Promise<Record<string, string>> {
  return page.evaluate('({ ...localStorage, ...sessionStorage })')
}

/** Every checkout that the tab sends from now on: key and body. */
export function sentCheckouts(page: Page): { key: string; body: string }[] {
  const sent: { key: string; body: string }[] = []
  page.on('request', (request) => {
    if (request.method() !== 'POST' || !request.url().endsWith('/v1/checkouts')) return
    sent.push({ key: request.headers()['idempotency-key'] ?? '', body: request.postData() ?? '' })
  })
  return sent
}

/** Starts watching; the function it resolves with tells what has changed since, once nothing is open any more. */
async function watchBooks({ scene }: ShopStage): Promise<() => Promise<Change>> {
  const before = await snapshot(scene)
  return async () => {
    await until(async () => (await snapshot(scene)).orders.every(({ status }) => !open.has(status)), {
      what: 'every order to be settled',
    })
    const after = await snapshot(scene)
    const known = new Set([...before.orders.map((order) => order.id), ...before.payments.map(({ id }) => id)])
    return {
      orders: after.orders
        .filter(({ id }) => !known.has(id))
        .map(({ status }) => status)
        .sort(),
      charged: after.payments.filter(({ id }) => !known.has(id)).flatMap(charged),
      stock: Object.fromEntries(
        [...after.stock].flatMap(([sku, count]) => {
          const change = count - (before.stock.get(sku) ?? 0)
          return change === 0 ? [] : [[sku, change]]
        }),
      ),
    }
  }
}

export interface Change {
  /** Statuses of the new orders, sorted. */
  orders: string[]
  /** Of the payments in the simulator's books that took money, minor units less refunds. */
  charged: number[]
  /** By SKU, where it has changed. */
  stock: Record<string, number>
}

export const onceForAMug: Change = { orders: ['paid'], charged: [1250], stock: { mug: -1 } }

const open = new Set(['pending', 'requires_action', 'needs_reconcile'])

async function snapshot(scene: Scene) {
  const orders = await scene.db.selectFrom('orders').select(['order_id as id', 'status']).execute()
  const products = await scene.db
    .selectFrom('products')
    .select(['sku', 'available'])
    .where('tenant_id', '=', 'ten_demo')
    .execute()
  return {
    orders,
    payments: await scene.books.payments(),
    stock: new Map(products.map(({ sku, available }) => [sku, Number(available)])),
  }
}

function charged({ amount_received, refunds }: BookedPayment): number[] {
  const back = refunds.filter(({ status }) => status !== 'failed').reduce((sum, { amount }) => sum + amount, 0)
  return amount_received - back === 0 ? [] : [amount_received - back]
}
