/** What the provider's word about a payment means for an order. */
import type { PaymentOutcome, ProviderPayment } from '../provider/port.ts'
import type { Order } from './order.ts'

/** Facts about the payment that the order keeps. */
interface PaymentFacts {
  intent_id?: string
  charge_id?: string
  payment_status?: string
  decline_code?: string
  client_secret?: string
  capture_before?: Date
  captured?: number
}

export type Judgement =
  | { kind: 'paid'; facts: PaymentFacts; payment: ProviderPayment }
  | { kind: 'authorized'; facts: PaymentFacts; payment: ProviderPayment }
  | { kind: 'requires_action'; facts: PaymentFacts }
  | {
      kind: 'declined'
      code: 'card_declined' | 'payment_method_invalid'
      facts: PaymentFacts
      /** The payment that the decline left behind, still to be closed at the provider. */
      leftBehind: string | null
    }
  | { kind: 'canceled'; facts: PaymentFacts }
  /** Money, or a promise of money, that is not what the order asked for. A person decides. */
  | { kind: 'mismatch'; reason: string; facts: PaymentFacts; payment: ProviderPayment }
  | { kind: 'not_sent'; facts: PaymentFacts; retryAfterMs: number | null }
  | { kind: 'unknown'; reason: string; facts: PaymentFacts; sendIsPointless: boolean }

export type Verdict = Exclude<PaymentOutcome, { kind: 'incomplete' | 'absent' }>

/** Judges a definite or failed answer. `incomplete` and `absent` are no verdict: something has to be done first. */
export function judge(order: Order, outcome: Verdict): Judgement {
  switch (outcome.kind) {
    case 'not_sent':
      return { kind: 'not_sent', facts: {}, retryAfterMs: outcome.retryAfterMs }
    case 'unknown':
      return {
        kind: 'unknown',
        reason: outcome.reason,
        facts: outcome.intentId === null ? {} : { intent_id: outcome.intentId },
        // Under a key that it knows with other parameters, the provider will never do anything.
        sendIsPointless: outcome.replayedFailure || outcome.reason === 'idempotency_error',
      }
    case 'declined':
      return {
        kind: 'declined',
        code: outcome.code,
        facts: {
          ...(outcome.payment === null ? {} : factsOf(outcome.payment)),
          ...(outcome.declineCode === null ? {} : { decline_code: outcome.declineCode }),
        },
        leftBehind: outcome.payment === null || outcome.payment.status === 'canceled' ? null : outcome.payment.intentId,
      }
  }
  const { payment } = outcome
  const facts = factsOf(payment)
  const mismatch = mismatchOf(order, payment)
  if (mismatch !== null) {
    return outcome.kind === 'succeeded' || outcome.kind === 'authorized'
      ? { kind: 'mismatch', reason: mismatch, facts: isOrdersOwn(mismatch) ? facts : {}, payment }
      : { kind: 'unknown', reason: mismatch, facts: {}, sendIsPointless: false }
  }
  switch (outcome.kind) {
    case 'succeeded':
      return { kind: 'paid', facts: { ...facts, captured: payment.amountCaptured }, payment }
    case 'authorized':
      return { kind: 'authorized', facts, payment }
    case 'requires_action':
      return {
        kind: 'requires_action',
        facts: { ...facts, ...(payment.clientSecret === null ? {} : { client_secret: payment.clientSecret }) },
      }
    case 'canceled':
      // A payment that was declined before it was canceled ended as a decline.
      return payment.declineCode === null
        ? { kind: 'canceled', facts }
        : { kind: 'declined', code: 'card_declined', facts, leftBehind: null }
  }
}

/** Why a payment is not the one that the order asked for, or null. Every answer is compared, also those to our own calls. */
export function mismatchOf(order: Order, payment: ProviderPayment): string | null {
  if (payment.metadata.order !== order.order_id || payment.metadata.tenant !== order.tenant_id) return 'order_mismatch'
  if (order.intent_id !== null && order.intent_id !== payment.intentId) return 'payment_mismatch'
  if (payment.currency !== order.currency) return 'currency_mismatch'
  if (payment.amount !== order.total) return 'amount_mismatch'
  if (payment.livemode !== order.livemode) return 'mode_mismatch'
  if (payment.status === 'succeeded') {
    const captured = payment.amountCaptured
    const asAsked = order.capture === 'automatic' ? captured === order.total : captured > 0 && captured <= order.total
    if (!asAsked) return 'amount_mismatch'
  }
  return null
}

/** The payment was made for this order, however wrong it is. */
function isOrdersOwn(mismatch: string): boolean {
  return mismatch !== 'order_mismatch' && mismatch !== 'payment_mismatch'
}

function factsOf(payment: ProviderPayment): PaymentFacts {
  return {
    intent_id: payment.intentId,
    payment_status: payment.status,
    ...(payment.chargeId === null ? {} : { charge_id: payment.chargeId }),
    ...(payment.declineCode === null || payment.status === 'succeeded' ? {} : { decline_code: payment.declineCode }),
    ...(payment.captureBefore === null ? {} : { capture_before: payment.captureBefore }),
  }
}
