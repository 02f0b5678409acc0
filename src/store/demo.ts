/** Demo tenants, their well-known keys, a catalog and meters, for trying the service. Inserts only what is missing. */
import { createHash } from 'node:crypto'
import type { Kysely } from 'kysely'
import { transaction } from '../runtime/database.ts'
import type { Tables } from './tables.ts'

export const demoKeys = { storefront: 'pk_test_demo', backend: 'sk_test_demo', admin: 'ak_test_demo' } as const

const tenants = [
  {
    tenant_id: 'ten_demo',
    name: 'Demo shop',
    keys: [
      ['pk_test_demo', 'storefront'],
      ['sk_test_demo', 'backend'],
      ['ak_test_demo', 'admin'],
    ],
  },
  {
    tenant_id: 'ten_other',
    name: 'Other shop',
    keys: [
      ['pk_test_other', 'storefront'],
      ['sk_test_other', 'backend'],
    ],
  },
] as const

/** As they are seeded. */
export const demoProducts = [
  { sku: 'mug', name: 'Mug', unit_price: 1250, currency: 'EUR', available: 100_000 },
  { sku: 'tee', name: 'T-shirt', unit_price: 2500, currency: 'EUR', available: 100_000 },
  { sku: 'poster', name: 'Poster', unit_price: 900, currency: 'EUR', available: 100_000 },
  { sku: 'rare', name: 'Rare print', unit_price: 5000, currency: 'EUR', available: 5 },
] as const

const meters = [
  { meter_type: 'input_tokens', price: 300, per: 1_000_000, currency: 'EUR' },
  { meter_type: 'output_tokens', price: 1500, per: 1_000_000, currency: 'EUR' },
] as const

export async function seedDemo(db: Kysely<Tables>): Promise<void> {
  await transaction(db, async (tx) => {
    for (const { tenant_id, name, keys } of tenants) {
      await tx
        .insertInto('tenants')
        .values({ tenant_id, name, connected_account: null })
        .onConflict((conflict) => conflict.doNothing())
        .execute()
      await tx
        .insertInto('api_keys')
        .values(
          keys.map(([key, role]) => ({
            key_hash: createHash('sha256').update(key).digest(),
            tenant_id,
            role,
            label: 'demo',
            revoked_at: null,
          })),
        )
        .onConflict((conflict) => conflict.doNothing())
        .execute()
      await tx
        .insertInto('products')
        .values(demoProducts.map((product) => ({ ...product, tenant_id })))
        .onConflict((conflict) => conflict.doNothing())
        .execute()
      await tx
        .insertInto('meters')
        .values(meters.map((meter) => ({ ...meter, tenant_id })))
        .onConflict((conflict) => conflict.doNothing())
        .execute()
    }
  })
}
