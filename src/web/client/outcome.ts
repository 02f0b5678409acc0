/** What an answer of the service means for the customer, and for the key. */
import type { Attempt, CheckoutProblem, Order, OrderLine } from './contract.ts'
import type { Reply } from './wire.ts'

/** As much of an order as the browser keeps of it. */
export type KnownOrder = NonNullable<Attempt['order']> & { lines?: OrderLine[] }

export type Outcome =
  /** Paid, or authorized where the capture is manual. */
  | { kind: 'paid'; order: KnownOrder }
  /** The customer's bank asks: hand `clientSecret` to the provider's script, then call `confirm`. */
  | { kind: 'action_required'; order: Order; clientSecret: string }
  /** No money moved, and none will under this key. Another card is paid with a new key, which `pay` makes. */
  | { kind: 'declined'; declineCode: string | undefined; orderId: string | undefined }
  /** Canceled or expired. No money moved, and none will under this key. */
  | { kind: 'canceled'; orderId: string | undefined }
  /** Refused before any effect (`out_of_stock`, `price_changed`, `invalid_request`, …). The key is still free and is kept. */
  | { kind: 'refused'; problem: CheckoutProblem }
  /** Another attempt, with a key that this browser does not have, pays or has paid for the cart. */
  | { kind: 'cart_taken'; paid: boolean; orderId: string | undefined }
  /** Nothing of this attempt is known at the service, and nothing is being sent. The key is kept. */
  | { kind: 'not_started' }
  /** A fault of the storefront or its settings, such as a key that is not valid. Attempt and key are kept. */
  | { kind: 'failed'; problem: CheckoutProblem | undefined }

/** How an attempt ended: what is kept of it. */
export type End = Extract<Outcome, { kind: 'paid' | 'declined' | 'canceled' }>

/** Why the same request is going to be sent again. */
export type WaitReason =
  /** No answer came: it may or may not have had an effect. */
  | 'no_answer'
  /** The service or an earlier request with this key is busy. */
  | 'busy'
  /** The provider's word is awaited. The order is known, and it is charged at most once. */
  | 'checking'

export type Meaning =
  | Outcome
  | { kind: 'wait'; reason: WaitReason; retryAfterMs: number | null }
  /** The attempt exists, but the stored answer cannot be had with this request. */
  | { kind: 'look_up' }

/** Of an answer to `POST /v1/checkouts`. */
export function meaningOfCheckout(reply: Reply): Meaning {
  const again = meaningOfSilence(reply)
  if (again !== null) return again
  const { status, json, retryAfterMs } = reply as Extract<Reply, { kind: 'answered' }>
  if (status === 201) return { kind: 'paid', order: knownOrder(json as Order) }
  if (status === 202) {
    const order = json as Order
    const secret = order.payment.client_secret
    return order.status === 'requires_action' && secret !== undefined
      ? { kind: 'action_required', order, clientSecret: secret }
      : { kind: 'wait', reason: 'checking', retryAfterMs }
  }
  const problem = json as CheckoutProblem
  switch (problem.code) {
    case 'card_declined':
    case 'payment_method_invalid':
      return { kind: 'declined', declineCode: problem.decline_code, orderId: problem.order_id }
    case 'checkout_canceled':
      return { kind: 'canceled', orderId: problem.order_id }
    case 'idempotency_key_in_progress':
      return { kind: 'wait', reason: 'busy', retryAfterMs }
    case 'idempotency_key_conflict':
    case 'idempotency_key_expired':
      return { kind: 'look_up' }
    case 'cart_in_progress':
    case 'cart_already_paid':
      return { kind: 'cart_taken', paid: problem.code === 'cart_already_paid', orderId: problem.order_id }
    case 'unauthorized':
    case 'forbidden':
    case 'not_found':
    case 'method_not_allowed':
      return { kind: 'failed', problem }
    default:
      return { kind: 'refused', problem }
  }
}

/** Of an answer to `POST /v1/checkouts/{key}/cancel`. */
export function meaningOfCancel(reply: Reply): Meaning {
  const again = meaningOfSilence(reply)
  if (again !== null) return again
  const { status, json, retryAfterMs } = reply as Extract<Reply, { kind: 'answered' }>
  if (status === 200) return endOfOrder(json as Order) ?? { kind: 'failed', problem: undefined }
  if (status === 202) return { kind: 'wait', reason: 'checking', retryAfterMs }
  const problem = json as CheckoutProblem
  if (problem.code === 'idempotency_key_in_progress') return { kind: 'wait', reason: 'busy', retryAfterMs }
  if (problem.code === 'not_found') return { kind: 'not_started' }
  if (problem.code === 'checkout_already_settled' && problem.order !== undefined) {
    return endOfOrder(problem.order) ?? { kind: 'failed', problem }
  }
  return { kind: 'failed', problem }
}

/** Of an answer to `GET /v1/checkouts/{key}`. */
export function meaningOfLookUp(reply: Reply): Meaning {
  const again = meaningOfSilence(reply)
  if (again !== null) return again
  const { status, json } = reply as Extract<Reply, { kind: 'answered' }>
  if (status === 404) return { kind: 'not_started' }
  if (status !== 200) return { kind: 'failed', problem: json as CheckoutProblem }
  const { order } = json as Attempt
  const end = order === undefined ? null : endOfOrder(order)
  return end ?? { kind: 'wait', reason: 'checking', retryAfterMs: null }
}

/** No answer, or one that says nothing of the attempt. Null where it says something. */
function meaningOfSilence(reply: Reply): Meaning | null {
  if (reply.kind === 'lost') return { kind: 'wait', reason: 'no_answer', retryAfterMs: null }
  const { status, json, retryAfterMs } = reply
  // 408: it did not wholly arrive; 429: a rate limit; 5xx: nobody knows, or surely nothing happened.
  if (status === 408 || status === 429 || status >= 500) return { kind: 'wait', reason: 'busy', retryAfterMs }
  if (typeof json === 'object' && json !== null && (status < 300 || 'code' in json)) return null
  // Not the service but something between, which refuses or pretends (a hotel's network, say).
  return status >= 400
    ? { kind: 'failed', problem: undefined }
    : { kind: 'wait', reason: 'no_answer', retryAfterMs: null }
}

function endOfOrder(order: KnownOrder | Order): End | null {
  switch (order.status) {
    case 'paid':
    case 'authorized':
    case 'partially_refunded':
    case 'refunded':
      return { kind: 'paid', order: knownOrder(order) }
    case 'payment_failed':
      return {
        kind: 'declined',
        declineCode: 'payment' in order ? order.payment.decline_code : undefined,
        orderId: order.id,
      }
    case 'canceled':
      return { kind: 'canceled', orderId: order.id }
    default:
      return null
  }
}

function knownOrder({ id, status, total, currency, lines }: KnownOrder): KnownOrder {
  return { id, status, total, currency, ...(lines === undefined ? {} : { lines }) }
}
