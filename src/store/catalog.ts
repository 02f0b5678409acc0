/** Products. */
import { type Kysely, sql } from 'kysely'
import type { Tables } from './tables.ts'

export interface Product {
  tenant_id: string
  sku: string
  name: string
  /** Minor units. */
  unit_price: number
  currency: string
  /** What can be sold now. */
  available: number
}

/** By SKU; one more than the page's limit where there is more. */
export function listProducts(
  db: Kysely<Tables>,
  tenantId: string,
  page: { limit: number; after: string | null },
): Promise<Product[]> {
  let query = db.selectFrom('products').selectAll().where('tenant_id', '=', tenantId)
  if (page.after !== null) query = query.where('sku', '>', page.after)
  return query
    .orderBy('sku')
    .limit(page.limit + 1)
    .execute()
}

export async function readProduct(db: Kysely<Tables>, tenantId: string, sku: string): Promise<Product | null> {
  const product = await db
    .selectFrom('products')
    .selectAll()
    .where('tenant_id', '=', tenantId)
    .where('sku', '=', sku)
    .executeTakeFirst()
  return product ?? null
}

/** Creates or replaces it. `available` is set as given: orders that are open have taken theirs before. */
export function putProduct(db: Kysely<Tables>, product: Product): Promise<Product> {
  return db
    .insertInto('products')
    .values(product)
    .onConflict((conflict) =>
      conflict.columns(['tenant_id', 'sku']).doUpdateSet((excluded) => ({
        name: excluded.ref('excluded.name'),
        unit_price: excluded.ref('excluded.unit_price'),
        currency: excluded.ref('excluded.currency'),
        available: excluded.ref('excluded.available'),
        updated_at: sql`now()`,
      })),
    )
    .returningAll()
    .executeTakeFirstOrThrow()
}
