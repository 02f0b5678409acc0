/**
 * Drives a refund on until it has ended. The worker and a client's repeat use this.
 *
 *   account changed       ask nothing: somebody else's books would answer; a person decides
 *   known there           read it by its id
 *   may still be sent     send it again, same key and parameters: it is replayed, or is the first to arrive
 *   otherwise             search the payment's refunds for ours
 *
 * What is still not there when nothing that was sent can arrive any more has failed, and frees its part of the budget.
 */
import { randomUUID } from 'node:crypto'
import type { Deps } from '../../deps.ts'
import type { Order } from '../../domain/order.ts'
import type { Refund } from '../../domain/refund.ts'
import type { ProviderRefund } from '../../provider/port.ts'
import { checkpoint } from '../../runtime/checkpoint.ts'
import { readOrder, recordCalls, recordFacts } from '../../store/orders.ts'
import { type TakenRefund, takeRefundLease } from '../../store/refund-claims.ts'
import { readRefund } from '../../store/refunds.ts'
import { ask, type Deadline, providerForgetsKeysMs, send, targetOf } from '../saga/provider-calls.ts'
import { stillConfigured } from '../saga/provider-target.ts'
import { readProviderRefunds } from './provider-refunds.ts'
import { leaveInDoubt, settleRefund } from './refund-settlement.ts'

/** A call that was given up may still arrive: only this long after the last one does a refund that is not found count
 * as never made. */
const absenceCountsAfterMs = 10 * 60_000

/** One attempt at it; resolves with the refund as it stands then, or null where somebody else works on it. The caller has
 * claimed the ask. */
export async function driveRefund(deps: Deps, refund: Refund, deadline: Deadline): Promise<Refund | null> {
  const order = await orderOf(deps, refund)
  const configured = await stillConfigured(deps, order)
  if (configured === null) return refund
  if (!configured) {
    await recordFacts(deps.db, order, { transfers: [], jobs: [], reconcileReason: 'provider_account_changed' })
    return refund
  }
  if (refund.provider_refund_id !== null) return readThere(deps, order, refund, refund.provider_refund_id, deadline)
  const leaseToken = randomUUID()
  const { leaseMs } = deps.config
  const taken = await takeRefundLease(deps.db, refund, leaseToken, {
    leaseMs,
    // The merchant wants it, however late; but never when the provider could have forgotten the key, which would make it a
    // second refund.
    sendsForMs: providerForgetsKeysMs,
  })
  if (taken === null) return endedMeanwhile(deps, refund)
  return taken.maySend
    ? sendRefund(deps, order, taken.refund, leaseToken, deadline)
    : search(deps, order, taken, leaseToken, deadline)
}

/** Sends the refund under a lease and settles it by the answer. */
export async function sendRefund(
  deps: Deps,
  order: Order,
  refund: Refund,
  leaseToken: string,
  deadline: Deadline,
): Promise<Refund> {
  if (order.intent_id === null) throw new Error(`paid order ${order.order_id} without a payment`)
  const request = {
    target: targetOf(order),
    intentId: order.intent_id,
    amount: refund.amount,
    currency: refund.currency,
    providerKey: `refund:${refund.refund_id}`,
    metadata: { tenant: refund.tenant_id, order: refund.order_id, refund: refund.refund_id },
  }
  await checkpoint('refund.sending')
  const { outcome, calls } = await send(deps, deadline, (limits) => deps.provider.refund(request, limits))
  await checkpoint('refund.sent')
  const context = { calls, leaseToken, wasSent: true as const }
  if (outcome.kind === 'absent') {
    // Not what making a refund answers; the search tells.
    return (await leaveInDoubt(deps, refund, 'unreadable_answer', context)).refund
  }
  const settled = await settleRefund(deps, refund, outcome, context)
  // Whatever the provider has refunded otherwise is the likely cause.
  if (outcome.kind === 'rejected') await readProviderRefunds(deps, order, settled.refund.refund_id)
  return settled.refund
}

async function readThere(
  deps: Deps,
  order: Order,
  refund: Refund,
  providerRefundId: string,
  deadline: Deadline,
): Promise<Refund> {
  const { outcome, calls } = await ask(deps, deadline, (limits) =>
    deps.provider.retrieveRefund(targetOf(order), providerRefundId, limits),
  )
  await checkpoint('refund.asked')
  if ('refund' in outcome) return (await settleRefund(deps, refund, outcome, { calls })).refund
  await recordCalls(deps.db, refund.tenant_id, refund.order_id, calls)
  return refund
}

async function search(
  deps: Deps,
  order: Order,
  { refund, clock }: TakenRefund,
  leaseToken: string,
  deadline: Deadline,
): Promise<Refund> {
  const { outcome, calls } = await ask(deps, deadline, (limits) =>
    deps.provider.listRefunds(targetOf(order), order.intent_id ?? '', limits),
  )
  await checkpoint('refund.asked')
  const context = { calls, leaseToken }
  const stay = async (reason: string) => (await leaveInDoubt(deps, refund, reason, context)).refund
  if (outcome.kind === 'not_sent') return stay('not_reached')
  if (outcome.kind === 'unknown') return stay(outcome.reason)
  const [found, ...others] = outcome.items.filter((item) => isOurs(item, refund))
  if (others.length > 0) return stay('several_refunds')
  if (found !== undefined) {
    return (await settleRefund(deps, refund, { kind: found.status, refund: found }, context)).refund
  }
  const absenceCountsFrom = new Date(refund.last_send_before.getTime() + absenceCountsAfterMs)
  if (!clock.hasReached(absenceCountsFrom)) return stay(refund.doubt ?? 'not_found_yet')
  return (await settleRefund(deps, refund, { kind: 'gone' }, context)).refund
}

function isOurs({ metadata }: ProviderRefund, refund: Refund): boolean {
  return metadata.refund === refund.refund_id && metadata.tenant === refund.tenant_id
}

async function orderOf(deps: Deps, refund: Refund): Promise<Order> {
  const order = await readOrder(deps.db, refund.tenant_id, refund.order_id)
  if (order === null) throw new Error(`refund without its order ${refund.order_id}`)
  return order
}

async function endedMeanwhile(deps: Deps, refund: Refund): Promise<Refund | null> {
  const now = await readRefund(deps.db, refund.tenant_id, refund.refund_id)
  return now?.status === 'pending' ? null : now
}
