/**
 * The checkout in a storefront's page. One attempt per cart, one key per attempt, kept by the browser until it is settled:
 *
 *     const checkout = checkoutClient({ baseUrl: 'https://checkout.shop.example', publishableKey: 'pk_…' })
 *     const attempt = checkout.attempt(cart.id)
 *     await attempt.begin()                          // the review page is shown
 *     let outcome = await attempt.resume()           // it was sent before a reload
 *     outcome = await attempt.pay({ items, customer, payment_method, expected_total })
 *
 * Whatever happens in between, and however often it is called, the cart is paid at most once.
 */
import { CheckoutAttempt } from './attempt.ts'
import { backoffMs, pause } from './backoff.ts'
import type { CheckoutProblem, Product, ProductList } from './contract.ts'
import { AttemptRecords, type AttemptStorage, browserStorage } from './records.ts'
import { exchange, type Service } from './wire.ts'

export type { CheckoutAttempt } from './attempt.ts'
export type { CheckoutProblem, Order, Product } from './contract.ts'
export type { KnownOrder, Outcome, WaitReason } from './outcome.ts'
export { browserStorage } from './records.ts'
export type { WireEvent } from './wire.ts'

export interface CheckoutClient {
  /** The attempt to pay for this cart. The name is sent as `cart_id`: at most 200 visible ASCII characters, without
   * personal data. Another cart needs another name, also the next one of the same customer. */
  attempt(cart: string): CheckoutAttempt
  /** The whole catalog, by SKU. Rejects with the problem where the service refuses, or when the signal is aborted. */
  products(signal?: AbortSignal): Promise<Product[]>
}

/** `storage` must be shared by all tabs of the storefront; by default it is `localStorage`. */
export function checkoutClient(options: Service & { storage?: AttemptStorage }): CheckoutClient {
  const { storage = browserStorage(), ...service } = options
  const records = new AttemptRecords(storage)
  return {
    attempt: (cart) => new CheckoutAttempt(service, records, cart),
    async products(signal) {
      const products: Product[] = []
      let cursor: string | null = ''
      while (cursor !== null) {
        const page: ProductList = await readPage(service, cursor, signal)
        products.push(...page.data)
        cursor = page.next_cursor
      }
      return products
    },
  }
}

async function readPage(service: Service, cursor: string, signal: AbortSignal | undefined): Promise<ProductList> {
  const path = `/v1/products?limit=100${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`
  for (let tries = 0; ; tries++) {
    const reply = await exchange(service, { method: 'GET', path }, signal)
    if (reply.kind === 'answered' && reply.status === 200 && reply.json !== undefined) return reply.json as ProductList
    if (reply.kind === 'answered' && reply.status >= 400 && reply.status < 500 && reply.status !== 429) {
      throw new Refused(reply.json as CheckoutProblem | undefined)
    }
    await pause(backoffMs(tries, reply.kind === 'answered' ? reply.retryAfterMs : null), signal)
  }
}

/** The service does not let this page read: its key is not valid, say. */
class Refused extends Error {
  override name = 'Refused'
  readonly problem: CheckoutProblem | undefined

  constructor(problem: CheckoutProblem | undefined) {
    super(problem?.title ?? 'The request was refused')
    this.problem = problem
  }
}
