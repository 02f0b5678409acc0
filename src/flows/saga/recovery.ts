/**
 * Drives an open order on until it is definite. The recovery worker, a client's repeat, a notification, expiry, a
 * customer who gives up and an operator all use this.
 *
 *   account changed      ask nothing: somebody else's books would answer; a person decides
 *   surely never sent    where it waits too long or is given up, it ends here; otherwise only the customer sends
 *   may still send       send the charge again, same key and parameters: it is replayed, or is the first to arrive
 *   otherwise            read the payment by its id, or search the provider's list for it
 *
 * A definite answer settles, whoever brings it. What failed or waits too long is closed at the provider first and then
 * here. Absence counts only when nothing that was sent can still arrive. Everything else goes on waiting.
 */
import { randomUUID } from 'node:crypto'
import type { Deps } from '../../deps.ts'
import type { Order } from '../../domain/order.ts'
import type { CallLimits, CallResult, PaymentOutcome, PaymentSearch, ProviderCall } from '../../provider/port.ts'
import { checkpoint } from '../../runtime/checkpoint.ts'
import { readAttempts, takeLease } from '../../store/attempts.ts'
import type { ClaimedOrder } from '../../store/order-json.ts'
import { type Cause, readOrder, recordCalls } from '../../store/orders.ts'
import { whoGaveUp } from '../../store/who-gave-up.ts'
import { ask, charge, type Deadline, targetOf } from './provider-calls.ts'
import { stillConfigured } from './provider-target.ts'
import { answerAsItStands, giveBackUnsent, leaveOpen, type SettleResult, settle, settleUnsent } from './settlement.ts'

/** A call that was given up may still arrive, and a list may lag: only this long after the last send does a payment that
 * is not found count as absent. */
export const absenceCountsAfterMs = 10 * 60_000
/** Payments are searched this much around the time in which they can have been sent. */
const searchMarginMs = 5 * 60_000

export interface Drive {
  cause: Cause
  /** The request, event, worker run or operator. */
  actor: string
  /** Until when this caller may send the charge again, by the database's clock. */
  sendUntil: Date
  /** May send what surely was never sent: only the customer's own repeat may. */
  maySendUnsent: boolean
  deadline: Deadline
}

interface Lease {
  token: string
  /** What the attempt was before it was taken. */
  from: 'running' | 'resumable' | 'open'
}

/** Takes the lease of an order's attempt; null where somebody holds it or the order has ended. `maySend`: the charge may
 * be sent under it. */
export async function takeOver(
  deps: Deps,
  tenantId: string,
  orderId: string,
  maySend: boolean,
): Promise<{ order: ClaimedOrder; lease: Lease } | null> {
  await checkpoint('recovery.taking_over')
  const token = randomUUID()
  const taken = await takeLease(deps.pool, tenantId, orderId, token, { leaseMs: deps.config.leaseMs, maySend })
  return taken === null ? null : { order: taken.order, lease: { token, from: taken.from } }
}

/** One attempt at it; resolves with where the order stands then. The caller has claimed the ask, or holds the lease. */
export async function drive(deps: Deps, claimed: ClaimedOrder, by: Drive, held?: Lease): Promise<SettleResult> {
  // A pending order belongs to whoever holds its lease; one that died may have sent.
  const taken =
    held === undefined && claimed.status === 'pending'
      ? await takeOver(deps, claimed.tenant_id, claimed.order_id, true)
      : { order: claimed, lease: held }
  if (taken === null) return asItStands(deps, claimed, by.actor)
  return new Driving(deps, taken.order, by, taken.lease).run()
}

class Driving {
  readonly #deps: Deps
  readonly #by: Drive
  readonly #calls: ProviderCall[] = []
  #order: ClaimedOrder
  #lease: Lease | undefined

  constructor(deps: Deps, order: ClaimedOrder, by: Drive, lease: Lease | undefined) {
    this.#deps = deps
    this.#order = order
    this.#by = by
    this.#lease = lease
  }

  async run(): Promise<SettleResult> {
    const configured = await stillConfigured(this.#deps, this.#order)
    if (configured === null) return this.#stay('not_reached')
    if (!configured) return this.#stay('provider_account_changed')

    if (this.#maySend || (this.#unsent && this.#closing)) {
      if (!(await this.#own(this.#maySend))) return this.#asItStands()
      // The row may have moved on until the lease was taken, so it is asked again.
      if (this.#maySend) return this.#send()
      if (this.#unsent && this.#closing) return this.#endWithoutPayment()
    }
    if (this.#unsent) {
      // There is nothing to find, and whether to send it is the customer's to say; unless its last owner died sending.
      if (!(await this.#own(false))) return this.#asItStands()
      if (this.#unsent) return this.#stay('not_sent')
    }
    return this.#lookUp()
  }

  /** Surely nothing was ever sent for it. */
  get #unsent(): boolean {
    return !this.#order.maybe_sent && this.#order.intent_id === null
  }

  get #givenUp(): boolean {
    return this.#order.cancel_requested_at !== null
  }

  get #waitedTooLong(): boolean {
    return this.#order.clock.hasReached(this.#order.expires_at)
  }

  get #closing(): boolean {
    return this.#givenUp || this.#waitedTooLong
  }

  get #maySend(): boolean {
    const { status, intent_id, send_is_pointless, parameter_version } = this.#order
    return (
      !this.#closing &&
      status !== 'requires_action' &&
      intent_id === null &&
      !send_is_pointless &&
      // A process that is older than the claim cannot build its parameters.
      parameter_version <= this.#deps.provider.versions.parameters &&
      !this.#order.clock.hasReached(this.#by.sendUntil) &&
      (!this.#unsent || this.#by.maySendUnsent)
    )
  }

  async #send(): Promise<SettleResult> {
    await checkpoint('recovery.sending')
    const { outcome, calls } = await charge(this.#deps, this.#order, {
      ...this.#by.deadline,
      startUntilMs: this.#order.clock.hereMs(this.#by.sendUntil),
    })
    this.#calls.push(...calls)
    await checkpoint('recovery.sent')
    return this.#settle(outcome)
  }

  async #lookUp(): Promise<SettleResult> {
    const order = this.#order
    const outcome = await this.#ask((limits) =>
      order.intent_id === null
        ? this.#deps.provider.find(searchFor(order), limits)
        : this.#deps.provider.retrieve(targetOf(order), order.intent_id, limits),
    )
    await checkpoint('recovery.asked')
    switch (outcome.kind) {
      case 'incomplete':
        return this.#close(outcome.payment.intentId)
      case 'requires_action':
        return this.#closing ? this.#close(outcome.payment.intentId) : this.#settle(outcome)
      case 'authorized':
        return this.#givenUp ? this.#close(outcome.payment.intentId) : this.#settle(outcome)
      case 'absent':
        return this.#absent()
      case 'unknown':
        return this.#unknown(outcome)
      case 'not_sent':
        return this.#stay('not_reached')
      default:
        return this.#settle(outcome)
    }
  }

  /** It must not succeed any more: first at the provider, then here. */
  async #close(intentId: string): Promise<SettleResult> {
    // A fresh key each time: canceling twice is harmless, while a replayed failure would be for good.
    const key = `cancel:${intentId}:${randomUUID()}`
    const outcome = await this.#ask((limits) =>
      this.#deps.provider.cancel(targetOf(this.#order), intentId, key, limits),
    )
    await checkpoint('recovery.closed')
    switch (outcome.kind) {
      case 'succeeded':
      case 'authorized':
      case 'canceled':
      case 'declined':
        return this.#settle(outcome)
      case 'unknown':
        return this.#unknown(outcome)
      default:
        return this.#stay('not_closed')
    }
  }

  async #absent(): Promise<SettleResult> {
    const { intent_id, last_send_before, reconcile_reason, clock } = this.#order
    if (intent_id !== null) return this.#stay('payment_not_found')
    if (!clock.hasReached(new Date(last_send_before.getTime() + absenceCountsAfterMs))) {
      return this.#stay(reconcile_reason ?? 'not_found_yet')
    }
    if (!(await this.#own(false))) return this.#asItStands()
    // Whoever held the lease during the search may have sent, or learnt of a payment.
    if (this.#order.last_send_before > last_send_before || this.#order.intent_id !== null) {
      return this.#stay(reconcile_reason ?? 'not_found_yet')
    }
    return this.#endWithoutPayment()
  }

  async #endWithoutPayment(): Promise<SettleResult> {
    if (this.#lease === undefined) throw new Error('only whoever holds the lease may end an order unasked')
    return settleUnsent(this.#deps, this.#order, { ...(await this.#context()), leaseToken: this.#lease.token })
  }

  /** A doubtful answer is told where it is news: with a lease to give back, or which payment it is about. */
  #unknown(outcome: Extract<PaymentOutcome, { kind: 'unknown' }>): Promise<SettleResult> {
    const isNews = outcome.intentId !== null && this.#order.intent_id === null
    return isNews ? this.#settle(outcome) : this.#stay(outcome.reason)
  }

  /** Goes on waiting, for this reason; a lease is given back. */
  async #stay(reason: string): Promise<SettleResult> {
    const changed = reason === 'provider_account_changed'
    if (changed && this.#order.reconcile_reason !== reason) await this.#own(false)
    if (this.#lease === undefined) {
      const { tenant_id, order_id } = this.#order
      await recordCalls(this.#deps.db, tenant_id, order_id, this.#calls)
      return this.#asItStands()
    }
    const context = { ...(await this.#context()), leaseToken: this.#lease.token }
    return this.#unsent && !changed && this.#order.status === 'pending'
      ? giveBackUnsent(this.#deps, this.#order, context)
      : leaveOpen(this.#deps, this.#order, reason, context)
  }

  /** Whether this piece of work holds the lease, taking it if need be; then the order is as it stands under it. */
  async #own(maySend: boolean): Promise<boolean> {
    if (this.#lease === undefined) {
      const taken = await takeOver(this.#deps, this.#order.tenant_id, this.#order.order_id, maySend)
      if (taken !== null) {
        this.#order = taken.order
        this.#lease = taken.lease
      }
    }
    return this.#lease !== undefined
  }

  async #settle(outcome: Parameters<typeof settle>[2]): Promise<SettleResult> {
    return settle(this.#deps, this.#order, outcome, {
      ...(await this.#context()),
      ...(this.#lease === undefined ? {} : { leaseToken: this.#lease.token }),
    })
  }

  #asItStands(): Promise<SettleResult> {
    return asItStands(this.#deps, this.#order, this.#by.actor)
  }

  async #ask(call: (limits: CallLimits) => Promise<CallResult<PaymentOutcome>>): Promise<PaymentOutcome> {
    const { outcome, calls } = await ask(this.#deps, this.#by.deadline, call)
    this.#calls.push(...calls)
    return outcome
  }

  async #context(): Promise<{ cause: Cause; actor: string; calls: readonly ProviderCall[] }> {
    const { cause, actor } = this.#by
    const calls = this.#calls
    if (cause === 'operator' || (this.#givenUp && cause === 'customer')) return { cause, actor, calls }
    if (!this.#givenUp) return { cause: this.#waitedTooLong ? 'expiry' : cause, actor, calls }
    // Whoever is at it only finishes what another has begun.
    const who = await whoGaveUp(this.#deps.db, this.#order)
    return { cause: who.cause, actor: who.actor ?? actor, calls }
  }
}

/** Where a payment that was sent for an order must be, if it exists. */
export function searchFor(order: Order): PaymentSearch {
  return {
    target: targetOf(order),
    metadata: { tenant: order.tenant_id, order: order.order_id },
    createdFrom: new Date(order.created_at.getTime() - searchMarginMs),
    createdTo: new Date(order.last_send_before.getTime() + absenceCountsAfterMs + searchMarginMs),
  }
}

/** Somebody else works on it or has settled it: what a client would be told now. */
async function asItStands(deps: Deps, order: Order, requestId: string): Promise<SettleResult> {
  const attempt = (await readAttempts(deps.pool, order.tenant_id, [order.attempt_key])).get(order.attempt_key)
  const now = attempt?.order ?? (await readOrder(deps.db, order.tenant_id, order.order_id)) ?? order
  const answer = answerAsItStands(
    deps,
    { order: now, attemptState: attempt?.state ?? 'open', answer: attempt?.answer ?? null },
    requestId,
  )
  return { order: now, answer, applied: false }
}
