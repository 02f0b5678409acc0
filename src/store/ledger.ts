/** The ledger: append only, each business fact once. */
import { type Kysely, sql, type Transaction } from 'kysely'
import type { Order } from '../domain/order.ts'
import type { Transfer } from '../domain/posting.ts'
import type { Tables } from './tables.ts'

export interface BookedTransfer extends Omit<Transfer, 'kind'> {
  kind: string
  order_id: string
  created_at: Date
}

/** Minor units; debits less credits, so that the balances of one currency sum to nothing. */
export interface Balance {
  account: string
  currency: string
  balance: number
}

/** Books transfers of an order in the caller's transaction; one that is booked already stays as it is. */
export async function insertTransfers(
  tx: Transaction<Tables>,
  order: Pick<Order, 'tenant_id' | 'order_id'>,
  transfers: readonly Transfer[],
): Promise<void> {
  if (transfers.length === 0) return
  const { tenant_id, order_id } = order
  await tx
    .insertInto('ledger_transfers')
    .values(transfers.map((transfer) => ({ ...transfer, tenant_id, order_id })))
    .onConflict((conflict) => conflict.constraint('transfer_per_business_fact').doNothing())
    .execute()
}

/** Newest first; one more than the page's limit where there is more. */
export function listTransfers(
  db: Kysely<Tables>,
  tenantId: string,
  page: { limit: number; after: string | null },
  orderId?: string,
): Promise<BookedTransfer[]> {
  let query = db.selectFrom('ledger_transfers').selectAll().where('tenant_id', '=', tenantId)
  if (orderId !== undefined) query = query.where('order_id', '=', orderId)
  if (page.after !== null) query = query.where('transfer_id', '<', page.after)
  return query
    .orderBy('transfer_id', 'desc')
    .limit(page.limit + 1)
    .execute() as Promise<BookedTransfer[]>
}

/** What every account of the tenant holds, or what one order has moved, by account and currency. */
export async function readBalances(db: Kysely<Tables>, tenantId: string, orderId?: string): Promise<Balance[]> {
  const ofOrder = orderId === undefined ? sql`` : sql`AND t.order_id = ${orderId}`
  const { rows } = await sql<Balance>`
    SELECT side.account, t.currency, sum(side.amount)::bigint AS balance
    FROM ledger_transfers t
    CROSS JOIN LATERAL (VALUES (t.debit_account, t.amount), (t.credit_account, -t.amount)) AS side(account, amount)
    WHERE t.tenant_id = ${tenantId} ${ofOrder}
    GROUP BY side.account, t.currency
    ORDER BY side.account, t.currency`.execute(db)
  return rows
}
