/** Stripe's test payment methods (https://docs.stripe.com/testing) and what each does here:
 *
 * | payment method | on confirm | afterwards |
 * |---|---|---|
 * | pm_card_visa, _visa_debit, _mastercard, _mastercard_debit, _amex, _discover, _diners, _jcb, _unionpay | succeeds | |
 * | pm_card_[visa_]chargeDeclined | declined: generic_decline | |
 * | pm_card_[visa_]chargeDeclinedInsufficientFunds, …LostCard, …StolenCard, …VelocityLimitExceeded | declined | |
 * | pm_card_[visa_]chargeDeclinedExpiredCard, …IncorrectCvc, …ProcessingError, …Fraudulent | declined | |
 * | pm_card_threeDSecure2Required, pm_card_threeDSecureRequired, pm_card_authenticationRequired | requires_action; off session declined | succeeds once authenticated |
 * | pm_card_authenticationRequiredChargeDeclinedInsufficientFunds, pm_card_threeDSecureRequiredChargeDeclined | requires_action | declined once authenticated |
 * | pm_card_createDispute | succeeds | a dispute opens |
 * | pm_card_createDisputeInquiry | succeeds | an inquiry opens |
 * | pm_card_pendingRefund | succeeds | a refund is pending, then succeeds |
 * | pm_card_refundFail | succeeds | a refund succeeds, then fails |
 * | pm_card_sim_processing (the simulator's own) | processing | settled through /_sim |
 */

export type Decline = {
  code: string
  decline_code: string
  message: string
  param: string | null
  advice_code: string | null
}

export type TestPaymentMethod = {
  id: string
  brand: string
  last4: string
  funding: 'credit' | 'debit'
  /** The customer must authenticate before the card is charged. */
  authenticates: boolean
  decline: Decline | null
  /** What befalls a payment that has succeeded. */
  sequel: 'dispute' | 'inquiry' | 'refund_pending' | 'refund_fails' | null
  processing: boolean
}

function decline(code: string, declineCode: string, message: string, advice: string | null, param?: string): Decline {
  return { code, decline_code: declineCode, message, advice_code: advice, param: param ?? null }
}

const declined = 'Your card was declined.'
export const genericDecline = decline('card_declined', 'generic_decline', declined, 'try_again_later')
const declines = {
  '': genericDecline,
  InsufficientFunds: decline(
    'card_declined',
    'insufficient_funds',
    'Your card has insufficient funds.',
    'try_again_later',
  ),
  LostCard: decline('card_declined', 'lost_card', declined, 'do_not_try_again'),
  StolenCard: decline('card_declined', 'stolen_card', declined, 'do_not_try_again'),
  VelocityLimitExceeded: decline(
    'card_declined',
    'card_velocity_exceeded',
    'Your card was declined for exceeding its balance, credit or transaction limit.',
    'try_again_later',
  ),
  ExpiredCard: decline('expired_card', 'expired_card', 'Your card has expired.', 'confirm_card_data', 'exp_month'),
  IncorrectCvc: decline(
    'incorrect_cvc',
    'incorrect_cvc',
    "Your card's security code is incorrect.",
    'confirm_card_data',
    'cvc',
  ),
  ProcessingError: decline(
    'processing_error',
    'processing_error',
    'An error occurred while processing your card. Try again later.',
    'try_again_later',
  ),
  Fraudulent: decline('card_declined', 'fraudulent', declined, null),
} satisfies Record<string, Decline>

/** The card needs its holder, who is not there (`off_session`). */
export const authenticationRequired = decline(
  'authentication_required',
  'authentication_required',
  'Your card was declined. This transaction requires authentication.',
  null,
)

/** The caller asked for an error instead of `requires_action` (`error_on_requires_action`). */
export const authenticationNotHandled = decline(
  'authentication_required',
  'authentication_not_handled',
  'This payment requires additional user action before it can be completed successfully.',
  null,
)

const methods = new Map<string, TestPaymentMethod>()

function add(id: string, traits: Partial<TestPaymentMethod> = {}): void {
  const plain = { brand: 'visa', last4: '4242', funding: 'credit' as const }
  methods.set(id, { id, ...plain, authenticates: false, decline: null, sequel: null, processing: false, ...traits })
}

add('pm_card_visa')
add('pm_card_visa_debit', { last4: '5556', funding: 'debit' })
add('pm_card_mastercard', { brand: 'mastercard', last4: '4444' })
add('pm_card_mastercard_debit', { brand: 'mastercard', last4: '8210', funding: 'debit' })
add('pm_card_amex', { brand: 'amex', last4: '8431' })
add('pm_card_discover', { brand: 'discover', last4: '9424' })
add('pm_card_diners', { brand: 'diners', last4: '3237' })
add('pm_card_jcb', { brand: 'jcb', last4: '0505' })
add('pm_card_unionpay', { brand: 'unionpay', last4: '0005' })
for (const [reason, why] of Object.entries(declines)) {
  add(`pm_card_chargeDeclined${reason}`, { last4: '0002', decline: why })
  add(`pm_card_visa_chargeDeclined${reason}`, { last4: '0002', decline: why })
}
add('pm_card_threeDSecure2Required', { last4: '3220', authenticates: true })
add('pm_card_threeDSecureRequired', { last4: '3063', authenticates: true })
add('pm_card_authenticationRequired', { last4: '3184', authenticates: true })
add('pm_card_threeDSecureRequiredChargeDeclined', { last4: '1629', authenticates: true, decline: genericDecline })
add('pm_card_authenticationRequiredChargeDeclinedInsufficientFunds', {
  last4: '3178',
  authenticates: true,
  decline: declines.InsufficientFunds,
})
add('pm_card_createDispute', { last4: '0259', sequel: 'dispute' })
add('pm_card_createDisputeInquiry', { last4: '1976', sequel: 'inquiry' })
add('pm_card_pendingRefund', { last4: '7726', sequel: 'refund_pending' })
add('pm_card_refundFail', { last4: '5126', sequel: 'refund_fails' })
add('pm_card_sim_processing', { processing: true })

export function findPaymentMethod(id: string): TestPaymentMethod | undefined {
  return methods.get(id)
}
