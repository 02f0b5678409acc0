/** The audit log: who did what to what, when, why, and what came of it. */
import { type Kysely, sql } from 'kysely'
import { newId } from '../domain/ids.ts'
import { transaction } from '../runtime/database.ts'
import { reopenErasure } from './erasures.ts'
import type { Tables } from './tables.ts'

/** Who acts: the label of an API key and the beginning of its hash, or the command line. */
export interface Operator {
  tenantId: string
  actor: string
  keyId: string | null
  /** The request, or the run of the command. */
  requestId: string
}

export interface AuditTarget {
  type: 'order' | 'provider_event' | 'job' | 'email' | 'merchant_event' | 'customer' | 'report' | 'tenant' | 'api_key'
  id: string
  /** Whose personal data the reason may hold. */
  orderId?: string
}

export interface AuditEntry {
  tenant_id: string
  entry_id: string
  actor: string
  key_id: string | null
  request_id: string
  action: string
  target_type: string
  target_id: string
  order_id: string | null
  reason: string | null
  outcome: string
  created_at: Date
  ended_at: Date | null
}

/** Keeps what was done, in the transaction of its effect. `reason` is a person's own words, `outcome` one of ours. */
export function recordAudit(
  db: Kysely<Tables>,
  by: Operator,
  done: { action: string; target: AuditTarget; reason?: string; outcome: string },
): Promise<string> {
  return insert(db, by, done, sql<Date>`clock_timestamp()`)
}

/** Keeps what is about to be done, where its effect is not in Postgres alone; `endAudit` completes it. */
export function beginAudit(
  db: Kysely<Tables>,
  by: Operator,
  begun: { action: string; target: AuditTarget; reason?: string },
): Promise<string> {
  return insert(db, by, { ...begun, outcome: 'started' }, null)
}

async function insert(
  db: Kysely<Tables>,
  by: Operator,
  { action, target, reason, outcome }: { action: string; target: AuditTarget; reason?: string; outcome: string },
  endedAt: ReturnType<typeof sql<Date>> | null,
): Promise<string> {
  const { tenantId, actor, keyId, requestId } = by
  const entry = {
    tenant_id: tenantId,
    entry_id: newId('aud'),
    actor,
    key_id: keyId,
    request_id: requestId,
    action,
    target_type: target.type,
    target_id: target.id,
    order_id: target.orderId ?? null,
    reason: reason ?? null,
    outcome,
    ended_at: endedAt,
  }
  await transaction(db, async (tx) => {
    await tx.insertInto('audit_entries').values(entry).execute()
    if (reason !== undefined && target.orderId !== undefined) await reopenErasure(tx, tenantId, target.orderId)
  })
  return entry.entry_id
}

export async function endAudit(db: Kysely<Tables>, tenantId: string, entryId: string, outcome: string): Promise<void> {
  await db
    .updateTable('audit_entries')
    .set({ outcome, ended_at: sql`clock_timestamp()` })
    .where('tenant_id', '=', tenantId)
    .where('entry_id', '=', entryId)
    .execute()
}

/** Newest first; one more than the page's limit where there is more. `after` is an entry's id. */
export function listAudit(
  db: Kysely<Tables>,
  tenantId: string,
  page: { limit: number; after: string | null },
  filter: { action?: string; orderId?: string; targetId?: string } = {},
): Promise<AuditEntry[]> {
  let query = db.selectFrom('audit_entries').selectAll().where('tenant_id', '=', tenantId)
  if (filter.orderId !== undefined) query = query.where('order_id', '=', filter.orderId)
  if (filter.action !== undefined) query = query.where('action', '=', filter.action)
  if (filter.targetId !== undefined) query = query.where('target_id', '=', filter.targetId)
  if (page.after !== null) query = query.where('entry_id', '<', page.after)
  return query
    .orderBy('entry_id', 'desc')
    .limit(page.limit + 1)
    .execute()
}
