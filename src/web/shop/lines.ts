/** What is bought: the cart against the catalog, as it was sent, and as it was ordered. */
import type { CheckoutAttempt, KnownOrder, Product } from '../client/index.ts'
import { type Cart, readCart } from './cart.ts'
import type { Shop } from './shop.ts'

type AttemptRecord = NonNullable<CheckoutAttempt['record']>

export interface CartLine {
  product: Product
  quantity: number
}

/** What is no longer sold is left out. */
export function linesOf(cart: Cart, { products }: Shop): CartLine[] {
  return Object.entries(cart.quantities).flatMap(([sku, quantity]) => {
    const product = products.get(sku)
    return product === undefined ? [] : [{ product, quantity }]
  })
}

/** One payment has one currency. */
export function haveOneCurrency(lines: readonly CartLine[]): boolean {
  return new Set(lines.map(({ product }) => product.currency)).size <= 1
}

/** What the customer is shown before they pay; amounts in minor units. */
export interface Summary {
  /** Without an amount where it is not known. */
  lines: { sku: string; name: string; quantity: number; amount?: number }[]
  total: number
  currency: string
}

/** Of lines of one currency. The service compares the total with its own. */
export function summaryOf(lines: readonly CartLine[]): Summary {
  return {
    lines: lines.map(({ product: { sku, name, unit_price }, quantity }) => ({
      sku,
      name,
      quantity,
      amount: unit_price * quantity,
    })),
    total: lines.reduce((sum, { product, quantity }) => sum + product.unit_price * quantity, 0),
    currency: lines[0]?.product.currency ?? 'EUR',
  }
}

/** What is being paid for the cart, as it was sent; undefined where nothing is. */
export function beingPaid(shop: Shop): Summary | undefined {
  return summaryOfSent(shop.client.attempt(readCart().id).record, shop)
}

/** As it was reviewed and sent, whatever cart and catalog say by now; undefined where nothing was sent. */
export function summaryOfSent(record: AttemptRecord | undefined, shop: Shop): Summary | undefined {
  if (record?.sent === undefined) return undefined
  const { items, expected_total } = record.sent.body
  return (
    memoOf(record) ?? {
      lines: items.map((item) => ({ ...item, name: shop.nameOf(item.sku) })),
      total: expected_total ?? 0,
      currency: shop.products.get(items[0]?.sku ?? '')?.currency ?? 'EUR',
    }
  )
}

/** What was paid: at the prices of the order, or as sent, which are the same. Empty where the browser knows neither. */
export function linesPaid(order: KnownOrder, record: AttemptRecord | undefined): Summary['lines'] {
  return order.lines ?? (record === undefined ? undefined : memoOf(record))?.lines ?? []
}

/** `pay` was given a summary. */
function memoOf({ memo }: AttemptRecord): Summary | undefined {
  const summary = memo as Summary | undefined
  return Array.isArray(summary?.lines) ? summary : undefined
}
