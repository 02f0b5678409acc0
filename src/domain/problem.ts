/**
 * Every refusal that a client can meet, as RFC 9457 problem details: code, status, title. A `Problem` is thrown where it
 * is found and becomes an answer at the door.
 */

const catalog = {
  invalid_request: [400, 'The request is not valid'],
  idempotency_key_missing: [400, 'The Idempotency-Key header is required'],
  idempotency_key_invalid: [400, 'The idempotency key is not valid'],
  unauthorized: [401, 'A valid API key is required'],
  webhook_signature_invalid: [401, 'The signature does not belong to this body'],
  card_declined: [402, 'The card was declined'],
  payment_method_invalid: [402, 'The payment method cannot be used'],
  forbidden: [403, 'This API key may not do that'],
  not_found: [404, 'There is no such thing here'],
  method_not_allowed: [405, 'The method is not allowed here'],
  out_of_stock: [409, 'Not enough in stock'],
  price_changed: [409, 'The price has changed'],
  idempotency_key_conflict: [409, 'The Idempotency-Key was used with another request'],
  idempotency_key_in_progress: [409, 'The first request with this Idempotency-Key is still running'],
  idempotency_key_expired: [409, 'The stored answer for this Idempotency-Key is gone'],
  cart_in_progress: [409, 'Another attempt is paying for this cart'],
  cart_already_paid: [409, 'This cart has been paid'],
  checkout_canceled: [409, 'The checkout was canceled'],
  checkout_already_settled: [409, 'The checkout can no longer be canceled'],
  hold_already_ending: [409, 'The hold has already been ended otherwise'],
  order_state_conflict: [409, 'The order is not in a state that allows this'],
  refund_exceeds_captured: [409, 'The refund is more than what is left of the captured amount'],
  usage_conflict: [409, 'This meter of the run was recorded with another quantity'],
  run_closed: [409, 'The run has ended'],
  job_state_conflict: [409, 'The job is not in a state that allows this'],
  email_state_conflict: [409, 'The email is not in a state that allows this'],
  provider_disagrees: [409, 'The payment provider says otherwise'],
  request_timeout: [408, 'The request took too long to arrive'],
  payload_too_large: [413, 'The body is too large'],
  unsupported_media_type: [415, 'The body must be application/json'],
  unknown_sku: [422, 'A product is not known'],
  unknown_meter: [422, 'A meter is not known'],
  currency_mismatch: [422, 'The currencies do not agree'],
  amount_not_chargeable: [422, 'The amount cannot be charged'],
  rate_limited: [429, 'Too many requests'],
  headers_too_large: [431, 'The headers are too large'],
  internal: [500, 'Something went wrong on our side'],
  overloaded: [503, 'Too busy at the moment'],
  database_unavailable: [503, 'The database cannot be reached at the moment'],
  provider_unavailable: [503, 'The payment provider cannot be reached at the moment'],
} as const satisfies Record<string, readonly [number, string]>

export type ProblemCode = keyof typeof catalog

export const problemCodes = Object.keys(catalog) as ProblemCode[]

interface ProblemOptions {
  detail?: string
  /** Further members of the problem document. */
  members?: Record<string, unknown>
  /** The order that it is about, where the document does not name it: for the log alone. */
  orderId?: string
  /** For the Retry-After header, seconds. */
  retryAfterSeconds?: number
  /** Where a stored or shared answer is given again. */
  replayed?: boolean
  cause?: unknown
}

export class Problem extends Error {
  override name = 'Problem'
  readonly code: ProblemCode
  readonly status: number
  readonly title: string
  readonly options: ProblemOptions

  constructor(code: ProblemCode, options: ProblemOptions = {}) {
    super(options.detail ?? catalog[code][1], options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.status = catalog[code][0]
    this.title = catalog[code][1]
    this.options = options
  }
}

/** The problem document. Member order is fixed: stored answers are replayed byte for byte. */
export function problemDocument(problem: Problem, requestId: string): Record<string, unknown> {
  return {
    type: `urn:checkout:problem:${problem.code}`,
    title: problem.title,
    status: problem.status,
    detail: problem.message,
    code: problem.code,
    request_id: requestId,
    ...problem.options.members,
  }
}
