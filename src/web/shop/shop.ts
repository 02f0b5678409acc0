/** What all views of the shop use. */
import { type CheckoutClient, checkoutClient, type Product } from '../client/index.ts'
import { bumpyFetch } from './bumpy-network.ts'
import { WireLog } from './wire-log.ts'

export interface Shop {
  client: CheckoutClient
  wire: WireLog
  /** The simulator plays the bank: there are faults to try, and its books to look at. */
  standIn: boolean
  /** By SKU, as last read. */
  products: Map<string, Product>
  readProducts(): Promise<void>
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
    wire,
    standIn: config.stand_in,
    products: new Map(),
    async readProducts() {
      const products = await client.products()
      shop.products = new Map(products.map((product) => [product.sku, product]))
    },
    nameOf: (sku) => shop.products.get(sku)?.name ?? sku,
  }
  await shop.readProducts()
  return shop
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
