/** What all views of the shop use. */
import { type CheckoutClient, checkoutClient, type Product } from '../client/index.ts'
import { bumpyFetch } from './bumpy-network.ts'
import { readCart } from './cart.ts'
import { Paying } from './paying.ts'
import { WireLog } from './wire-log.ts'
import { named } from './words.ts'

export interface Shop {
  client: CheckoutClient
  /** The payment of the cart in the making. */
  paying: Paying
  wire: WireLog
  /** The simulator plays the bank: there are faults to try, and its books to look at. */
  standIn: boolean
  /** By SKU, as last read. */
  products: Map<string, Product>
  readProducts(): Promise<void>
  /** For a sentence. */
  nameOf(sku: string): string
}

export async function openShop(): Promise<Shop> {
  const response = await fetch('/shop/config.json')
  const config = (await response.json()) as { publishable_key: string; stand_in: boolean }
  const wire = new WireLog()
  const client = checkoutClient({
    baseUrl: '',
    publishableKey: config.publishable_key,
    fetch: bumpyFetch,
    onWire: (event) => wire.add(event),
  })
  const shop: Shop = {
    client,
    paying: payingFor(client, readCart().id),
    wire,
    standIn: config.stand_in,
    products: new Map(),
    async readProducts() {
      const products = await client.products()
      shop.products = new Map(products.map((product) => [product.sku, product]))
    },
    nameOf: (sku) => named(shop.products.get(sku)?.name ?? sku),
  }
  await shop.readProducts()
  return shop
}

export function payingFor(client: CheckoutClient, cart: string): Paying {
  return new Paying(cart, client.attempt(cart))
}

/** Of the demo's own routes. Resolves with whether it was taken; rejects where the service was not reached or failed. */
export async function postDemo(path: string, body: object): Promise<boolean> {
  const response = await fetch(`/shop/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (response.status >= 500) throw new Error(`${path}: ${response.status}`)
  return response.ok
}
