/** Tenants and their API keys. */
import { type Kysely, sql } from 'kysely'
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

/** False where there is one of that id already; then it stays as it is. */
export async function createTenant(
  db: Kysely<Tables>,
  tenant: { tenantId: string; name: string; connectedAccount: string | null },
): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('tenants')
    .values({ tenant_id: tenant.tenantId, name: tenant.name, connected_account: tenant.connectedAccount })
    .onConflict((conflict) => conflict.column('tenant_id').doNothing())
    .executeTakeFirst()
  return numInsertedOrUpdatedRows === 1n
}

/** What the tenant is called; null where there is none. */
export async function tenantName(db: Kysely<Tables>, tenantId: string): Promise<string | null> {
  const row = await db.selectFrom('tenants').select('name').where('tenant_id', '=', tenantId).executeTakeFirst()
  return row?.name ?? null
}

export async function tenantExists(db: Kysely<Tables>, tenantId: string): Promise<boolean> {
  const row = await db.selectFrom('tenants').select('tenant_id').where('tenant_id', '=', tenantId).executeTakeFirst()
  return row !== undefined
}

export async function listTenants(
  db: Kysely<Tables>,
): Promise<{ tenantId: string; name: string; connectedAccount: string | null }[]> {
  return db
    .selectFrom('tenants')
    .select(['tenant_id as tenantId', 'name', 'connected_account as connectedAccount'])
    .orderBy('tenant_id')
    .execute()
}

/** A key as people see it: never the key. */
interface ApiKey {
  keyId: string
  role: KeyOwner['role']
  label: string
  createdAt: Date
  revokedAt: Date | null
}

export async function createKey(
  db: Kysely<Tables>,
  key: { keyHash: Buffer; tenantId: string; role: KeyOwner['role']; label: string },
): Promise<void> {
  await db
    .insertInto('api_keys')
    .values({ key_hash: key.keyHash, tenant_id: key.tenantId, role: key.role, label: key.label, revoked_at: null })
    .execute()
}

export async function listKeys(db: Kysely<Tables>, tenantId: string): Promise<ApiKey[]> {
  const rows = await db
    .selectFrom('api_keys')
    .selectAll()
    .where('tenant_id', '=', tenantId)
    .orderBy('created_at')
    .orderBy('key_hash')
    .execute()
  return rows.map((row) => ({
    keyId: keyIdOf(row.key_hash),
    role: row.role,
    label: row.label,
    createdAt: row.created_at,
    revokedAt: row.revoked_at,
  }))
}

/** Processes remember a key for a moment, so it works on for some seconds. Null where the tenant has no such key. */
export async function revokeKey(
  db: Kysely<Tables>,
  tenantId: string,
  keyId: string,
): Promise<{ revokedAt: Date } | null> {
  const row = await db
    .updateTable('api_keys')
    .set({ revoked_at: sql`coalesce(revoked_at, clock_timestamp())` })
    .where('tenant_id', '=', tenantId)
    .where(sql<boolean>`encode(substring(key_hash FOR 8), 'hex') = ${keyId}`)
    .returning('revoked_at')
    .executeTakeFirst()
  return row?.revoked_at == null ? null : { revokedAt: row.revoked_at }
}
