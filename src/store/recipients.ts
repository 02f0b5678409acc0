/** Whom an order's email goes to. Read when it is sent and kept nowhere else. */
import type { Kysely } from 'kysely'
import type { Order } from '../domain/order.ts'
import type { Tables } from './tables.ts'

interface Recipient {
  address: string
  name: string | null
  /** The tenant's name. */
  shop: string
  order: Pick<Order, 'order_id' | 'lines' | 'total' | 'captured' | 'currency'>
}

/** Null where the customer's data has been erased. */
export async function recipientOf(db: Kysely<Tables>, tenantId: string, orderId: string): Promise<Recipient | null> {
  const row = await db
    .selectFrom('orders as o')
    .innerJoin('customers as c', (join) =>
      join.onRef('c.tenant_id', '=', 'o.tenant_id').onRef('c.customer_id', '=', 'o.customer_id'),
    )
    .innerJoin('tenants as t', 't.tenant_id', 'o.tenant_id')
    .select(['o.order_id', 'o.lines', 'o.total', 'o.captured', 'o.currency', 'c.email', 'c.name', 't.name as shop'])
    .where('o.tenant_id', '=', tenantId)
    .where('o.order_id', '=', orderId)
    .executeTakeFirst()
  if (row === undefined || row.email === null) return null
  const { email, name, shop, ...order } = row
  return { address: email, name, shop, order }
}
