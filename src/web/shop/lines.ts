/** The cart against the catalog. */
import type { Product } from '../client/index.ts'
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
