/** What the news of orders is made from, for many orders of one tenant at once. */
import { type Kysely, sql } from 'kysely'
import type { Order, OrderStatus } from '../domain/order.ts'
import type { Tables } from './tables.ts'

/** By order id; unknown ones are missing. */
export async function readOrders(
  db: Kysely<Tables>,
  tenantId: string,
  orderIds: readonly string[],
): Promise<Map<string, Order>> {
  const rows = await db
    .selectFrom('orders')
    .selectAll()
    .where('tenant_id', '=', tenantId)
    .where('order_id', '=', sql<string>`ANY (${orderIds}::text[])`)
    .execute()
  return new Map(rows.map((order) => [order.order_id, order]))
}

/** Minor units of each refund, by its id; unknown ones are missing. */
export async function refundAmounts(
  db: Kysely<Tables>,
  tenantId: string,
  refundIds: readonly string[],
): Promise<Map<string, number>> {
  if (refundIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('refunds')
    .select(['refund_id', 'amount'])
    .where('tenant_id', '=', tenantId)
    .where('refund_id', '=', sql<string>`ANY (${refundIds}::text[])`)
    .execute()
  return new Map(rows.map(({ refund_id, amount }) => [refund_id, amount]))
}

/** The status that each order had before it came into `status`, by `<order id>:<status>`. */
export async function transitionsInto(
  db: Kysely<Tables>,
  tenantId: string,
  into: readonly { orderId: string; status: string }[],
): Promise<Map<string, OrderStatus>> {
  if (into.length === 0) return new Map()
  const rows = await db
    .selectFrom('order_transitions')
    .select(['order_id', 'from_status', 'to_status'])
    .where('tenant_id', '=', tenantId)
    .where('order_id', '=', sql<string>`ANY (${into.map(({ orderId }) => orderId)}::text[])`)
    .execute()
  return new Map(rows.map((row) => [`${row.order_id}:${row.to_status}`, row.from_status as OrderStatus]))
}
