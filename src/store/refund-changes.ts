/** Changes of refunds, each in one transaction with what follows from it. Locks: order, attempt, refund. */
import { type Kysely, sql, type Transaction } from 'kysely'
import type { Order } from '../domain/order.ts'
import type { Transfer } from '../domain/posting.ts'
import { mayBecome, type Refund, type RefundStatus } from '../domain/refund.ts'
import type { ProviderCall } from '../provider/port.ts'
import { transaction } from '../runtime/database.ts'
import { lockOrder, recountBudget } from './budget.ts'
import { enqueueJobs } from './jobs.ts'
import { insertTransfers } from './ledger.ts'
import { type Job, recordCalls } from './orders.ts'
import { lockAttempt } from './refund-claims.ts'
import { lockRefund } from './refunds.ts'
import type { Tables } from './tables.ts'

/** What becomes of a refund. Applied only where its status allows it, so that stale or repeated news changes nothing. */
export interface RefundChange {
  to: RefundStatus
  /** The decision was made from ignorance: apply it only while this lease holds. */
  leaseToken?: string
  providerRefundId?: string
  /** As the provider has it, minor units. */
  amount?: number
  failureCode?: string
  /** Why it is not settled yet. */
  doubt: string | null
  maybeSent?: boolean
  sendIsPointless?: boolean
  /** It was sent under the lease, and will not be sent under it any more. */
  sendsHaveEnded?: boolean
  /** When to ask again, ms; absent: as claimed. */
  askInMs?: number
  attemptState: 'resumable' | 'open' | 'settled'
  calls: readonly ProviderCall[]
  /** What follows, told from the row before and after. */
  follow(before: Refund, after: Refund): RefundEffects
}

export interface RefundEffects {
  transfers: readonly Transfer[]
  jobs: readonly Job[]
  /** Kept for repeats where the attempt is settled by this. */
  answer: { status: number; body: string } | null
  /** Set on the order for a person to look at. */
  flag: string | null
}

export interface RefundChanged {
  applied: boolean
  refund: Refund
}

/** Applies a change. The calls are kept in any case: they happened. */
export async function changeRefund(db: Kysely<Tables>, refund: Refund, change: RefundChange): Promise<RefundChanged> {
  const { tenant_id, refund_id, order_id } = refund
  return transaction(db, async (tx) => {
    const order = (await lockOrder(tx, tenant_id, order_id)) as Order
    const attempt = await lockAttempt(tx, refund)
    const before = await lockRefund(tx, tenant_id, refund_id)
    await recordCalls(tx, tenant_id, order_id, change.calls)
    const isOwner = change.leaseToken === undefined || attempt?.leaseToken === change.leaseToken
    if (!isOwner || !isNewsFor(before, change)) return { applied: false, refund: before }

    const after = await tx
      .updateTable('refunds')
      .set({
        status: change.to,
        provider_refund_id: change.providerRefundId ?? before.provider_refund_id,
        amount: change.amount ?? before.amount,
        failure_code: change.failureCode ?? before.failure_code,
        doubt: change.doubt,
        maybe_sent: change.maybeSent ?? before.maybe_sent,
        send_is_pointless: change.sendIsPointless ?? before.send_is_pointless,
        ...(change.sendsHaveEnded ? { last_send_before: sql<Date>`clock_timestamp()` } : {}),
        ...(change.askInMs === undefined
          ? {}
          : { next_ask_at: sql`clock_timestamp() + ${change.askInMs}::float8 * interval '1 ms'` }),
        updated_at: sql`clock_timestamp()`,
      })
      .where('tenant_id', '=', tenant_id)
      .where('refund_id', '=', refund_id)
      .returningAll()
      .executeTakeFirstOrThrow()
    const effects = change.follow(before, after)
    await tx
      .updateTable('attempts')
      .set({
        state: change.attemptState,
        lease_token: null,
        lease_expires_at: null,
        ...(change.attemptState === 'settled'
          ? {
              settled_at: sql`now()`,
              response_status: effects.answer?.status ?? null,
              response_body: effects.answer?.body ?? null,
            }
          : {}),
      })
      .where('tenant_id', '=', tenant_id)
      .where('key', '=', refund.attempt_key)
      .where('state', '<>', 'settled')
      .execute()
    await writeEffects(tx, order, effects)
    return { applied: true, refund: after }
  })
}

/** Takes in a refund that the provider tells of and that has no row yet: made in its dashboard. Null where there is one
 * already. */
export async function adoptRefund(
  db: Kysely<Tables>,
  order: Order,
  found: Pick<Refund, 'refund_id' | 'amount' | 'currency' | 'status' | 'created_at'> & { provider_refund_id: string },
  askInMs: number,
  follow: (refund: Refund) => RefundEffects,
): Promise<Refund | null> {
  const { tenant_id, order_id } = order
  return transaction(db, async (tx) => {
    await lockOrder(tx, tenant_id, order_id)
    const refund = await tx
      .insertInto('refunds')
      .values({
        ...found,
        tenant_id,
        order_id,
        attempt_key: null,
        reason: null,
        maybe_sent: true,
        last_send_before: found.created_at,
        next_ask_at: sql`clock_timestamp() + ${askInMs}::float8 * interval '1 ms'`,
      })
      .onConflict((conflict) => conflict.columns(['tenant_id', 'provider_refund_id']).doNothing())
      .returningAll()
      .executeTakeFirst()
    if (refund === undefined) return null
    await writeEffects(tx, order, follow(refund))
    return refund
  })
}

async function writeEffects(tx: Transaction<Tables>, order: Order, effects: RefundEffects): Promise<void> {
  const { tenant_id, order_id } = order
  await recountBudget(tx, tenant_id, order_id)
  await insertTransfers(tx, order, effects.transfers)
  await enqueueJobs(tx, tenant_id, effects.jobs)
  if (effects.flag === null) return
  await tx
    .updateTable('orders')
    .set({ reconcile_reason: sql`coalesce(reconcile_reason, ${effects.flag})` })
    .where('tenant_id', '=', tenant_id)
    .where('order_id', '=', order_id)
    .execute()
}

function isNewsFor(before: Refund, change: RefundChange): boolean {
  const bound = before.provider_refund_id
  if (bound !== null && change.providerRefundId !== undefined && bound !== change.providerRefundId) return false
  return mayBecome(before, change.to)
}
