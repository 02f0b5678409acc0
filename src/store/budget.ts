/**
 * One budget per order: refunds that have not failed, those in doubt included, and disputes that count draw on what was
 * captured. It is reserved and freed under the order's row lock, and always counted anew from the rows.
 */
import { type Kysely, sql, type Transaction } from 'kysely'
import type { Order } from '../domain/order.ts'
import type { Tables } from './tables.ts'

/** The order's row, locked until the transaction ends; null where there is none. */
export async function lockOrder(tx: Transaction<Tables>, tenantId: string, orderId: string): Promise<Order | null> {
  const row = await tx
    .selectFrom('orders')
    .selectAll()
    .where('tenant_id', '=', tenantId)
    .where('order_id', '=', orderId)
    .forNoKeyUpdate()
    .executeTakeFirst()
  return row ?? null
}

/**
 * Counts the order's budget anew after a change to its refunds or disputes; needs `lockOrder` before it. The provider may
 * have let through more than was captured (a dispute over what is already refunded): then the budget is used up and
 * the order is flagged for a person, until it fits again.
 */
export async function recountBudget(tx: Kysely<Tables>, tenantId: string, orderId: string): Promise<Order> {
  const { rows } = await sql<Order>`
    UPDATE orders o SET
      refunded = least(spent.refunds, o.captured),
      disputed_amount = least(spent.disputes, o.captured - least(spent.refunds, o.captured)),
      disputed = spent.disputes > 0,
      reconcile_reason = CASE
        WHEN spent.refunds + spent.disputes > o.captured THEN coalesce(o.reconcile_reason, ${overspent})
        WHEN o.reconcile_reason = ${overspent} THEN NULL
        ELSE o.reconcile_reason END,
      updated_at = clock_timestamp()
    FROM (SELECT
        (SELECT coalesce(sum(r.amount), 0)::bigint FROM refunds r
         WHERE r.tenant_id = ${tenantId} AND r.order_id = ${orderId} AND r.status IN ('pending', 'succeeded')) AS refunds,
        (SELECT coalesce(sum(d.amount), 0)::bigint FROM disputes d
         WHERE d.tenant_id = ${tenantId} AND d.order_id = ${orderId} AND d.counts) AS disputes) spent
    WHERE o.tenant_id = ${tenantId} AND o.order_id = ${orderId}
    RETURNING o.*`.execute(tx)
  const [order] = rows
  if (order === undefined) throw new Error(`no order ${orderId} to count the budget of`)
  return order
}

const overspent = 'refunds_exceed_captured'
