/** What is kept of money that arrived for an order which does not wait for it. */
import type { Kysely, Transaction } from 'kysely'
import type { Order } from '../domain/order.ts'
import type { Transfer } from '../domain/posting.ts'
import { transaction } from '../runtime/database.ts'
import { enqueueJobs, requeueJob } from './jobs.ts'
import type { Tables } from './tables.ts'

/** What the ledger says of a payment's late money, in minor units. */
interface LateBalance {
  /** Booked as given back, less what was booked as come back. */
  returned: number
  reversals: number
}

export async function lateBalance(db: Kysely<Tables>, order: Order, intentId: string): Promise<LateBalance> {
  const rows = await db
    .selectFrom('ledger_transfers')
    .select(['kind', 'amount', 'business_id'])
    .where('tenant_id', '=', order.tenant_id)
    .where('order_id', '=', order.order_id)
    .where('kind', 'in', ['late_refund', 'late_refund_reversal'])
    .execute()
  const ofPayment = rows.filter(({ business_id }) => business_id.split(':')[0] === intentId)
  const reversed = ofPayment.filter(({ kind }) => kind === 'late_refund_reversal')
  return {
    returned: ofPayment.reduce((sum, { kind, amount }) => sum + (kind === 'late_refund' ? amount : -amount), 0),
    reversals: reversed.length,
  }
}

export async function bookLate(db: Kysely<Tables>, order: Order, transfer: Transfer): Promise<void> {
  await db
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

/**
 * Has the refund of a payment's late money looked at again. `not_late`: the payment brought none. `running`: it is being
 * looked at this moment, perhaps too early to see the news.
 */
export function lookAtLateRefund(
  db: Kysely<Tables>,
  order: Order,
  intentId: string,
): Promise<'queued' | 'not_late' | 'running'> {
  return transaction(db, async (tx: Transaction<Tables>) => {
    const captured = await tx
      .selectFrom('ledger_transfers')
      .select(['amount', 'currency'])
      .where('tenant_id', '=', order.tenant_id)
      .where('kind', '=', 'late_capture')
      .where('business_id', '=', intentId)
      .executeTakeFirst()
    if (captured === undefined) return 'not_late'
    const topic = 'refund_late_payment'
    const payload = { order_id: order.order_id, ...captured }
    await enqueueJobs(tx, order.tenant_id, [{ topic, business_id: intentId, payload }])
    return (await requeueJob(tx, order.tenant_id, topic, intentId)) === null ? 'running' : 'queued'
  })
}
