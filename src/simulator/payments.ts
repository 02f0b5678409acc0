import type { Change } from './books.ts'
import { checkStep, display } from './currencies.ts'
import { ApiError, invalidRequest, unexpectedState } from './errors.ts'
import {
  authenticationNotHandled,
  authenticationRequired,
  type Decline,
  findPaymentMethod,
  genericDecline,
  type TestPaymentMethod,
} from './payment-methods.ts'
import { newId } from './random.ts'
import type { ChargeRecord, PaymentFailure, PaymentIntentRecord, PaymentIntentStatus } from './records.ts'

const confirmable: PaymentIntentStatus[] = ['requires_payment_method', 'requires_confirmation', 'requires_action']
/** Stripe also names `processing`, "in rare cases"; a card that is being charged is not one of them. */
const cancelable: PaymentIntentStatus[] = [
  'requires_payment_method',
  'requires_capture',
  'requires_confirmation',
  'requires_action',
]

type ConfirmOptions = { offSession: boolean; errorOnRequiresAction: boolean }

/** Tries the intent's payment method. Throws Stripe's 402 where the card is declined, after booking the decline. */
export function confirm(change: Change, intent: PaymentIntentRecord, options: ConfirmOptions): PaymentIntentRecord {
  if (!confirmable.includes(intent.status)) throw unexpectedState(intent, 'confirmed', confirmable)
  const method = intent.payment_method === null ? undefined : findPaymentMethod(intent.payment_method)
  if (method === undefined) {
    const message = "You cannot confirm this PaymentIntent because it's missing a payment method."
    throw invalidRequest(message, { code: 'payment_intent_unexpected_state' }, intent)
  }
  if (method.authenticates) {
    if (options.offSession) throw declined(change, intent, method, authenticationRequired)
    if (options.errorOnRequiresAction) throw declined(change, intent, method, authenticationNotHandled)
    return changed(change, { ...intent, status: 'requires_action', last_payment_error: null }, 'requires_action')
  }
  if (method.processing) {
    const charge = change.put({ ...newCharge(change, intent, method), status: 'pending' })
    change.emit('charge.pending', charge, charge)
    return changed(change, { ...withCharge(intent, charge), status: 'processing' }, 'processing')
  }
  if (method.decline) throw declined(change, intent, method, method.decline)
  return paid(change, intent, newCharge(change, intent, method))
}

/** The customer finishes 3-D Secure, or a payment in `processing` settles. */
export function finish(change: Change, intent: PaymentIntentRecord, outcome: 'succeed' | 'fail'): PaymentIntentRecord {
  const method = intent.payment_method === null ? undefined : findPaymentMethod(intent.payment_method)
  if (method === undefined || (intent.status !== 'requires_action' && intent.status !== 'processing')) {
    throw unexpectedState(intent, 'finished', ['requires_action', 'processing'])
  }
  const pending = intent.status === 'processing' ? change.books.charges.peek(intent.latest_charge ?? '') : undefined
  if (outcome === 'fail' && !pending) return failed(change, intent, authenticationFailure(method), undefined)
  const decline = outcome === 'fail' ? genericDecline : method.decline
  if (decline) return failed(change, intent, failureOf(decline, method), pending ?? newCharge(change, intent, method))
  return paid(change, intent, pending ?? { ...newCharge(change, intent, method), authenticated: true })
}

/** Captures a hold, once; what is not captured is released.
 * `amount` in minor units, the whole hold where it is not given. */
export function capture(
  change: Change,
  intent: PaymentIntentRecord,
  amount = intent.amount_capturable,
): PaymentIntentRecord {
  const hold = change.books.charges.peek(intent.latest_charge ?? '')
  if (intent.status !== 'requires_capture' || hold === undefined) {
    throw unexpectedState(intent, 'captured', ['requires_capture'])
  }
  checkStep(amount, intent.currency, 'amount_to_capture')
  if (amount > intent.amount_capturable) {
    const most = display(intent.amount_capturable, intent.currency)
    const message = `The amount to capture is greater than the amount capturable (${most}).`
    throw invalidRequest(message, { code: 'amount_too_large', param: 'amount_to_capture' }, intent)
  }
  const charge = change.put({
    ...hold,
    captured: true,
    amount_captured: amount,
    amount_refunded: hold.amount - amount,
    dispute_due: disputeDue(change, intent.payment_method),
  })
  change.emit('charge.captured', charge, charge)
  return changed(change, { ...intent, status: 'succeeded', amount_capturable: 0, amount_received: amount }, 'succeeded')
}

/** Cancels what has not been paid; a hold is released. `reason` is the caller's, or `automatic` where a hold lapsed. */
export function cancel(change: Change, intent: PaymentIntentRecord, reason: string | null): PaymentIntentRecord {
  if (!cancelable.includes(intent.status)) throw unexpectedState(intent, 'canceled', cancelable)
  const hold = intent.status === 'requires_capture' ? change.books.charges.peek(intent.latest_charge ?? '') : undefined
  if (hold) {
    const charge = change.put({ ...hold, amount_refunded: hold.amount })
    change.emit('charge.refunded', charge, charge, { amount_refunded: 0, refunded: false })
  }
  const canceled: PaymentIntentRecord = {
    ...intent,
    status: 'canceled',
    amount_capturable: 0,
    cancellation_reason: reason,
    canceled_at: change.books.now(),
  }
  return changed(change, canceled, 'canceled')
}

function newCharge(change: Change, intent: PaymentIntentRecord, method: TestPaymentMethod): ChargeRecord {
  return {
    object: 'charge',
    id: newId('ch_'),
    account: intent.account,
    livemode: intent.livemode,
    created: change.books.now(),
    metadata: intent.metadata,
    amount: intent.amount,
    amount_captured: 0,
    amount_refunded: 0,
    currency: intent.currency,
    captured: false,
    customer: intent.customer,
    description: intent.description,
    disputed: false,
    failure: null,
    payment_intent: intent.id,
    payment_method: method.id,
    status: 'succeeded',
    authenticated: false,
    capture_before: null,
    dispute_due: null,
  }
}

function paid(change: Change, intent: PaymentIntentRecord, tried: ChargeRecord): PaymentIntentRecord {
  const manual = intent.capture_method === 'manual'
  const charge = change.put<ChargeRecord>({
    ...tried,
    status: 'succeeded',
    captured: !manual,
    amount_captured: manual ? 0 : tried.amount,
    capture_before: manual ? change.books.now() + Math.ceil(change.books.terms.holdLifetimeMs / 1000) : null,
    dispute_due: manual ? null : disputeDue(change, tried.payment_method),
  })
  change.emit('charge.succeeded', charge, charge)
  const settled: PaymentIntentRecord = { ...withCharge(intent, charge), last_payment_error: null }
  return manual
    ? changed(
        change,
        { ...settled, status: 'requires_capture', amount_capturable: intent.amount },
        'amount_capturable_updated',
      )
    : changed(change, { ...settled, status: 'succeeded', amount_received: intent.amount }, 'succeeded')
}

/** The failed charge and intent are booked; `tried` is undefined where the card was never charged. */
function failed(
  change: Change,
  intent: PaymentIntentRecord,
  why: PaymentFailure,
  tried: ChargeRecord | undefined,
): PaymentIntentRecord {
  const failure = { ...why, charge: tried?.id ?? null }
  let next = intent
  if (tried) {
    const charge = change.put<ChargeRecord>({ ...tried, status: 'failed', failure })
    change.emit('charge.failed', charge, charge)
    next = withCharge(next, charge)
  }
  const waiting = {
    ...next,
    status: 'requires_payment_method' as const,
    payment_method: null,
    last_payment_error: failure,
  }
  return changed(change, waiting, 'payment_failed')
}

function declined(change: Change, intent: PaymentIntentRecord, method: TestPaymentMethod, why: Decline): ApiError {
  const failure = failureOf(why, method)
  const after = failed(change, intent, failure, newCharge(change, intent, method))
  const { param, advice_code } = failure
  return new ApiError(
    402,
    {
      type: 'card_error',
      code: why.code,
      decline_code: why.decline_code,
      message: why.message,
      ...(param === null ? {} : { param }),
      ...(advice_code === null ? {} : { advice_code }),
      ...(after.latest_charge === null ? {} : { charge: after.latest_charge }),
    },
    { intent: after },
  )
}

function failureOf(why: Decline, method: TestPaymentMethod): PaymentFailure {
  return { ...why, charge: null, payment_method: method.id }
}

function authenticationFailure(method: TestPaymentMethod): PaymentFailure {
  return {
    code: 'payment_intent_authentication_failure',
    decline_code: null,
    message: 'The provided payment method has failed authentication. Provide a new payment method to try again.',
    param: null,
    advice_code: null,
    charge: null,
    payment_method: method.id,
  }
}

function withCharge(intent: PaymentIntentRecord, charge: ChargeRecord): PaymentIntentRecord {
  const charges = intent.charges.includes(charge.id) ? intent.charges : [...intent.charges, charge.id]
  return { ...intent, charges, latest_charge: charge.id }
}

function changed(change: Change, intent: PaymentIntentRecord, what: string): PaymentIntentRecord {
  change.put(intent)
  change.emit(`payment_intent.${what}`, intent, intent)
  return intent
}

function disputeDue(change: Change, methodId: string | null): ChargeRecord['dispute_due'] {
  const sequel = findPaymentMethod(methodId ?? '')?.sequel
  if (sequel !== 'dispute' && sequel !== 'inquiry') return null
  const status = sequel === 'dispute' ? 'needs_response' : 'warning_needs_response'
  return { at: Date.now() + change.books.terms.settleDelayMs, status }
}
