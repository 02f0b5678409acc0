/** Disputes: what is known of each, and what it takes out of its order's budget. Locks: order, dispute. */
import { type Kysely, sql } from 'kysely'
import type { Dispute, DisputeState } from '../domain/dispute.ts'
import type { Order } from '../domain/order.ts'
import type { Transfer } from '../domain/posting.ts'
import { transaction } from '../runtime/database.ts'
import { lockOrder, recountBudget } from './budget.ts'
import { enqueueJobs } from './jobs.ts'
import { insertTransfers } from './ledger.ts'
import type { Job } from './orders.ts'
import type { Tables } from './tables.ts'

/** What becomes of a dispute, told from what is known of it; null where that is nothing new. */
export type DisputeStep = (before: Dispute | null) => {
  after: DisputeState & Pick<Dispute, 'amount' | 'currency'>
  transfers: readonly Transfer[]
  jobs: readonly Job[]
} | null

/** Takes one step with everything that follows from it. `mismatch`: the dispute is about another order. */
export async function changeDispute(
  db: Kysely<Tables>,
  order: Order,
  disputeId: string,
  step: DisputeStep,
): Promise<'applied' | 'nothing_new' | 'mismatch'> {
  const { tenant_id, order_id } = order
  return transaction(db, async (tx) => {
    await lockOrder(tx, tenant_id, order_id)
    const before = await tx
      .selectFrom('disputes')
      .selectAll()
      .where('tenant_id', '=', tenant_id)
      .where('dispute_id', '=', disputeId)
      .forNoKeyUpdate()
      .executeTakeFirst()
    if (before !== undefined && before.order_id !== order_id) return 'mismatch'
    const taken = step(before ?? null)
    if (taken === null) return 'nothing_new'
    await tx
      .insertInto('disputes')
      .values({ ...taken.after, tenant_id, dispute_id: disputeId, order_id })
      .onConflict((conflict) =>
        conflict
          .columns(['tenant_id', 'dispute_id'])
          .doUpdateSet({ ...taken.after, updated_at: sql`clock_timestamp()` }),
      )
      .execute()
    await recountBudget(tx, tenant_id, order_id)
    await insertTransfers(tx, order, taken.transfers)
    await enqueueJobs(tx, tenant_id, taken.jobs)
    return 'applied'
  })
}
