/** Products of the storm's own, so that nothing else sells them. */
import { randomBytes } from 'node:crypto'
import type { StormOptions } from './options.ts'

const plenty = 1_000_000_000

/** Puts them into the catalog; resolves with how many units there are by SKU, the hot one first. */
export async function stockShelves(options: StormOptions, url: string): Promise<Record<string, number>> {
  const run = randomBytes(4).toString('hex')
  const stock: Record<string, number> = { [`storm_${run}_hot`]: options.units }
  for (let at = 1; at < options.products; at++) stock[`storm_${run}_${at}`] = plenty
  const left = Object.entries(stock)
  const one = async () => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) await put(options.backendKey, url, ...next)
  }
  await Promise.all(Array.from({ length: 8 }, one))
  return stock
}

async function put(backendKey: string, url: string, sku: string, available: number): Promise<void> {
  const response = await fetch(`${url}/v1/products/${sku}`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${backendKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: `Storm ${sku}`, unit_price: 1000, currency: 'EUR', available }),
  })
  if (!response.ok) throw new Error(`the product ${sku} was refused: ${response.status} ${await response.text()}`)
}
