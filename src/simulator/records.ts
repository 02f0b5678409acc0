/** The simulator's own books. A record is never changed in place: a new version replaces it, so that an event
 * may hold the version of its moment. Amounts are in the currency's minor unit as Stripe counts it, `created`
 * is in unix seconds, every other time says its unit. */

export type Scope = { account: string; livemode: boolean }

type Row = Scope & { id: string; created: number; metadata: Record<string, string> }

export type PaymentIntentStatus =
  | 'requires_payment_method'
  | 'requires_confirmation'
  | 'requires_action'
  | 'processing'
  | 'requires_capture'
  | 'canceled'
  | 'succeeded'

export type PaymentFailure = {
  code: string
  decline_code: string | null
  message: string
  param: string | null
  advice_code: string | null
  charge: string | null
  payment_method: string
}

export type PaymentIntentRecord = Row & {
  object: 'payment_intent'
  amount: number
  amount_capturable: number
  amount_received: number
  currency: string
  status: PaymentIntentStatus
  capture_method: 'automatic' | 'automatic_async' | 'manual'
  confirmation_method: 'automatic' | 'manual'
  client_secret: string
  customer: string | null
  description: string | null
  receipt_email: string | null
  setup_future_usage: 'on_session' | 'off_session' | null
  statement_descriptor: string | null
  statement_descriptor_suffix: string | null
  payment_method: string | null
  payment_method_types: string[]
  allowed_payment_method_types: string[] | null
  automatic_payment_methods: { enabled: true; allow_redirects: 'always' | 'never' } | null
  last_payment_error: PaymentFailure | null
  return_url: string | null
  cancellation_reason: string | null
  canceled_at: number | null
  latest_charge: string | null
  /** The idempotency key of the request that created it. */
  idempotency_key: string | null
  charges: string[]
  refunds: string[]
  disputes: string[]
}

export type ChargeRecord = Row & {
  object: 'charge'
  amount: number
  amount_captured: number
  /** Refunds that have not failed, and what a partial capture or a cancel released of the hold, as Stripe counts it. */
  amount_refunded: number
  currency: string
  captured: boolean
  customer: string | null
  description: string | null
  disputed: boolean
  failure: PaymentFailure | null
  payment_intent: string
  payment_method: string
  status: 'succeeded' | 'pending' | 'failed'
  authenticated: boolean
  /** Unix seconds at which the hold lapses; null where nothing was held. */
  capture_before: number | null
  /** A dispute that the test card brings with it: when (unix ms), and with which status it opens. */
  dispute_due: { at: number; status: DisputeStatus } | null
}

export type RefundStatus = 'pending' | 'succeeded' | 'failed'

export type RefundRecord = Row & {
  object: 'refund'
  amount: number
  currency: string
  charge: string
  payment_intent: string
  payment_method: string
  reason: string | null
  status: RefundStatus
  failure_reason: string | null
  /** What becomes of it later: when (unix ms), and which status. */
  settles: { at: number; status: 'succeeded' | 'failed' } | null
  idempotency_key: string | null
}

export type DisputeStatus =
  | 'warning_needs_response'
  | 'warning_under_review'
  | 'warning_closed'
  | 'needs_response'
  | 'under_review'
  | 'won'
  | 'lost'

export type DisputeRecord = Row & {
  object: 'dispute'
  amount: number
  currency: string
  charge: string
  payment_intent: string
  reason: string
  status: DisputeStatus
  due_by: number
  /** True while the disputed amount is withdrawn from the balance. */
  funds_withdrawn: boolean
  movements: { id: string; amount: number; created: number }[]
}

export type Subject = PaymentIntentRecord | ChargeRecord | RefundRecord | DisputeRecord

export type EventRecord = Scope & {
  object: 'event'
  id: string
  created: number
  type: string
  /** The record as it was, or a hand-made object as it is to be sent. */
  subject: Subject | { object: 'hand_made'; body: Record<string, unknown> }
  previous: Record<string, unknown> | null
  request: { id: string; idempotency_key: string | null } | null
  /** True while it still has to be delivered. */
  pending: boolean
}

export type StoredAnswer = {
  scope: string
  key: string
  /** Method, path and parameters: what a repeat is compared with. */
  fingerprint: string
  path: string
  status: number
  body: string
  request_id: string
  /** Unix milliseconds, from which the lifetime of the key counts. */
  at: number
}

export function scopeName(scope: Scope): string {
  return `${scope.account}:${scope.livemode ? 'live' : 'test'}`
}
