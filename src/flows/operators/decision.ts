/**
 * A person decides what becomes of an order that cannot be settled by itself. The provider is asked first, always, and a
 * decision that its word contradicts is refused; what its word says for certain is settled on the way. Whatever moves
 * the order goes through the one settle.
 *
 *   paid                      only where the provider has it as paid
 *   payment_failed, canceled  only where no payment exists or can appear any more; what is unfinished there is closed first
 *   accept_captured           what was captured does not match the order; the order is paid with it
 *   refund_suspense           the same money goes back
 *   acknowledge               takes the flag off an order that has ended; nothing else changes
 */
import type { Deps } from '../../deps.ts'
import { mismatchOf } from '../../domain/judgement.ts'
import { isOpen, type Order } from '../../domain/order.ts'
import { Problem } from '../../domain/problem.ts'
import type { PaymentOutcome, ProviderCall, ProviderPayment } from '../../provider/port.ts'
import { checkpoint } from '../../runtime/checkpoint.ts'
import { clearFlag, suspended } from '../../store/admin-orders.ts'
import { claimAsk, readOrder, recordCalls, recordFacts, requestCancel } from '../../store/orders.ts'
import { ask, type Deadline, deadlineFor, targetOf } from '../saga/provider-calls.ts'
import { stillConfigured } from '../saga/provider-target.ts'
import { absenceCountsAfterMs, drive, searchFor, takeOver } from '../saga/recovery.ts'
import {
  acceptCaptured,
  endGivingBack,
  givingBack,
  type SettleContext,
  settle,
  settleUnsent,
} from '../saga/settlement.ts'
import { audited, auditedTransaction, type Operator } from './operator.ts'

export const decisions = [
  'paid',
  'payment_failed',
  'canceled',
  'accept_captured',
  'refund_suspense',
  'acknowledge',
] as const
type DecisionOutcome = (typeof decisions)[number]

export interface Decision {
  orderId: string
  outcome: DecisionOutcome
  /** The person's own words. */
  reason: string
}

/**
 * Resolves with the order as it stands then. Throws a `Problem`: `not_found`; `provider_disagrees`; `order_state_conflict`
 * where the order is not one that this can be decided of; `provider_unavailable` where it was not heard.
 */
export async function decideOrder(deps: Deps, by: Operator, decision: Decision): Promise<Order> {
  const order = await readOrder(deps.db, by.tenantId, decision.orderId)
  if (order === null) throw new Problem('not_found')
  const { order_id: id } = order
  const act = {
    action: `decide_${decision.outcome}`,
    target: { type: 'order' as const, id, orderId: id },
    reason: decision.reason,
  }
  if (decision.outcome === 'acknowledge') {
    return auditedTransaction(deps.db, by, act, async (tx) => {
      if (!(await clearFlag(tx, by.tenantId, id))) {
        throw conflict(order, 'Only the flag of an order that has ended or holds its money can be taken off.')
      }
      return (await readOrder(tx, by.tenantId, id)) ?? order
    })
  }
  const deadline = deadlineFor(deps, performance.now())
  const deciding = new Deciding(deps, order, by, deadline)
  return audited(
    deps,
    by,
    act,
    () => deciding.run(decision.outcome),
    ({ status }) => status,
  )
}

class Deciding {
  readonly #deps: Deps
  readonly #order: Order
  readonly #by: Operator
  readonly #deadline: Deadline

  constructor(deps: Deps, order: Order, by: Operator, deadline: Deadline) {
    this.#deps = deps
    this.#order = order
    this.#by = by
    this.#deadline = deadline
  }

  run(outcome: DecisionOutcome): Promise<Order> {
    switch (outcome) {
      case 'paid':
        return this.#paid()
      case 'accept_captured':
        return this.#accept()
      case 'refund_suspense':
        return this.#giveBack()
      default:
        return this.#endUnpaid(outcome === 'payment_failed' ? 'payment_failed' : 'canceled')
    }
  }

  async #paid(): Promise<Order> {
    if (this.#order.status === 'paid') return this.#order
    this.#needOpen()
    const { outcome, calls } = await this.#word()
    const order = await this.#settleDefinite(outcome, calls)
    if (order.status === 'paid') return order
    throw disagrees(order, outcome)
  }

  async #endUnpaid(to: 'payment_failed' | 'canceled'): Promise<Order> {
    if (endedUnpaid(this.#order)) return this.#order
    this.#needOpen()
    const { outcome, calls } = await this.#word()
    if (outcome.kind === 'absent') return this.#endAbsent(to, calls)
    if (outcome.kind === 'authorized' || outcome.kind === 'requires_action' || outcome.kind === 'incomplete') {
      await this.#keep(calls)
      return this.#close()
    }
    const order = await this.#settleDefinite(outcome, calls)
    if (endedUnpaid(order)) return order
    throw disagrees(order, outcome)
  }

  /** The provider knows no payment: that counts once nothing that was sent can still arrive. */
  async #endAbsent(to: 'payment_failed' | 'canceled', calls: readonly ProviderCall[]): Promise<Order> {
    await this.#keep(calls)
    const taken = await takeOver(this.#deps, this.#by.tenantId, this.#order.order_id, false)
    if (taken === null) throw conflict(this.#order, 'A request works on it this moment. Look at it again shortly.')
    const { order, lease } = taken
    const context = { ...this.#context([]), leaseToken: lease.token }
    const settlesAt = new Date(order.last_send_before.getTime() + absenceCountsAfterMs)
    const mayArrive = order.maybe_sent && !order.clock.hasReached(settlesAt)
    // Whoever held the lease meanwhile may have sent, or learnt of a payment.
    const isNews = order.last_send_before > this.#order.last_send_before || order.intent_id !== this.#order.intent_id
    if (mayArrive || (isNews && order.maybe_sent)) {
      await drive(this.#deps, order, this.#drive(), lease)
      throw new Problem('provider_disagrees', {
        detail: `No payment is found, but what was sent may still arrive until ${settlesAt.toISOString()}.`,
        members: { order_status: order.status, provider_status: 'absent' },
      })
    }
    const settled = await settleUnsent(this.#deps, order, context, to)
    if (endedUnpaid(settled.order)) return settled.order
    throw conflict(settled.order, 'It has moved on meanwhile.')
  }

  /** Nothing is sent for it from now on; it is closed at the provider, then here. */
  async #close(): Promise<Order> {
    const { tenant_id, order_id } = this.#order
    await requestCancel(this.#deps.db, tenant_id, order_id)
    await checkpoint('decision.close_requested')
    const asked = await claimAsk(this.#deps.pool, tenant_id, order_id, this.#deps.config.reconcileAfterMs, true)
    const order = asked === null ? this.#order : (await drive(this.#deps, asked, this.#drive())).order
    if (endedUnpaid(order)) return order
    if (isOpen(order.status)) {
      throw new Problem('provider_unavailable', {
        detail:
          'It could not be closed at the provider yet. That is tried again by itself, and nothing is charged for it.',
        retryAfterSeconds: 2,
      })
    }
    throw disagrees(order, null)
  }

  async #accept(): Promise<Order> {
    const [money, more] = await this.#suspended()
    if (money === undefined || more !== undefined || this.#order.status !== 'needs_reconcile') {
      throw conflict(this.#order, 'Only an open order with one payment that does not match can be accepted.')
    }
    const { payment, calls } = await this.#captured(money)
    if (payment.currency !== this.#order.currency || payment.amountCaptured > this.#order.total) {
      throw conflict(
        this.#order,
        'Only money of its currency, up to its total, can be accepted as payment; give it back.',
      )
    }
    if (payment.amountRefunded > 0) throw conflict(this.#order, 'Some of it has been given back already.')
    const { order } = await acceptCaptured(this.#deps, this.#order, payment, this.#context(calls))
    if (order.status === 'paid') return order
    throw conflict(order, 'It has moved on meanwhile.')
  }

  async #giveBack(): Promise<Order> {
    const money = await this.#suspended()
    if (money.length === 0) throw conflict(this.#order, 'None of its money waits in suspense.')
    const calls: ProviderCall[] = []
    for (const each of money) calls.push(...(await this.#captured(each)).calls)
    const { db } = this.#deps
    const order = this.#order
    if (isOpen(order.status)) {
      const settled = await endGivingBack(this.#deps, order, money, this.#context(calls))
      if (settled.order.status === 'canceled') return settled.order
      throw conflict(settled.order, 'It has moved on meanwhile.')
    }
    await recordCalls(db, order.tenant_id, order.order_id, calls)
    await recordFacts(db, order, givingBack(order, money))
    await checkpoint('decision.giving_back')
    return order
  }

  /** Money in suspense; what an open order's payment has brought by now is booked there first. */
  async #suspended() {
    const money = await suspended(this.#deps.db, this.#order)
    if (money.length > 0 || !isOpen(this.#order.status)) return money
    const { outcome, calls } = await this.#word()
    await this.#settleDefinite(outcome, calls)
    return suspended(this.#deps.db, this.#order)
  }

  /** The payment as the provider has it now: captured as booked, and made for this order. */
  async #captured({ intentId, amount }: { intentId: string; amount: number }): Promise<{
    payment: ProviderPayment
    calls: readonly ProviderCall[]
  }> {
    const { outcome, calls } = await this.#ask((limits) =>
      this.#deps.provider.retrieve(targetOf(this.#order), intentId, limits),
    )
    const isOwn =
      outcome.kind === 'succeeded' &&
      outcome.payment.metadata.order === this.#order.order_id &&
      outcome.payment.metadata.tenant === this.#order.tenant_id
    if (!isOwn || outcome.payment.amountCaptured !== amount) {
      await this.#keep(calls)
      throw disagrees(this.#order, outcome)
    }
    return { payment: outcome.payment, calls }
  }

  /** What the provider has for the order now. */
  async #word(): Promise<{ outcome: PaymentOutcome; calls: readonly ProviderCall[] }> {
    const order = this.#order
    const found = await this.#ask((limits) =>
      order.intent_id === null
        ? this.#deps.provider.find(searchFor(order), limits)
        : this.#deps.provider.retrieve(targetOf(order), order.intent_id, limits),
    )
    if (found.outcome.kind !== 'absent' || order.intent_id === null) return found
    // An id that leads nowhere says little; that there is no payment under our metadata says more.
    const searched = await this.#ask((limits) => this.#deps.provider.find(searchFor(order), limits))
    return { outcome: searched.outcome, calls: [...found.calls, ...searched.calls] }
  }

  async #ask(call: Parameters<typeof ask<PaymentOutcome>>[2]) {
    const configured = await stillConfigured(this.#deps, this.#order)
    if (configured === false) {
      throw conflict(
        this.#order,
        'It was claimed for other credentials than are configured, and these would answer from other books.',
      )
    }
    if (configured === null) {
      throw new Problem('provider_unavailable', {
        detail: 'The payment provider was not reached, and nothing was decided.',
        retryAfterSeconds: 2,
      })
    }
    const { outcome, calls } = await ask(this.#deps, this.#deadline, call)
    await checkpoint('decision.asked')
    if (outcome.kind === 'not_sent' || outcome.kind === 'unknown') {
      await this.#keep(calls)
      if (outcome.reason === 'processing') throw disagrees(this.#order, outcome)
      throw new Problem('provider_unavailable', {
        detail: `The payment provider gave no answer that counts (${outcome.reason}), and nothing was decided.`,
        retryAfterSeconds: 2,
      })
    }
    return { outcome, calls }
  }

  /** Settles what is certain, whatever was to be decided. */
  async #settleDefinite(outcome: PaymentOutcome, calls: readonly ProviderCall[]): Promise<Order> {
    if (outcome.kind === 'absent' || outcome.kind === 'incomplete' || outcome.kind === 'requires_action') {
      await this.#keep(calls)
      return this.#order
    }
    return (await settle(this.#deps, this.#order, outcome, this.#context(calls))).order
  }

  #keep(calls: readonly ProviderCall[]): Promise<void> {
    return recordCalls(this.#deps.db, this.#order.tenant_id, this.#order.order_id, calls)
  }

  #context(calls: readonly ProviderCall[]): SettleContext {
    return { cause: 'operator', actor: this.#by.requestId, calls }
  }

  #drive() {
    return {
      cause: 'operator' as const,
      actor: this.#by.requestId,
      // A decision never charges anybody.
      sendUntil: new Date(0),
      maySendUnsent: false,
      deadline: this.#deadline,
    }
  }

  #needOpen(): void {
    if (isOpen(this.#order.status)) return
    throw this.#order.status === 'paid'
      ? disagrees(this.#order, null)
      : conflict(this.#order, 'Only an order that is open can be decided so. A hold is captured or canceled.')
  }
}

function endedUnpaid({ status }: Order): boolean {
  return status === 'payment_failed' || status === 'canceled'
}

/** The provider says otherwise, now or when the order was settled. */
function disagrees(order: Order, outcome: PaymentOutcome | null): Problem {
  const payment = outcome !== null && 'payment' in outcome ? outcome.payment : null
  const mismatch = payment === null ? null : mismatchOf(order, payment)
  return new Problem('provider_disagrees', {
    detail:
      payment === null
        ? `The provider says otherwise, and the order is ${order.status}.`
        : `The provider has the payment as ${payment.status}, with ${payment.amountCaptured} ${payment.currency} captured.`,
    members: {
      order_status: order.status,
      ...(outcome === null ? {} : { provider_status: payment?.status ?? outcome.kind }),
      ...(payment === null ? {} : { captured: payment.amountCaptured, currency: payment.currency }),
      ...(mismatch === null ? {} : { mismatch }),
    },
  })
}

function conflict(order: Order, detail: string): Problem {
  return new Problem('order_state_conflict', { detail, members: { order_status: order.status } })
}
