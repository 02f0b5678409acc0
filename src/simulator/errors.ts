import type { PaymentIntentRecord } from './records.ts'

/** What stands inside `{"error": …}`, see https://docs.stripe.com/api/errors. */
type ErrorFields = {
  type: 'api_error' | 'card_error' | 'idempotency_error' | 'invalid_request_error'
  message: string
  code?: string
  param?: string
  decline_code?: string
  advice_code?: string
  network_decline_code?: string
  charge?: string
}

/** An error as Stripe answers it. `intent` is rendered inside the error as `payment_intent`. */
export class ApiError extends Error {
  readonly status: number
  readonly fields: ErrorFields
  readonly intent: PaymentIntentRecord | undefined
  readonly headers: Record<string, string>

  constructor(
    status: number,
    fields: ErrorFields,
    extra: { intent?: PaymentIntentRecord; headers?: Record<string, string> } = {},
  ) {
    super(fields.message)
    this.name = 'ApiError'
    this.status = status
    this.fields = fields
    this.intent = extra.intent
    this.headers = extra.headers ?? {}
  }
}

type Hints = { param?: string; code?: string; status?: number }

export function invalidRequest(message: string, hints: Hints = {}, intent?: PaymentIntentRecord): ApiError {
  const { status = 400, ...rest } = hints
  return new ApiError(status, { type: 'invalid_request_error', message, ...rest }, intent ? { intent } : {})
}

/** 404 where the missing object is in the path, 400 where it is in a parameter, as Stripe does. */
export function noSuch(what: string, id: string, param: string, status: 400 | 404): ApiError {
  return invalidRequest(`No such ${what}: '${id}'`, { code: 'resource_missing', param, status })
}

/** The object exists, though not in the mode of the key. */
export function inOtherMode(
  what: string,
  found: { id: string; livemode: boolean },
  param: string,
  status: 400 | 404,
): ApiError {
  const [there, here] = found.livemode ? ['live', 'test'] : ['test', 'live']
  const message = `No such ${what}: '${found.id}'; a similar object exists in ${there} mode, but a ${here} mode key was used.`
  return invalidRequest(message, { code: 'resource_missing', param, status })
}

/** The operation is not legal in the intent's present state; the intent is inside the error. */
export function unexpectedState(intent: PaymentIntentRecord, verb: string, legal: readonly string[]): ApiError {
  return invalidRequest(
    `This PaymentIntent could not be ${verb} because it has a status of ${intent.status}. ` +
      `Only a PaymentIntent with one of the following statuses may be ${verb}: ${legal.join(', ')}.`,
    { code: 'payment_intent_unexpected_state' },
    intent,
  )
}

export function unknownRoute(method: string, path: string): ApiError {
  return invalidRequest(`Unrecognized request URL (${method}: ${path}). See https://docs.stripe.com/api.`, {
    status: 404,
  })
}

export function unauthorized(message: string, code?: string): ApiError {
  const headers = { 'www-authenticate': 'Bearer realm="Stripe"' }
  return new ApiError(401, { type: 'invalid_request_error', message, ...(code ? { code } : {}) }, { headers })
}

export function rateLimited(): ApiError {
  const message = 'Request rate limit exceeded. See https://docs.stripe.com/rate-limits.'
  const headers = { 'stripe-rate-limited-reason': 'global-rate' }
  return new ApiError(429, { type: 'invalid_request_error', code: 'rate_limit', message }, { headers })
}

export function internalError(): ApiError {
  const message = 'An unexpected error occurred while processing the request.'
  return new ApiError(500, { type: 'api_error', message })
}
