/** Meters: what a unit of usage costs. */
import { type Kysely, sql } from 'kysely'
import type { Tables } from './tables.ts'

export interface Meter {
  tenant_id: string
  meter_type: string
  /** Minor units for every `per` units of usage. */
  price: number
  per: number
  currency: string
}

/** By type; one more than the page's limit where there is more. */
export function listMeters(
  db: Kysely<Tables>,
  tenantId: string,
  page: { limit: number; after: string | null },
): Promise<Meter[]> {
  let query = db.selectFrom('meters').selectAll().where('tenant_id', '=', tenantId)
  if (page.after !== null) query = query.where('meter_type', '>', page.after)
  return query
    .orderBy('meter_type')
    .limit(page.limit + 1)
    .execute()
}

export async function readMeter(db: Kysely<Tables>, tenantId: string, meterType: string): Promise<Meter | null> {
  const meter = await db
    .selectFrom('meters')
    .selectAll()
    .where('tenant_id', '=', tenantId)
    .where('meter_type', '=', meterType)
    .executeTakeFirst()
  return meter ?? null
}

/** Creates or replaces it. What has been recorded keeps the price that it was recorded at. */
export function putMeter(db: Kysely<Tables>, meter: Meter): Promise<Meter> {
  return db
    .insertInto('meters')
    .values(meter)
    .onConflict((conflict) =>
      conflict.columns(['tenant_id', 'meter_type']).doUpdateSet((excluded) => ({
        price: excluded.ref('excluded.price'),
        per: excluded.ref('excluded.per'),
        currency: excluded.ref('excluded.currency'),
        updated_at: sql`now()`,
      })),
    )
    .returningAll()
    .executeTakeFirstOrThrow()
}
