/** What is kept of money that arrived for an order which does not wait for it. */
import type { Kysely, Transaction } from 'kysely'
import type { Order } from '../domain/order.ts'
import type { Transfer } from '../domain/posting.ts'
import type { Tables } from './tables.ts'

/** Whether the payment's late money has gone back and been booked. The ledger keeps that for good. */
export async function lateRefundIsBooked(db: Kysely<Tables>, tenantId: string, intentId: string): Promise<boolean> {
  const row = await db
    .selectFrom('ledger_transfers')
    .select('transfer_id')
    .where('tenant_id', '=', tenantId)
    .where('kind', '=', 'late_refund')
    .where('business_id', '=', intentId)
    .executeTakeFirst()
  return row !== undefined
}

export async function bookLateRefund(tx: Transaction<Tables>, order: Order, transfer: Transfer): Promise<void> {
  await tx
    .insertInto('ledger_transfers')
    .values({ ...transfer, tenant_id: order.tenant_id, order_id: order.order_id })
    .onConflict((conflict) => conflict.constraint('transfer_per_business_fact').doNothing())
    .execute()
}

/** Shows the order to a person, for this reason. */
export async function flagOrder(db: Kysely<Tables>, order: Order, reason: string): Promise<void> {
  await db
    .updateTable('orders')
    .set({ reconcile_reason: reason })
    .where('tenant_id', '=', order.tenant_id)
    .where('order_id', '=', order.order_id)
    .execute()
}
