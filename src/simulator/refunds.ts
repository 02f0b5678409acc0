import type { Change } from './books.ts'
import { checkStep, display } from './currencies.ts'
import { invalidRequest } from './errors.ts'
import { findPaymentMethod } from './payment-methods.ts'
import { newId } from './random.ts'
import type { ChargeRecord, PaymentIntentRecord, RefundRecord } from './records.ts'

export type RefundRequest = { amount: number | undefined; reason: string | null; metadata: Record<string, string> }

/** What can still be refunded of a charge, in minor units. */
export function refundable(charge: ChargeRecord): number {
  return charge.captured ? charge.amount - charge.amount_refunded : 0
}

/** Refunds a captured charge; everything that is left where no amount is given. Throws Stripe's 400 where the charge
 * cannot be refunded or not that much. */
export function refund(change: Change, charge: ChargeRecord, request: RefundRequest): RefundRecord {
  if (charge.status !== 'succeeded')
    throw invalidRequest(`Charge ${charge.id} has not succeeded, so it cannot be refunded.`)
  if (!charge.captured) {
    throw invalidRequest(
      `Charge ${charge.id} has not been captured. Cancel the PaymentIntent ${charge.payment_intent} instead.`,
    )
  }
  if (holdsMoneyBack(change, charge)) {
    const message = `Charge ${charge.id} has been charged back; cannot issue a refund.`
    throw invalidRequest(message, { code: 'charge_disputed' })
  }
  const left = refundable(charge)
  if (left === 0) {
    const message = `Charge ${charge.id} has already been refunded.`
    throw invalidRequest(message, { code: 'charge_already_refunded' })
  }
  const amount = request.amount ?? left
  checkStep(amount, charge.currency, 'amount')
  if (amount > left) {
    const [asked, most] = [display(amount, charge.currency), display(left, charge.currency)]
    throw invalidRequest(`Refund amount (${asked}) is greater than unrefunded amount on charge (${most})`, {
      param: 'amount',
    })
  }
  return booked(change, charge, amount, request)
}

function booked(change: Change, charge: ChargeRecord, amount: number, request: RefundRequest): RefundRecord {
  const sequel = findPaymentMethod(charge.payment_method)?.sequel
  const at = Date.now() + change.books.terms.settleDelayMs
  const refund = change.put<RefundRecord>({
    object: 'refund',
    id: newId('re_'),
    account: charge.account,
    livemode: charge.livemode,
    created: change.books.now(),
    metadata: request.metadata,
    amount,
    currency: charge.currency,
    charge: charge.id,
    payment_intent: charge.payment_intent,
    payment_method: charge.payment_method,
    reason: request.reason,
    status: sequel === 'refund_pending' ? 'pending' : 'succeeded',
    failure_reason: null,
    settles:
      sequel === 'refund_pending'
        ? { at, status: 'succeeded' }
        : sequel === 'refund_fails'
          ? { at, status: 'failed' }
          : null,
    idempotency_key: change.cause?.idempotency_key ?? null,
  })
  const intent = change.books.intents.peek(charge.payment_intent) as PaymentIntentRecord
  change.put({ ...intent, refunds: [...intent.refunds, refund.id] })
  const after = change.put({ ...charge, amount_refunded: charge.amount_refunded + amount })
  change.emit('refund.created', refund, refund)
  change.emit('charge.refunded', after, after, { amount_refunded: charge.amount_refunded, refunded: false })
  return refund
}

/** A pending refund succeeds, or a refund fails and its amount returns to the charge, also long after it succeeded. */
export function settleRefund(change: Change, refund: RefundRecord, status: 'succeeded' | 'failed'): RefundRecord {
  if (refund.status === 'failed' || refund.status === status) {
    throw invalidRequest(`Refund ${refund.id} is ${refund.status} and cannot become ${status}.`)
  }
  const failure_reason = status === 'failed' ? 'expired_or_canceled_card' : null
  const settled = change.put({ ...refund, status, failure_reason, settles: null })
  const previous = { status: refund.status }
  const charge = change.books.charges.peek(refund.charge) as ChargeRecord
  if (status === 'failed') {
    change.put({ ...charge, amount_refunded: charge.amount_refunded - refund.amount })
    change.emit('refund.failed', settled, settled)
  }
  change.emit('refund.updated', settled, settled, previous)
  change.emit('charge.refund.updated', settled, settled, previous)
  return settled
}

function holdsMoneyBack(change: Change, charge: ChargeRecord): boolean {
  const intent = change.books.intents.peek(charge.payment_intent)
  const disputes = (intent?.disputes ?? []).map((id) => change.books.disputes.peek(id))
  return disputes.some((dispute) => dispute?.charge === charge.id && dispute.funds_withdrawn)
}
