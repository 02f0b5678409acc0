/**
 * Erasing what is known of a person. Orders and ledger lines stay; names, emails, addresses, metadata, reasons in free
 * text, and the digests of their requests go. Locks in the one order: orders, attempts, refunds, audit entries, customer.
 */
import { type Kysely, sql, type Transaction } from 'kysely'
import type pg from 'pg'
import { transaction } from '../runtime/database.ts'
import type { Tables } from './tables.ts'

export interface Erasure {
  tenant_id: string
  customer_id: string
  requested_at: Date
  completed_at: Date | null
}

/** Keeps the wish, once; null where the tenant has no such customer. */
export async function requestErasure(
  tx: Transaction<Tables>,
  tenantId: string,
  customerId: string,
): Promise<Erasure | null> {
  const customer = await tx
    .selectFrom('customers')
    .select('customer_id')
    .where('tenant_id', '=', tenantId)
    .where('customer_id', '=', customerId)
    .executeTakeFirst()
  if (customer === undefined) return null
  return tx
    .insertInto('erasures')
    .values({ tenant_id: tenantId, customer_id: customerId, next_look_at: sql`clock_timestamp()` })
    .onConflict((conflict) =>
      conflict.columns(['tenant_id', 'customer_id']).doUpdateSet({ next_look_at: sql`clock_timestamp()` }),
    )
    .returning(['tenant_id', 'customer_id', 'requested_at', 'completed_at'])
    .executeTakeFirstOrThrow()
}

/**
 * A text that may be about a person is being written of one of their orders: if they wished to be forgotten, that has to be
 * done anew, as soon as the order has ended. In the transaction that writes it, so that no erasure is complete without it.
 */
export async function reopenErasure(tx: Transaction<Tables>, tenantId: string, orderId: string): Promise<void> {
  await tx
    .updateTable('erasures')
    .set({ completed_at: null, looks: 0, next_look_at: sql`clock_timestamp()` })
    .where('tenant_id', '=', tenantId)
    .where('customer_id', '=', ({ selectFrom }) =>
      selectFrom('orders').select('customer_id').where('tenant_id', '=', tenantId).where('order_id', '=', orderId),
    )
    .execute()
}

/** Wishes that are due to be looked at, each claimed by moving its next look on: from `firstMs`, doubling to an hour. */
export async function claimDueErasures(
  pool: pg.Pool,
  limits: { firstMs: number; atMost: number },
): Promise<{ tenantId: string; customerId: string }[]> {
  const { rows } = await pool.query<{ tenant_id: string; customer_id: string }>(
    `UPDATE erasures e SET looks = e.looks + 1,
       next_look_at = clock_timestamp() + least($1::float8 * 2 ^ least(e.looks, 20), 3600000) * interval '1 ms'
     FROM (SELECT tenant_id, customer_id FROM erasures WHERE next_look_at <= now()
           ORDER BY next_look_at LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED) due
     WHERE e.tenant_id = due.tenant_id AND e.customer_id = due.customer_id
     RETURNING e.tenant_id, e.customer_id`,
    [limits.firstMs, limits.atMost],
  )
  return rows.map(({ tenant_id, customer_id }) => ({ tenantId: tenant_id, customerId: customer_id }))
}

/** Money is still open: the order has not ended, or something that goes back of it has not. The tenant is named, not joined:
 * Postgres may look the refunds up before it knows the order, and would then read those of every tenant. */
function isOpen(tenantId: string) {
  return sql<boolean>`(o.status IN ('pending', 'requires_action', 'needs_reconcile', 'authorized') OR EXISTS (
    SELECT FROM refunds r WHERE r.tenant_id = ${tenantId} AND r.order_id = o.order_id AND r.status = 'pending'))`
}

/** Erases up to `limit` of the customer's orders after `after` that have ended; `last` is where to go on, null at the end. */
export function eraseOrders(
  db: Kysely<Tables>,
  tenantId: string,
  customerId: string,
  { after, limit }: { after: string; limit: number },
): Promise<{ last: string | null }> {
  return transaction(db, async (tx) => {
    const orders = await tx
      .selectFrom('orders as o')
      .select(['o.order_id', 'o.attempt_key', isOpen(tenantId).as('open')])
      .where('o.tenant_id', '=', tenantId)
      .where('o.customer_id', '=', customerId)
      .where('o.order_id', '>', after)
      .orderBy('o.order_id')
      .limit(limit)
      .forNoKeyUpdate()
      .execute()
    const ended = orders.filter(({ open }) => !open)
    if (ended.length > 0) await eraseEnded(tx, tenantId, ended)
    return { last: orders.length < limit ? null : (orders.at(-1)?.order_id ?? null) }
  })
}

async function eraseEnded(
  tx: Transaction<Tables>,
  tenantId: string,
  orders: readonly { order_id: string; attempt_key: string }[],
): Promise<void> {
  const ids = orders.map(({ order_id }) => order_id)
  await tx
    .updateTable('orders')
    .set({ shipping_address: null, metadata: null })
    .where('tenant_id', '=', tenantId)
    .where('order_id', 'in', ids)
    .where((where) => where.or([where('shipping_address', 'is not', null), where('metadata', 'is not', null)]))
    .execute()
  const refunds = await tx
    .selectFrom('refunds')
    .select('attempt_key')
    .where('tenant_id', '=', tenantId)
    .where('order_id', 'in', ids)
    .where('attempt_key', 'is not', null)
    .execute()
  const keys = [...orders, ...refunds].flatMap(({ attempt_key }) => attempt_key ?? []).sort()
  // As after the retention: a repeat can no longer be compared, so it is told that its answer has gone, and does nothing.
  await tx
    .updateTable('attempts')
    .set({
      digest: null,
      digest_tags: null,
      digest_secret_id: null,
      response_status: null,
      response_body: null,
      swept_at: sql`clock_timestamp()`,
    })
    .where('tenant_id', '=', tenantId)
    .where('key', 'in', keys)
    .where('state', 'in', ['settled', 'resumable'])
    .where('swept_at', 'is', null)
    .execute()
  await tx
    .updateTable('refunds')
    .set({ reason: null })
    .where('tenant_id', '=', tenantId)
    .where('order_id', 'in', ids)
    .where('reason', 'is not', null)
    .execute()
  await tx
    .updateTable('audit_entries')
    .set({ reason: null })
    .where('tenant_id', '=', tenantId)
    .where('order_id', 'in', ids)
    .where('reason', 'is not', null)
    .execute()
}

/** Whoever claimed an order for this customer at the same moment has committed by then: one more look finds it. */
const lastLookMs = 120_000

/**
 * Forgets the person themselves, unless one of their orders is still open: its emails need them. Resolves with the open
 * ones, `openMax` at most; with none, the wish is carried out.
 */
export function eraseCustomer(
  db: Kysely<Tables>,
  tenantId: string,
  customerId: string,
  openMax: number,
): Promise<{ open: string[] }> {
  return transaction(db, async (tx) => {
    const open = await tx
      .selectFrom('orders as o')
      .select('o.order_id')
      .where('o.tenant_id', '=', tenantId)
      .where('o.customer_id', '=', customerId)
      .where(isOpen(tenantId))
      .orderBy('o.order_id')
      .limit(openMax)
      .execute()
    if (open.length > 0) return { open: open.map(({ order_id }) => order_id) }
    await tx
      .updateTable('customers')
      .set({ email: null, name: null })
      .where('tenant_id', '=', tenantId)
      .where('customer_id', '=', customerId)
      .execute()
    await tx
      .updateTable('erasures')
      .set({
        completed_at: sql`coalesce(completed_at, clock_timestamp())`,
        next_look_at: sql`CASE WHEN completed_at IS NULL OR completed_at > clock_timestamp() - ${lastLookMs} * interval '1 ms'
          THEN clock_timestamp() + ${lastLookMs} * interval '1 ms' END`,
      })
      .where('tenant_id', '=', tenantId)
      .where('customer_id', '=', customerId)
      .execute()
    return { open: [] }
  })
}
