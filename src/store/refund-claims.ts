/** Who works on a refund: its key and its part of the budget claimed, its lease taken. Locks: order, attempt, refund. */
import { type Kysely, type RawBuilder, sql, type Transaction } from 'kysely'
import type { RequestDigest } from '../domain/digest.ts'
import type { Order } from '../domain/order.ts'
import { type Refund, refundable } from '../domain/refund.ts'
import { transaction } from '../runtime/database.ts'
import { lockOrder, recountBudget } from './budget.ts'
import { DatabaseClock } from './database-clock.ts'
import { reopenErasure } from './erasures.ts'
import { lockRefund } from './refunds.ts'
import type { Tables } from './tables.ts'

interface RefundClaimItem {
  tenantId: string
  orderId: string
  key: string
  refundId: string
  /** Random; whoever holds it decides for the attempt while the lease lasts. */
  leaseToken: string
  leaseMs: number
  /** Minor units; what is left where it is not given. */
  amount?: number
  reason?: string
  digest: RequestDigest
}

type RefundClaim =
  | { kind: 'claimed'; refund: Refund }
  /** The key has an attempt. */
  | { kind: 'known' }
  /** The rest: nothing is stored and the key is free. */
  | { kind: 'not_found' }
  | { kind: 'not_paid'; order: Order }
  | { kind: 'exceeds'; order: Order; refundable: number }

/** A refund whose lease was taken, with the clock that its times are of. */
export interface TakenRefund {
  refund: Refund
  maySend: boolean
  clock: DatabaseClock
}

/** Takes the key and reserves the amount on the order's budget, before the provider is asked. */
export async function claimRefund(db: Kysely<Tables>, item: RefundClaimItem): Promise<RefundClaim> {
  const { tenantId, orderId, key, refundId } = item
  return transaction(db, async (tx) => {
    const order = await lockOrder(tx, tenantId, orderId)
    if (order === null) return { kind: 'not_found' }
    const known = await tx
      .selectFrom('attempts')
      .select('key')
      .where('tenant_id', '=', tenantId)
      .where('key', '=', key)
      .executeTakeFirst()
    if (known !== undefined) return { kind: 'known' }
    if (order.status !== 'paid') return { kind: 'not_paid', order }
    const left = refundable(order)
    const amount = item.amount ?? left
    if (amount > left || amount === 0) return { kind: 'exceeds', order, refundable: left }

    const leaseEnds = sql<Date>`clock_timestamp() + ${item.leaseMs}::float8 * interval '1 ms'`
    const taken = await tx
      .insertInto('attempts')
      .values({
        tenant_id: tenantId,
        key,
        kind: 'refund',
        object_id: refundId,
        state: 'running',
        lease_token: item.leaseToken,
        lease_expires_at: leaseEnds,
        digest: Buffer.from(item.digest.digest, 'base64'),
        digest_tags: JSON.stringify(item.digest.tags),
        digest_secret_id: item.digest.secretId,
      })
      .onConflict((conflict) => conflict.columns(['tenant_id', 'key']).doNothing())
      .returning('key')
      .executeTakeFirst()
    if (taken === undefined) return { kind: 'known' }
    const refund = await tx
      .insertInto('refunds')
      .values({
        tenant_id: tenantId,
        refund_id: refundId,
        order_id: orderId,
        attempt_key: key,
        amount,
        currency: order.currency,
        reason: item.reason ?? null,
        status: 'pending',
        provider_refund_id: null,
        last_send_before: leaseEnds,
        next_ask_at: leaseEnds,
      })
      .returningAll()
      .executeTakeFirstOrThrow()
    await recountBudget(tx, tenantId, orderId)
    if (refund.reason !== null) await reopenErasure(tx, tenantId, orderId)
    return { kind: 'claimed', refund }
  })
}

/**
 * Takes the lease of a refund in doubt where nobody holds it. Where its owner died or froze, it counts as perhaps sent from
 * then on. It may be sent under the lease (`maySend`) for `sendsForMs` after it was made, where that is not pointless. Null
 * where somebody holds the lease or there is no doubt any more.
 */
export async function takeRefundLease(
  db: Kysely<Tables>,
  refund: Refund,
  leaseToken: string,
  { leaseMs, sendsForMs }: { leaseMs: number; sendsForMs: number },
): Promise<TakenRefund | null> {
  const { tenant_id, refund_id } = refund
  return transaction(db, async (tx) => {
    const attempt = await lockAttempt(tx, refund)
    if (attempt === null || !attempt.isFree || attempt.state === 'resumable') return null
    const { status } = await lockRefund(tx, tenant_id, refund_id)
    if (status !== 'pending') return null
    return own(tx, refund, leaseToken, leaseMs, {
      maySend: sql`(NOT send_is_pointless AND created_at + ${sendsForMs}::float8 * interval '1 ms' > now())`,
      ...(attempt.state === 'running' ? { maybe_sent: true } : {}),
    })
  })
}

/** Goes on with a refund that surely was never sent, under a new lease: reserves its amount again. */
export async function resumeRefund(
  db: Kysely<Tables>,
  refund: Refund,
  leaseToken: string,
  leaseMs: number,
): Promise<{ kind: 'resumed'; refund: Refund } | { kind: 'taken' } | Extract<RefundClaim, { kind: 'exceeds' }>> {
  const { tenant_id, refund_id, order_id } = refund
  return transaction(db, async (tx) => {
    const order = await lockOrder(tx, tenant_id, order_id)
    const attempt = await lockAttempt(tx, refund)
    const { status } = await lockRefund(tx, tenant_id, refund_id)
    if (order === null || attempt?.state !== 'resumable' || status !== 'unsent') return { kind: 'taken' }
    const left = refundable(order)
    if (refund.amount > left) return { kind: 'exceeds', order, refundable: left }
    const { refund: resumed } = await own(tx, refund, leaseToken, leaseMs, { maySend: sql`true`, status: 'pending' })
    await recountBudget(tx, tenant_id, order_id)
    return { kind: 'resumed', refund: resumed }
  })
}

/** The refund's attempt, locked; null where it was made in the dashboard. `isFree`: nobody holds its lease. */
export async function lockAttempt(
  tx: Transaction<Tables>,
  refund: Refund,
): Promise<{ state: string; leaseToken: string | null; isFree: boolean } | null> {
  if (refund.attempt_key === null) return null
  const row = await tx
    .selectFrom('attempts')
    .select(['state', 'lease_token', sql<boolean>`lease_expires_at > clock_timestamp()`.as('held')])
    .where('tenant_id', '=', refund.tenant_id)
    .where('key', '=', refund.attempt_key)
    .forNoKeyUpdate()
    .executeTakeFirst()
  if (row === undefined) return null
  const running = row.state === 'running'
  return {
    state: row.state,
    leaseToken: running ? row.lease_token : null,
    isFree: row.state !== 'settled' && !(running && row.held),
  }
}

/** Gives the attempt to the holder of the token. */
async function own(
  tx: Transaction<Tables>,
  refund: Refund,
  leaseToken: string,
  leaseMs: number,
  { maySend, ...set }: { maySend: RawBuilder<boolean>; status?: 'pending'; maybe_sent?: true },
): Promise<TakenRefund> {
  const leaseEnds = sql<Date>`clock_timestamp() + ${leaseMs}::float8 * interval '1 ms'`
  await tx
    .updateTable('attempts')
    .set({ state: 'running', lease_token: leaseToken, lease_expires_at: leaseEnds })
    .where('tenant_id', '=', refund.tenant_id)
    .where('key', '=', refund.attempt_key)
    .execute()
  const { may_send, now, ...taken } = await tx
    .updateTable('refunds')
    .set({
      ...set,
      last_send_before: sql<Date>`CASE WHEN ${maySend} THEN ${leaseEnds} ELSE last_send_before END`,
      next_ask_at: sql<Date>`greatest(next_ask_at, ${leaseEnds})`,
    })
    .where('tenant_id', '=', refund.tenant_id)
    .where('refund_id', '=', refund.refund_id)
    .returningAll()
    .returning([maySend.as('may_send'), sql<Date>`clock_timestamp()`.as('now')])
    .executeTakeFirstOrThrow()
  return { refund: taken, maySend: may_send, clock: new DatabaseClock(now) }
}
