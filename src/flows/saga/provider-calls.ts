/** How the provider is asked: within which time, how often, and who goes first. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Deps } from '../../deps.ts'
import type { Verdict } from '../../domain/judgement.ts'
import type { Order } from '../../domain/order.ts'
import type { CallLimits, CallResult, NotSent, ProviderCall, ProviderTarget, Unknown } from '../../provider/port.ts'

/** No call starts with less time than this: it could hardly end, and would only leave doubt behind. */
const shortestCallMs = 1000
/** Kept free at the end of a lease, so that what a call brings is settled while the lease still holds. */
const leaseMarginMs = 1000

/** Stripe may forget an idempotency key after 24 h (https://docs.stripe.com/api/idempotent_requests); an hour is kept
 * for clocks and slow calls. */
export const providerForgetsKeysMs = 23 * 3_600_000

/** When the calls of one piece of work must have ended, on the monotonic clock (`performance.now()`), ms. */
export interface Deadline {
  atMs: number
  /** Wait while customers' calls are under way. */
  background: boolean
  /** No call starts later than this (`performance.now()`), whatever time is left. */
  startUntilMs?: number
}

/** For a piece of work that began at `startedMs` under a lease taken after that. */
export function deadlineFor(deps: Deps, startedMs: number): Deadline {
  const { checkoutBudgetMs, leaseMs } = deps.config
  return {
    atMs: startedMs + Math.min(checkoutBudgetMs, leaseMs - Math.min(leaseMarginMs, leaseMs / 10)),
    background: false,
  }
}

/** The limits of a call that starts now, or null where too little time is left. */
function limitsWithin(deps: Deps, deadline: Deadline): CallLimits | null {
  const { providerTimeoutMs } = deps.config
  if (deadline.startUntilMs !== undefined && performance.now() >= deadline.startUntilMs) return null
  const timeoutMs = Math.min(providerTimeoutMs, deadline.atMs - performance.now())
  if (timeoutMs < Math.min(shortestCallMs, providerTimeoutMs)) return null
  return {
    timeoutMs,
    ...(deadline.background ? { turn: () => deps.gate.turn() } : {}),
  }
}

/** One call within the deadline. Without time for it, the outcome is `not_sent`. */
export async function ask<Outcome>(
  deps: Deps,
  deadline: Deadline,
  call: (limits: CallLimits) => Promise<CallResult<Outcome>>,
): Promise<CallResult<Outcome | { kind: 'not_sent'; reason: 'no_time'; alert: false; retryAfterMs: null }>> {
  if (deadline.background) await deps.gate.turn()
  const limits = limitsWithin(deps, deadline)
  if (limits === null) {
    return { outcome: { kind: 'not_sent', reason: 'no_time', alert: false, retryAfterMs: null }, calls: [] }
  }
  const result = await (deadline.background ? call(limits) : deps.gate.customer(() => call(limits)))
  for (const made of result.calls) tell(deps, made)
  return result
}

/** Our trace ends here: the provider takes no part in it, and its own name for the request is what leads on. */
function tell(deps: Deps, { operation, outcome, replayed, durationMs, startedAt, ...call }: ProviderCall): void {
  deps.metrics.providerCall(operation, outcome, replayed, durationMs)
  const failed = outcome === 'unknown' || outcome === 'not_sent'
  deps.tracing.record(
    `provider ${operation}`,
    { startedAt, durationMs, failed },
    {
      'provider.operation': operation,
      'provider.outcome': outcome,
      'provider.request_id': call.requestId,
      'provider.error_code': call.errorCode,
      'provider.replayed': replayed,
      'http.response.status_code': call.httpStatus,
    },
  )
}

/** Sends the charge. One call that was unknown makes the whole unknown, whatever fails after it. */
export async function charge(
  deps: Deps,
  order: Order,
  deadline: Deadline,
): Promise<{ outcome: Verdict; calls: ProviderCall[] }> {
  const { outcome, calls } = await send(deps, deadline, (limits) => deps.provider.charge(chargeRequest(order), limits))
  if (outcome.kind === 'incomplete' || outcome.kind === 'absent') {
    // Not what a charge answers; recovery looks and closes.
    return { outcome: unreadable(outcome.kind === 'incomplete' ? outcome.payment.intentId : null), calls }
  }
  return { outcome, calls }
}

/**
 * Makes a call that has a key, and again with the same key while it stays unknown and repeating can help. A call that
 * was unknown is not made certain by one after it that was surely not sent.
 */
export async function send<Outcome extends { kind: string }>(
  deps: Deps,
  deadline: Deadline,
  call: (limits: CallLimits) => Promise<CallResult<Outcome | NotSent | Unknown>>,
): Promise<{ outcome: Outcome | NotSent | Unknown; calls: ProviderCall[] }> {
  const calls: ProviderCall[] = []
  let doubt: Unknown | undefined
  for (let attempt = 0; ; attempt++) {
    const result = await ask(deps, deadline, call)
    calls.push(...result.calls)
    const outcome = result.outcome
    if (isNotSent(outcome)) return { outcome: doubt ?? outcome, calls }
    if (!isUnknown(outcome)) return { outcome, calls }
    doubt = outcome
    const pauseMs = Math.min(100 * 2 ** attempt, 2000) * (0.5 + Math.random() / 2)
    if (!outcome.worthRetrying || performance.now() + pauseMs > deadline.atMs) return { outcome, calls }
    await delay(pauseMs)
  }
}

function isNotSent(outcome: { kind: string }): outcome is NotSent {
  return outcome.kind === 'not_sent'
}

function isUnknown(outcome: { kind: string }): outcome is Unknown {
  return outcome.kind === 'unknown'
}

function unreadable(intentId: string | null): Extract<Verdict, { kind: 'unknown' }> {
  return { kind: 'unknown', reason: 'unreadable_answer', worthRetrying: false, replayedFailure: false, intentId }
}

/** The charge, built from the stored order alone. */
function chargeRequest(order: Order): Parameters<Deps['provider']['charge']>[0] {
  return {
    target: targetOf(order),
    providerKey: `${order.tenant_id}:${order.attempt_key}`,
    parameterVersion: order.parameter_version,
    amount: order.total,
    currency: order.currency,
    capture: order.capture,
    paymentMethod: order.payment_method,
    offSession: order.kind === 'run',
    metadata: { tenant: order.tenant_id, order: order.order_id, key: order.attempt_key },
  }
}

/** Account, mode and version as recorded by the claim. */
export function targetOf(order: Order): ProviderTarget {
  return {
    account: order.provider_account,
    connectedAccount: order.connected_account,
    livemode: order.livemode,
    apiVersion: order.api_version,
  }
}
