/** Whose wish it was that an order ends unpaid. */
import { type Kysely, sql } from 'kysely'
import type { Order } from '../domain/order.ts'
import type { Cause } from './orders.ts'
import type { Tables } from './tables.ts'

/**
 * Of an order that was given up: the operator whose decision was under way then, with the request of that decision; the end
 * of a run; otherwise the customer.
 */
export async function whoGaveUp(
  db: Kysely<Tables>,
  { tenant_id, order_id }: Pick<Order, 'tenant_id' | 'order_id'>,
): Promise<{ cause: Cause; actor: string | null }> {
  const { rows } = await sql<{ decision: string | null; closed_by: 'finalize' | 'expiry' | null }>`
    SELECT r.closed_by,
      (SELECT a.request_id FROM audit_entries a
       WHERE a.tenant_id = o.tenant_id AND a.order_id = o.order_id
         AND a.action IN ('decide_canceled', 'decide_payment_failed')
         AND o.cancel_requested_at BETWEEN a.created_at AND coalesce(a.ended_at, 'infinity')
       ORDER BY a.entry_id DESC LIMIT 1) AS decision
    FROM orders o
    LEFT JOIN runs r ON r.tenant_id = o.tenant_id AND r.order_id = o.order_id
    WHERE o.tenant_id = ${tenant_id} AND o.order_id = ${order_id}`.execute(db)
  const [row] = rows
  if (row?.decision != null) return { cause: 'operator', actor: row.decision }
  if (row?.closed_by != null) return { cause: row.closed_by === 'expiry' ? 'expiry' : 'merchant', actor: null }
  return { cause: 'customer', actor: null }
}
