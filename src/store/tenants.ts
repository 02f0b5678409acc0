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
  /** What the key is called, and the beginning of its hash: who did it, in the audit log. */
  label: string
  keyId: string
}

/** Who a key belongs to, by the SHA-256 of the key; null where there is no such key or it has been revoked. */
export async function findKeyOwner(db: Kysely<Tables>, keyHash: Buffer): Promise<KeyOwner | null> {
  const row = await db
    .selectFrom('api_keys')
    .innerJoin('tenants', 'tenants.tenant_id', 'api_keys.tenant_id')
    .select(['api_keys.tenant_id', 'api_keys.role', 'api_keys.label', 'tenants.connected_account'])
    .where('key_hash', '=', keyHash)
    .where('revoked_at', 'is', null)
    .executeTakeFirst()
  if (row === undefined) return null
  const { tenant_id: tenantId, role, connected_account: connectedAccount, label } = row
  return { tenantId, role, connectedAccount, label, keyId: keyIdOf(keyHash) }
}

/** How a key is named to people: it tells nothing of the key itself, which is long and random. */
export function keyIdOf(keyHash: Buffer): string {
  return keyHash.toString('hex').slice(0, 16)
}
