/**
 * What Checkout asks of a payment provider, in Checkout's words. `stripe.ts` is the only adapter.
 *
 * A call never throws for what the provider or the network did: whatever happened is an outcome. An outcome is
 * definite, `not_sent` (surely nothing happened) or `unknown` (anything may have happened, and someone has to ask).
 * Amounts are integers in the minor units of the order's currency as Checkout counts them; where the provider counts
 * differently (ISK and UGX at Stripe), the adapter converts in both directions.
 */
export interface PaymentProvider {
  /** What the claim of a new payment records: the API version, and the way that parameters are built from an order. */
  readonly versions: { api: string; parameters: number }
  /** Which account and mode the configured credentials belong to. Rejects with `ProviderUnavailable` while unknown. */
  identity(): Promise<ProviderIdentity>
  /** Create and confirm one payment. Repeating it with the same `providerKey` and parameters is the same payment. */
  charge(request: ChargeRequest, limits: CallLimits): Promise<CallResult<PaymentOutcome>>
  /** Read one payment by the provider's id. */
  retrieve(target: ProviderTarget, intentId: string, limits: CallLimits): Promise<CallResult<PaymentOutcome>>
  /**
   * Search for the payment of an order whose id we never learnt, by paging the list by creation time and matching our
   * metadata. `absent` means that every page was read and none matched.
   */
  find(search: PaymentSearch, limits: CallLimits): Promise<CallResult<PaymentOutcome>>
  /** Cancel a payment that has not succeeded. Where it can no longer be canceled the outcome says what it is instead. */
  cancel(
    target: ProviderTarget,
    intentId: string,
    providerKey: string,
    limits: CallLimits,
  ): Promise<CallResult<PaymentOutcome>>
  /** Capture `amount` of an authorized payment and release the rest. */
  capture(request: CaptureRequest, limits: CallLimits): Promise<CallResult<PaymentOutcome>>
  /** Give money back. Repeating it with the same `providerKey` and parameters is the same refund. */
  refund(request: RefundRequest, limits: CallLimits): Promise<CallResult<RefundOutcome>>
  retrieveRefund(target: ProviderTarget, refundId: string, limits: CallLimits): Promise<CallResult<RefundOutcome>>
  /** Every refund of one payment, those made in the provider's dashboard included. */
  listRefunds(
    target: ProviderTarget,
    intentId: string,
    limits: CallLimits,
  ): Promise<CallResult<Listing<ProviderRefund>>>
  /** Every dispute of one payment, inquiries included. */
  listDisputes(
    target: ProviderTarget,
    intentId: string,
    limits: CallLimits,
  ): Promise<CallResult<Listing<ProviderDispute>>>
  /** Every payment created in a period, oldest to newest not guaranteed; used to compare the two sets of books. */
  listPayments(
    target: ProviderTarget,
    period: { from: Date; to: Date },
    limits: CallLimits,
  ): AsyncIterable<ProviderPayment>
}

/** The credentials' own account (`acct_…`) and whether they move real money. */
export interface ProviderIdentity {
  account: string
  livemode: boolean
}

/** What a claim records and every later call uses exactly: the same payment must be meant on every repeat. */
export interface ProviderTarget {
  /** The connected account that the tenant charges on, or null for the credentials' own. */
  connectedAccount: string | null
  /** The account that the money goes to: the connected one, or else the credentials' own. */
  account: string
  livemode: boolean
  apiVersion: string
}

export interface CallLimits {
  /** Longest time for the whole call, ms. */
  timeoutMs: number
  /** Awaited before each HTTP call after the first: a call of the port may need several, and each takes its turn. */
  turn?(): Promise<void>
}

export interface ChargeRequest {
  target: ProviderTarget
  /** Same on every repeat of the attempt: `<tenant id>:<idempotency key>`. At most 255 characters (Stripe's limit). */
  providerKey: string
  /** Version of the way that parameters are built from the order; old attempts repeat with the old way. */
  parameterVersion: number
  /** Minor units. */
  amount: number
  currency: string
  capture: 'automatic' | 'manual'
  paymentMethod: string
  /** The customer is not there: a demanded 3-D Secure is a decline. */
  offSession: boolean
  metadata: OrderMetadata
}

/** What we write on every payment, so that it can be found and judged without our books. */
interface OrderMetadata {
  tenant: string
  order: string
  key: string
}

export interface PaymentSearch {
  target: ProviderTarget
  metadata: Pick<OrderMetadata, 'tenant' | 'order'>
  createdFrom: Date
  createdTo: Date
}

export interface CaptureRequest {
  target: ProviderTarget
  intentId: string
  /** Minor units; at most what was authorized. */
  amount: number
  currency: string
  providerKey: string
}

export interface RefundRequest {
  target: ProviderTarget
  intentId: string
  /** Minor units. */
  amount: number
  currency: string
  providerKey: string
  metadata: { tenant: string; order: string; refund: string }
}

/** The outcome, and a line per HTTP call made for it. */
export interface CallResult<Outcome> {
  outcome: Outcome
  calls: ProviderCall[]
}

/** One HTTP call to the provider, as kept in `provider_calls`. */
export interface ProviderCall {
  operation: string
  /** The provider's name for the request (`req_…`), where an answer arrived. */
  requestId: string | null
  /** The outcome's `kind`. */
  outcome: string
  httpStatus: number | null
  /** The provider's error code, or the kind of network failure. Never free text: that could hold personal data. */
  errorCode: string | null
  durationMs: number
  /** The provider said that this is its stored answer to an earlier call under the same key. */
  replayed: boolean
  /** When the call began, by this process's clock. */
  startedAt: Date
}

export type PaymentOutcome =
  | { kind: 'succeeded'; payment: ProviderPayment }
  | { kind: 'authorized'; payment: ProviderPayment }
  | { kind: 'requires_action'; payment: ProviderPayment }
  | { kind: 'canceled'; payment: ProviderPayment }
  /** The payment exists and waits for a payment method or a confirmation: it failed or never completed. */
  | { kind: 'incomplete'; payment: ProviderPayment }
  | {
      kind: 'declined'
      code: 'card_declined' | 'payment_method_invalid'
      declineCode: string | null
      /** A decline usually carries the payment that it left behind. */
      payment: ProviderPayment | null
    }
  /** Only from `retrieve` and `find`: the provider has no such payment. */
  | { kind: 'absent' }
  | NotSent
  | Unknown

/** On an allow-list of failures that surely had no effect: refused connection, DNS failure, 429, 401, 403. */
export interface NotSent {
  kind: 'not_sent'
  reason: 'connection_refused' | 'dns_failure' | 'rate_limited' | 'unauthorized' | 'forbidden' | 'no_time'
  /** Someone has to act: the credentials are wrong. */
  alert: boolean
  /** From the provider's Retry-After, ms. */
  retryAfterMs: number | null
}

export interface Unknown {
  kind: 'unknown'
  /** A closed vocabulary that is kept as the order's `reconcile_reason`, e.g. `timeout`, `connection_lost`,
   * `provider_error`, `key_in_use`, `idempotency_error`, `processing`, `unreadable_answer`, `provider_rejected` (a refusal
   * that is no decline), `several_payments` (of one order), `unexpected_error` (a fault of ours). */
  reason: string
  /** The same call again, with the same key, may bring a definite outcome soon. False for a 5xx that is a replay or that
   * the provider says will be replayed (a key replays its first answer for ever, so only a look-up tells), `processing`
   * and `idempotency_error`. */
  worthRetrying: boolean
  /** The provider replayed a stored 5xx: sending again is pointless for good. */
  replayedFailure: boolean
  /** Where the answer still told which payment it is about. */
  intentId: string | null
}

export interface ProviderPayment {
  intentId: string
  chargeId: string | null
  /** The provider's own word. */
  status: string
  /** Minor units, as asked. */
  amount: number
  /** Minor units captured so far, refunds not subtracted. */
  amountCaptured: number
  /** Minor units on hold that can still be captured. */
  amountCapturable: number
  /** Minor units of what was captured that went back, refunds made in the provider's dashboard included. The part of a
   * hold that was let go is no refund. Not known of a payment that came with a decline: 0. */
  amountRefunded: number
  /** Upper-case ISO 4217. */
  currency: string
  livemode: boolean
  createdAt: Date
  /** Until when a hold can be captured. */
  captureBefore: Date | null
  /** For the customer's browser, while the payment waits for an action. */
  clientSecret: string | null
  declineCode: string | null
  metadata: Partial<OrderMetadata>
}

export type RefundOutcome =
  | { kind: 'succeeded' | 'pending' | 'failed'; refund: ProviderRefund }
  /** The provider said no for good, e.g. the charge is already refunded; nothing happened. */
  | { kind: 'rejected'; code: string }
  | { kind: 'absent' }
  | NotSent
  | Unknown

export interface ProviderRefund {
  refundId: string
  intentId: string | null
  /** Minor units. */
  amount: number
  currency: string
  status: 'succeeded' | 'pending' | 'failed'
  createdAt: Date
  metadata: { tenant?: string; order?: string; refund?: string }
}

export interface ProviderDispute {
  disputeId: string
  /** Minor units. */
  amount: number
  currency: string
  /** The provider's own word. */
  status: string
  /** What has become of the money last: taken from the balance, or given back after that. Null while it stays. */
  moved: 'withdrawn' | 'reinstated' | null
}

export type Listing<Item> = { kind: 'listed'; items: Item[] } | NotSent | Unknown

/** The provider could not be asked who we are; nothing has happened. */
export class ProviderUnavailable extends Error {
  override name = 'ProviderUnavailable'
}

/**
 * What is kept of a notification: what we use of it, and nothing of a person. It is news, never an order: whatever
 * counts is asked of the provider or agrees with our own books first.
 */
export interface ProviderEvent {
  /** `evt_…`, the same on every delivery. */
  id: string
  /** The provider's own word, e.g. `payment_intent.succeeded`. */
  type: string
  /** The connected account that it is about, or null for the credentials' own. */
  account: string | null
  livemode: boolean
  createdAt: Date
  apiVersion: string | null
  object: 'payment_intent' | 'charge' | 'refund' | 'dispute' | 'other'
  objectId: string | null
  /** False where the object is of a kind we know but not in a form or currency we know: then only ids are given. */
  readable: boolean
  intentId: string | null
  chargeId: string | null
  refundId: string | null
  disputeId: string | null
  /** The object's status, in the provider's own word; of a refund one of `ProviderRefund`'s. */
  status: string | null
  /** Minor units: what the object is about. */
  amount: number | null
  /** Of a payment or its charge, in minor units. */
  amountCaptured: number | null
  amountCapturable: number | null
  /** Of a charge alone, in minor units: what went back of what was captured. */
  amountRefunded: number | null
  /** Upper-case ISO 4217. */
  currency: string | null
  metadata: Partial<OrderMetadata> & { refund?: string }
  declineCode: string | null
  /** Of a charge alone: until when the hold can be captured. */
  captureBefore: Date | null
  disputeReason: string | null
}

/** Reads what the provider sends by itself. */
export interface NotificationReader {
  /** The provider's name in the inbox's path and rows. */
  provider: string
  /** The header that carries the signature, in lower case. */
  signatureHeader: string
  /** Throws `WebhookSignatureInvalid` or `WebhookUnreadable`. */
  read(rawBody: Buffer, signature: string | undefined, now: Date): ProviderEvent
}

/** What is wrong with a signature; of one that does not match, its time means nothing. */
type SignatureFault = 'missing' | 'malformed' | 'no_match' | 'too_old' | 'in_the_future'

/** Nobody who knows the secret has signed this, or not lately: it is to be refused. */
export class WebhookSignatureInvalid extends Error {
  override name = 'WebhookSignatureInvalid'
  readonly fault: SignatureFault

  constructor(fault: SignatureFault) {
    super(`The signature is refused: ${fault}`)
    this.fault = fault
  }
}

/** Signed, but no notification: without an id and a type there is nothing to keep. */
export class WebhookUnreadable extends Error {
  override name = 'WebhookUnreadable'
}
