/**
 * The one way in which an order moves: the provider's word is judged against the order and applied as a conditional
 * transition, together with the stored answer, ledger, outbox and stock. The answer to a checkout, a repeat, a
 * notification, recovery and an operator all come here.
 */
import { randomUUID } from 'node:crypto'
import type { Deps } from '../../deps.ts'
import { type Judgement, judge, type Verdict } from '../../domain/judgement.ts'
import { isOpen, type Order, type OrderStatus, sourcesOf } from '../../domain/order.ts'
import { type Transfer, transfer } from '../../domain/posting.ts'
import { Problem } from '../../domain/problem.ts'
import type { ProviderCall, ProviderPayment } from '../../provider/port.ts'
import { checkpoint } from '../../runtime/checkpoint.ts'
import { carryingTrace } from '../../runtime/tracing.ts'
import type { Cause, Job, OrderFacts, Settled, Settlement } from '../../store/orders.ts'
import { type Answer, openAnswer, problemAnswer, settledAnswer, storedAnswer } from './answers.ts'
import { inProgress } from './twins.ts'
import { bookUnexpectedMoney } from './unexpected-money.ts'

export interface SettleContext {
  cause: Cause
  /** The request, event, worker run or operator that brought it. */
  actor: string
  reason?: string
  calls: readonly ProviderCall[]
  /** Guards what is decided from ignorance, and is given back by it. */
  leaseToken?: string
}

export interface SettleResult {
  order: Order
  /** What the client is told. */
  answer: Answer
  /** False where the order had moved on before; then nothing of it has changed. */
  applied: boolean
}

/** Settles an order by what the provider said. */
export async function settle(
  deps: Deps,
  order: Order,
  outcome: Verdict,
  context: SettleContext,
): Promise<SettleResult> {
  const result = await apply(deps, order, decide(deps, order, judge(order, outcome)), context)
  // What the order has become meanwhile decides what the provider's word means for it.
  if (!result.applied) await bookUnexpectedMoney(deps, result.order, judge(result.order, outcome), context)
  return result
}

/** Ends an order because no payment for it exists or can appear any more. Needs the lease: nobody else may send
 * meanwhile. */
export function settleUnsent(
  deps: Deps,
  order: Order,
  context: SettleContext & { leaseToken: string },
  to: 'canceled' | 'payment_failed' = 'canceled',
): Promise<SettleResult> {
  return apply(deps, order, { ...end(order, to, {}), guarded: true }, context)
}

/** A person accepts what was captured although it is not what was asked for: the order is paid with that. */
export function acceptCaptured(
  deps: Deps,
  order: Order,
  { intentId, chargeId, status, amountCaptured, currency }: ProviderPayment,
  context: SettleContext,
): Promise<SettleResult> {
  const decision: Decision = {
    from: ['needs_reconcile'],
    to: 'paid',
    facts: {
      intent_id: intentId,
      payment_status: status,
      captured: amountCaptured,
      ...(chargeId === null ? {} : { charge_id: chargeId }),
    },
    attemptState: 'settled',
    transfers: [
      transfer('mismatch_resolved', intentId, amountCaptured, currency),
      transfer('capture', order.order_id, amountCaptured, currency),
    ],
    jobs: [news(order, 'paid')],
  }
  return apply(deps, order, decision, context)
}

/** A person gives back money that does not match: the order ends unpaid. */
export function endGivingBack(
  deps: Deps,
  order: Order,
  money: readonly { intentId: string; amount: number; currency: string }[],
  context: SettleContext,
): Promise<SettleResult> {
  const decision = end(order, 'canceled', {})
  const back = givingBack(order, money)
  return apply(
    deps,
    order,
    {
      ...decision,
      from: ['needs_reconcile'],
      transfers: back.transfers,
      jobs: [...(decision.jobs ?? []), ...back.jobs],
    },
    context,
  )
}

/** What follows from giving back money that waits in suspense: it is booked as late money, and a job refunds it once. */
export function givingBack(
  order: Order,
  money: readonly { intentId: string; amount: number; currency: string }[],
): { transfers: Transfer[]; jobs: Job[] } {
  return {
    transfers: money.flatMap(({ intentId, amount, currency }) => [
      transfer('mismatch_resolved', intentId, amount, currency),
      transfer('late_capture', intentId, amount, currency),
    ]),
    jobs: money.map(({ intentId, amount, currency }) => ({
      topic: 'refund_late_payment',
      business_id: intentId,
      payload: { order_id: order.order_id, amount, currency },
    })),
  }
}

/** Leaves an open order as it is, for the reason given, and gives back the lease. */
export function leaveOpen(
  deps: Deps,
  order: Order,
  reason: string,
  context: SettleContext & { leaseToken: string },
): Promise<SettleResult> {
  return apply(deps, order, inDoubt(deps, order, reason, {}), context)
}

/** Gives back the lease of an order for which surely nothing was sent: the customer's next repeat goes on with it. */
export function giveBackUnsent(
  deps: Deps,
  order: Order,
  context: SettleContext & { leaseToken: string },
): Promise<SettleResult> {
  return apply(deps, order, resumable(order, null), context)
}

/** What becomes of the order and of its attempt, and what follows. */
interface Decision {
  from: readonly OrderStatus[]
  to: OrderStatus
  /** Made from ignorance: only whoever holds the lease may decide so. */
  guarded?: true
  facts: OrderFacts
  attemptState: NonNullable<Settlement['attemptState']>
  declinedAs?: 'card_declined' | 'payment_method_invalid'
  retryAfterMs?: number | null
  transfers?: Transfer[]
  jobs?: Job[]
  endsUnpaid?: true
}

function decide(deps: Deps, order: Order, judgement: Judgement): Decision {
  const { facts } = judgement
  switch (judgement.kind) {
    case 'paid':
      return {
        from: sourcesOf('paid'),
        to: 'paid',
        facts,
        attemptState: 'settled',
        transfers: [transfer('capture', order.order_id, judgement.payment.amountCaptured, order.currency)],
        jobs: [news(order, 'paid')],
      }
    case 'authorized':
      return {
        from: sourcesOf('authorized'),
        to: 'authorized',
        facts,
        attemptState: 'settled',
        jobs: [news(order, 'authorized')],
      }
    case 'requires_action':
      return {
        // Also where it waits already: the client secret may be news.
        from: [...sourcesOf('requires_action'), 'requires_action'],
        to: 'requires_action',
        facts: order.status === 'requires_action' ? facts : { ...facts, next_ask_in_ms: deps.config.reconcileAfterMs },
        attemptState: 'open',
      }
    case 'declined':
      return { ...end(order, 'payment_failed', facts, judgement.leftBehind), declinedAs: judgement.code }
    case 'canceled':
      return end(order, 'canceled', facts)
    case 'mismatch': {
      const { intentId, amountCaptured, currency } = judgement.payment
      return {
        from: [...sourcesOf('needs_reconcile'), 'needs_reconcile'],
        to: 'needs_reconcile',
        facts: { ...facts, maybe_sent: true, reconcile_reason: judgement.reason },
        attemptState: 'open',
        transfers: amountCaptured > 0 ? [transfer('mismatch', intentId, amountCaptured, currency)] : [],
      }
    }
    case 'not_sent':
      // One call that was anything else makes the attempt unknown until it is settled.
      if (order.status !== 'pending' || order.maybe_sent) return inDoubt(deps, order, 'not_reached', facts)
      return resumable(order, judgement.retryAfterMs)
    case 'unknown':
      return inDoubt(deps, order, judgement.reason, {
        ...facts,
        maybe_sent: true,
        ...(judgement.sendIsPointless ? { send_is_pointless: true } : {}),
      })
  }
}

function end(
  order: Order,
  to: 'payment_failed' | 'canceled',
  facts: OrderFacts,
  leftBehind: string | null = null,
): Decision {
  return {
    from: sourcesOf(to),
    to,
    facts,
    attemptState: 'settled',
    jobs: [
      news(order, to),
      // It could still succeed with another payment method: nobody has its secret, but closed is closed.
      ...(leftBehind === null
        ? []
        : [{ topic: 'close_payment', business_id: leftBehind, payload: { order_id: order.order_id } }]),
    ],
    endsUnpaid: true,
  }
}

function resumable(order: Order, retryAfterMs: number | null): Decision {
  return {
    from: ['pending'],
    to: 'pending',
    guarded: true,
    // There is nothing to ask about until the customer comes back or the order expires.
    facts: { next_ask_in_ms: Math.max(0, order.expires_at.getTime() - Date.now()) },
    attemptState: 'resumable',
    retryAfterMs,
  }
}

function inDoubt(deps: Deps, order: Order, reason: string, facts: OrderFacts): Decision {
  if (order.status === 'requires_action' && reason !== 'provider_account_changed') {
    return {
      from: ['requires_action'],
      to: 'requires_action',
      guarded: true,
      facts: order.client_secret === null ? facts : { ...facts, client_secret: order.client_secret },
      attemptState: 'open',
    }
  }
  return {
    from: ['needs_reconcile', ...sourcesOf('needs_reconcile')],
    to: 'needs_reconcile',
    guarded: true,
    facts: {
      ...facts,
      reconcile_reason: reason,
      sends_have_ended: true,
      ...(order.status === 'pending' ? { next_ask_in_ms: deps.config.reconcileAfterMs } : {}),
    },
    attemptState: 'open',
  }
}

/** One job per order and transition; its handler tells the customer and the merchant. */
function news(order: Order, status: OrderStatus): Job {
  return {
    topic: 'order_news',
    business_id: `${order.order_id}:${status}`,
    payload: { order_id: order.order_id, status },
  }
}

async function apply(deps: Deps, order: Order, decision: Decision, context: SettleContext): Promise<SettleResult> {
  const at = new Date()
  const after = orderAfter(order, decision, at)
  const answer = answerFor(deps, after, decision, context)
  await checkpoint(`settle.deciding_${decision.to}`)
  const settled = await deps.settle({
    tenantId: order.tenant_id,
    orderId: order.order_id,
    key: order.attempt_key,
    from: decision.from,
    to: decision.to,
    guarded: decision.guarded === true,
    ...(context.leaseToken === undefined ? {} : { leaseToken: context.leaseToken }),
    at,
    facts: decision.facts,
    attemptState: decision.attemptState,
    ...(decision.attemptState === 'settled' ? { answer: { status: answer.status, body: answer.body } } : {}),
    transition: {
      cause: context.cause,
      actor: context.actor,
      reason: context.reason ?? decision.facts.reconcile_reason ?? null,
    },
    calls: context.calls.map((call) => ({ ...call, id: randomUUID() })),
    transfers: decision.transfers ?? [],
    jobs: (decision.jobs ?? []).map(carryingTrace),
    endsUnpaid: decision.endsUnpaid === true,
  })
  deps.metrics.settlement(decision.to, context.cause, settled.applied)
  await checkpoint(`settle.decided_${decision.to}`)
  // The same bytes are ours: an earlier try had settled it, and its answer was lost.
  if (settled.applied || settled.answer?.body === answer.body) return { order: after, answer, applied: true }

  deps.log.info(
    {
      tenant_id: order.tenant_id,
      order_id: order.order_id,
      wanted: decision.to,
      is: settled.order.status,
      cause: context.cause,
    },
    'settlement came late and changed nothing',
  )
  return { order: settled.order, answer: answerAsItStands(deps, settled, context.actor), applied: false }
}

/** What a client is told of an attempt that somebody else has moved on. `requestId` names the client's request. */
export function answerAsItStands(
  deps: Deps,
  { order, attemptState, answer }: Omit<Extract<Settled, { applied: false }>, 'applied'>,
  requestId: string,
): Answer {
  if (answer !== null) return storedAnswer(answer, order.order_id, true)
  const { reconcileAfterMs } = deps.config
  if (order.status !== 'pending') return openAnswer(order, reconcileAfterMs)
  const problem = attemptState === 'running' ? inProgress() : providerUnavailable(reconcileAfterMs)
  return problemAnswer(problem, requestId, order.order_id)
}

function answerFor(deps: Deps, after: Order, decision: Decision, context: SettleContext): Answer {
  const retryAfterMs = decision.retryAfterMs ?? deps.config.reconcileAfterMs
  if (decision.attemptState === 'settled') return settledAnswer(after, context.actor, decision.declinedAs)
  if (decision.attemptState === 'open') return openAnswer(after, retryAfterMs)
  return problemAnswer(providerUnavailable(retryAfterMs), context.actor, after.order_id)
}

/** The provider was surely not reached: the same key goes on. */
export function providerUnavailable(retryAfterMs: number): Problem {
  return new Problem('provider_unavailable', {
    detail: 'The payment provider was not reached and nothing was charged. Repeat the request with the same key.',
    members: { new_key_safe: false },
    retryAfterSeconds: Math.max(1, Math.ceil(retryAfterMs / 1000)),
  })
}

/** The order as it is once the decision is applied. */
function orderAfter(order: Order, { to, facts }: Decision, at: Date): Order {
  return {
    ...order,
    status: to,
    intent_id: facts.intent_id ?? order.intent_id,
    charge_id: facts.charge_id ?? order.charge_id,
    payment_status: facts.payment_status ?? order.payment_status,
    decline_code: facts.decline_code ?? order.decline_code,
    client_secret: isOpen(to) ? (facts.client_secret ?? null) : null,
    capture_before: facts.capture_before ?? order.capture_before,
    captured: facts.captured ?? order.captured,
    maybe_sent: facts.maybe_sent ?? order.maybe_sent,
    send_is_pointless: facts.send_is_pointless ?? order.send_is_pointless,
    reconcile_reason: facts.reconcile_reason ?? null,
    updated_at: at,
  }
}
