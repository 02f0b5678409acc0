/** Tenants and their API keys. */
import type { Kysely } from 'kysely'
import type { Tables } from './tables.ts'

/** The tenant's own account at the provider, or null for the credentials' own. */
export async function connectedAccountOf(db: Kysely<Tables>, tenantId: string): Promise<string | null> {
  const tenant = await db
    .selectFrom('tenants')
    .select('connected_account')
    .where('tenant_id', '=', tenantId)
    .executeTakeFirst()
  return tenant?.connected_account ?? null
}

export interface KeyOwner {
  tenantId: string
  role: 'storefront' | 'backend' | 'admin'
  connectedAccount: string | null
}

/** Who a key belongs to, by the SHA-256 of the key; null where there is no such key or it has been revoked. */
export async function findKeyOwner(db: Kysely<Tables>, keyHash: Buffer): Promise<KeyOwner | null> {
  const row = await db
    .selectFrom('api_keys')
    .innerJoin('tenants', 'tenants.tenant_id', 'api_keys.tenant_id')
    .select(['api_keys.tenant_id', 'api_keys.role', 'tenants.connected_account'])
    .where('key_hash', '=', keyHash)
    .where('revoked_at', 'is', null)
    .executeTakeFirst()
  return row === undefined ? null : { tenantId: row.tenant_id, role: row.role, connectedAccount: row.connected_account }
}
