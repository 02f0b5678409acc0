/** What is bought: the cart against the catalog, and as it was ordered. */
import type { Order, Product } from '../client/index.ts'
import type { Cart } from './cart.ts'
import type { Shop } from './shop.ts'

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

/** Minor units, as shown to the customer: the service compares it with its own. */
export function totalOf(lines: readonly CartLine[]): { total: number; currency: string } {
  return {
    total: lines.reduce((sum, { product, quantity }) => sum + product.unit_price * quantity, 0),
    currency: lines[0]?.product.currency ?? 'EUR',
  }
}

/** What the review page lists; amounts in minor units. */
export interface Summary {
  lines: { name: string; quantity: number; amount: number }[]
  total: number
  currency: string
}

export function summaryOf(lines: readonly CartLine[]): Summary {
  return {
    lines: lines.map(({ product, quantity }) => ({
      name: product.name,
      quantity,
      amount: product.unit_price * quantity,
    })),
    ...totalOf(lines),
  }
}

/** At the prices of the order, which stay whatever the catalog says by now. */
export function summaryOfOrder({ lines, total, currency }: Order): Summary {
  return { lines, total, currency }
}
