import type { NotSent, PaymentOutcome, ProviderPayment, ProviderRefund, RefundOutcome, Unknown } from './port.ts'
import type { Failure } from './stripe-failure.ts'
import { readAccountId, readPage, readPayment, readRefund } from './stripe-shapes.ts'

/**
 * What Stripe's answers mean. A failure is `not_sent` only where it stands on the list in `undecided`; whatever nobody
 * has thought of is `unknown`.
 */

/** What a call through the SDK brought. */
export type Reply = { body: unknown } | { failure: Failure }

/** Stripe would not do it in the payment's present state. Never leaves the adapter, which goes and reads that state. */
interface Rejected {
  kind: 'rejected'
  code: string
  /** As the error carried it. */
  payment: ProviderPayment | undefined
}

/** The answer to creating and confirming a payment. */
export function chargeOutcome(reply: Reply): PaymentOutcome {
  if ('body' in reply) return answeredPayment(reply.body)
  const { failure } = reply
  const payment = readPayment(failure.intent) ?? null
  // A decline leaves a payment that waits for another card. Should one ever carry money, the money counts.
  if (payment !== null && carriesMoney(payment)) return paymentOutcome(payment)
  if (isCardError(failure)) {
    return { kind: 'declined', code: 'card_declined', declineCode: failure.declineCode ?? failure.code, payment }
  }
  if (blamesPaymentMethod(failure)) {
    return { kind: 'declined', code: 'payment_method_invalid', declineCode: failure.code, payment }
  }
  return undecided(failure, intentIdIn(failure))
}

/** The answer to reading one payment. */
export function lookupOutcome(reply: Reply, intentId: string): PaymentOutcome {
  if ('body' in reply) return answeredPayment(reply.body, intentId)
  return isMissing(reply.failure) ? { kind: 'absent' } : undecided(reply.failure, intentId)
}

/** The answer to canceling or capturing. */
export function changeOutcome(reply: Reply, intentId: string): PaymentOutcome | Rejected {
  if ('body' in reply) return answeredPayment(reply.body, intentId)
  const { failure } = reply
  if (!isRefusal(failure)) return undecided(failure, intentId)
  return { kind: 'rejected', code: failure.errorCode, payment: readPayment(failure.intent) }
}

/** The answer to making a refund. A refusal, also one for the amount that has no code of its own, had no effect. */
export function refundOutcome(reply: Reply): RefundOutcome {
  if ('body' in reply) return answeredRefund(reply.body)
  const { failure } = reply
  return isRefusal(failure) ? { kind: 'rejected', code: failure.errorCode } : undecided(failure, intentIdIn(failure))
}

/** The answer to reading one refund. */
export function refundLookupOutcome(reply: Reply): RefundOutcome {
  if ('body' in reply) return answeredRefund(reply.body)
  return isMissing(reply.failure) ? { kind: 'absent' } : undecided(reply.failure, null)
}

export type PageOutcome = { kind: 'listed'; items: { id: string }[]; next: string | null } | NotSent | Unknown

/** The answer to reading one page of a list. */
export function pageOutcome(reply: Reply): PageOutcome {
  if ('failure' in reply) return undecided(reply.failure, null)
  const page = readPage(reply.body)
  return page === undefined ? unknown('unreadable_answer') : { kind: 'listed', ...page }
}

/** What a search over every page has found. */
export function searchOutcome([match, ...others]: unknown[]): PaymentOutcome {
  if (match === undefined) return { kind: 'absent' }
  // One order is one payment. Which of several counts is nothing to guess.
  return others.length > 0 ? unknown('several_payments') : answeredPayment(match)
}

/** The answer to asking for the credentials' own account. */
export function accountOutcome(reply: Reply): { kind: 'identified'; account: string } | NotSent | Unknown {
  if ('failure' in reply) return undecided(reply.failure, null)
  const account = readAccountId(reply.body)
  return account === undefined ? unknown('unreadable_answer') : { kind: 'identified', account }
}

/** Whether this is what a payment's state says, and not that the state could not be learnt. */
export function tellsState(outcome: PaymentOutcome): boolean {
  return ('payment' in outcome && outcome.kind !== 'declined') || isProcessing(outcome)
}

/** The payment, where it is in a state that it can leave without us. */
export function movableIntent(outcome: PaymentOutcome): string | null {
  switch (outcome.kind) {
    case 'requires_action':
    case 'authorized':
    case 'incomplete':
      return outcome.payment.intentId
    default:
      return isProcessing(outcome) ? outcome.intentId : null
  }
}

function isProcessing(outcome: PaymentOutcome): outcome is Unknown {
  return outcome.kind === 'unknown' && outcome.reason === 'processing'
}

/** What state the payment is in, https://docs.stripe.com/payments/paymentintents/lifecycle */
export function paymentOutcome(payment: ProviderPayment): PaymentOutcome {
  switch (payment.status) {
    case 'succeeded':
    case 'requires_action':
    case 'canceled':
      return { kind: payment.status, payment }
    case 'requires_capture':
      return { kind: 'authorized', payment }
    case 'requires_payment_method':
    case 'requires_confirmation':
      return { kind: 'incomplete', payment }
    case 'processing':
      return unknown('processing', { intentId: payment.intentId })
    default:
      return unknown('unreadable_answer', { intentId: payment.intentId })
  }
}

export function unknown(
  reason: string,
  more: { worthRetrying?: boolean; replayedFailure?: boolean; intentId?: string | null } = {},
): Unknown {
  return { kind: 'unknown', reason, worthRetrying: false, replayedFailure: false, intentId: null, ...more }
}

function answeredPayment(body: unknown, intentId: string | null = null): PaymentOutcome {
  const payment = readPayment(body)
  return payment === undefined
    ? unknown('unreadable_answer', { intentId: intentId ?? idIn(body) })
    : paymentOutcome(payment)
}

function answeredRefund(body: unknown): RefundOutcome {
  const refund: ProviderRefund | undefined = readRefund(body)
  return refund === undefined ? unknown('unreadable_answer') : { kind: refund.status, refund }
}

/** Failures that are no answer to what was asked. */
function undecided(failure: Failure, intentId: string | null): NotSent | Unknown {
  const { noAnswer, status, replayed } = failure
  const doubt = (reason: string, worthRetrying: boolean) =>
    unknown(reason, { worthRetrying: worthRetrying && !replayed && !failure.retryIsPointless, intentId })

  if (noAnswer === 'connection_refused' || noAnswer === 'dns_failure' || noAnswer === 'no_time') {
    return notSent(noAnswer, failure)
  }
  if (status !== null && status >= 500) return { ...doubt('provider_error', true), replayedFailure: replayed }
  if (noAnswer !== null) return doubt(noAnswer, noAnswer !== 'unexpected_error')
  if (status === 401) return notSent('unauthorized', failure)
  if (status === 403) return notSent('forbidden', failure)
  if (status === 429 || failure.code === 'rate_limit') return notSent('rate_limited', failure)
  if (status === 409) return doubt('key_in_use', true)
  if (failure.type === 'idempotency_error') return doubt('idempotency_error', false)
  if (status !== null && status >= 400) return doubt('provider_rejected', false)
  return doubt('unreadable_answer', false)
}

function notSent(reason: NotSent['reason'], { retryAfterMs }: Failure): NotSent {
  return { kind: 'not_sent', reason, alert: reason === 'unauthorized' || reason === 'forbidden', retryAfterMs }
}

/** https://docs.stripe.com/api/errors */
function isCardError({ noAnswer, status, type }: Failure): boolean {
  return noAnswer === null && (status === 402 || (status === 400 && type === 'card_error'))
}

/** Stripe looked at the request and said no, for good. */
function isRefusal(failure: Failure): boolean {
  if (isCardError(failure)) return true
  const { noAnswer, status, type, code } = failure
  const refused = noAnswer === null && (status === 400 || status === 404)
  return refused && type === 'invalid_request_error' && code !== 'rate_limit'
}

/** The only thing of the customer's that a charge names is the payment method. */
function blamesPaymentMethod(failure: Failure): boolean {
  if (!isRefusal(failure)) return false
  const { code, param } = failure
  if (param === 'payment_method') return true
  return code !== null && (methodCodes.test(code) || (code === 'resource_missing' && param === null))
}

/** From https://docs.stripe.com/error-codes. Not about the customer's card, though named alike, are
 * `payment_method_types_…` and `payment_method_configuration_…`. */
const methodCodes = /^(payment_method_(?!types_|configuration_)\w+|payment_intent_incompatible_payment_method)$/

function isMissing(failure: Failure): boolean {
  return isRefusal(failure) && failure.status === 404 && failure.code === 'resource_missing'
}

/** The payment has, holds, or is about to have money. */
function carriesMoney({ status }: ProviderPayment): boolean {
  return status === 'succeeded' || status === 'requires_capture' || status === 'processing'
}

function intentIdIn(failure: Failure): string | null {
  return idIn(failure.intent)
}

function idIn(value: unknown): string | null {
  if (typeof value !== 'object' || value === null || !('id' in value)) return null
  return typeof value.id === 'string' && value.id.startsWith('pi_') ? value.id : null
}
