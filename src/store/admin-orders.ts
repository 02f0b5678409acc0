/** Orders as an operator looks for them. */
import { type Kysely, sql } from 'kysely'
import type { Order, OrderStatus } from '../domain/order.ts'
import type { Tables } from './tables.ts'

interface OrderFilter {
  status?: OrderStatus
  /** `true`: waits for a person, in `needs_reconcile` or flagged for a reason. `settled`: flagged, and not open. */
  flagged?: 'true' | 'settled'
  reason?: string
  /** The attempt's idempotency key. */
  key?: string
  /** One of these. */
  orderIds?: readonly string[]
  email?: string
}

/** An order with since when it has had its status. */
export type OrderInList = Order & { status_since: Date }

const statusSince = sql<Date>`coalesce((SELECT max(t.at) FROM order_transitions t
  WHERE t.tenant_id = orders.tenant_id AND t.order_id = orders.order_id), orders.created_at)`.as('status_since')

/** Newest first; one more than the page's limit where there is more. */
export function findOrders(
  db: Kysely<Tables>,
  tenantId: string,
  page: { limit: number; after: string | null },
  filter: OrderFilter = {},
): Promise<OrderInList[]> {
  let query = db.selectFrom('orders').selectAll().select(statusSince)
  if (filter.email === undefined) query = query.where('tenant_id', '=', tenantId)
  else {
    // By the index of the person's orders: written so that no plan walks over all that the tenant has instead.
    query = query.where(sql<boolean>`tenant_id || '' = ${tenantId} AND customer_id = (
      SELECT c.customer_id FROM customers c WHERE c.tenant_id = ${tenantId} AND c.email = ${filter.email})`)
  }
  // Written out, so that the partial index answers: what is settled outnumbers everything else.
  if (filter.flagged !== undefined || filter.status === 'needs_reconcile' || filter.reason !== undefined) {
    query = query.where(sql<boolean>`(status = 'needs_reconcile' OR reconcile_reason IS NOT NULL)`)
  }
  if (filter.flagged === 'settled') {
    query = query.where('status', 'in', ['authorized', 'paid', 'payment_failed', 'canceled'])
  }
  if (filter.status !== undefined) query = query.where('status', '=', filter.status)
  if (filter.reason !== undefined) query = query.where('reconcile_reason', '=', filter.reason)
  if (filter.orderIds !== undefined) query = query.where('order_id', 'in', [...filter.orderIds, ''])
  if (filter.key !== undefined) {
    // The attempt knows its order, or its refund and that its order.
    query = query.where(sql<boolean>`order_id IN (
      SELECT coalesce(r.order_id, a.object_id) FROM attempts a
      LEFT JOIN refunds r ON r.tenant_id = a.tenant_id AND r.refund_id = a.object_id
      WHERE a.tenant_id = ${tenantId} AND a.key = ${filter.key})`)
  }
  if (page.after !== null) query = query.where('order_id', '<', page.after)
  return query
    .orderBy('order_id', 'desc')
    .limit(page.limit + 1)
    .execute()
}

/** Orders whose books name something of the provider's: a payment that they did not wait for, a refund, a dispute. */
export async function ordersNaming(db: Kysely<Tables>, tenantId: string, reference: string): Promise<string[]> {
  const { rows } = await sql<{ order_id: string }>`
    SELECT order_id FROM ledger_transfers
      WHERE tenant_id = ${tenantId} AND kind IN ('late_capture', 'mismatch') AND business_id = ${reference}
    UNION SELECT order_id FROM refunds WHERE tenant_id = ${tenantId} AND provider_refund_id = ${reference}
    UNION SELECT order_id FROM disputes WHERE tenant_id = ${tenantId} AND dispute_id = ${reference}`.execute(db)
  return rows.map(({ order_id }) => order_id)
}

/** The provider's words shown to a person have been dealt with. False where the order is still open, or has no flag. */
export async function clearFlag(db: Kysely<Tables>, tenantId: string, orderId: string): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('orders')
    .set({ reconcile_reason: null })
    .where('tenant_id', '=', tenantId)
    .where('order_id', '=', orderId)
    .where('status', 'in', ['authorized', 'paid', 'payment_failed', 'canceled'])
    .where('reconcile_reason', 'is not', null)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

/** Payments of the order whose money waits in `suspense` for a person, with how much of it. */
export async function suspended(
  db: Kysely<Tables>,
  { tenant_id, order_id }: Pick<Order, 'tenant_id' | 'order_id'>,
): Promise<{ intentId: string; amount: number; currency: string }[]> {
  const rows = await db
    .selectFrom('ledger_transfers as booked')
    .select(['booked.business_id', 'booked.amount', 'booked.currency'])
    .where('booked.tenant_id', '=', tenant_id)
    .where('booked.order_id', '=', order_id)
    .where('booked.kind', '=', 'mismatch')
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('ledger_transfers as resolved')
            .select('resolved.transfer_id')
            .whereRef('resolved.tenant_id', '=', 'booked.tenant_id')
            .where('resolved.kind', '=', 'mismatch_resolved')
            .whereRef('resolved.business_id', '=', 'booked.business_id'),
        ),
      ),
    )
    .execute()
  return rows.map(({ business_id, amount, currency }) => ({ intentId: business_id, amount, currency }))
}
