import Stripe from 'stripe'
import { NoAnswer } from './stripe-http.ts'

/** What there is to know of a call that brought no object: Stripe's error, or why there was no answer. */
export interface Failure {
  /** Null where Stripe answered with an error of its own. */
  noAnswer: NoAnswer['reason'] | 'unexpected_error' | null
  status: number | null
  /** Stripe's `error.type`, `error.code`, `error.decline_code` and `error.param`; `code` and `declineCode` are words of a
   * closed vocabulary, never text. */
  type: string | null
  code: string | null
  declineCode: string | null
  param: string | null
  /** The PaymentIntent inside the error, not looked at yet. */
  intent: unknown
  requestId: string | null
  /** This is the stored answer to an earlier call under the same key. */
  replayed: boolean
  /** Stripe said with `Stripe-Should-Retry` that another call under the same key changes nothing. */
  retryIsPointless: boolean
  retryAfterMs: number | null
  /** For `provider_calls`. */
  errorCode: string
}

type Headers = Record<string, unknown>

/** Any error that a call through the SDK rejects with. */
export function describeFailure(error: unknown): Failure {
  const cause = error instanceof Stripe.errors.StripeConnectionError ? error.detail : error
  if (cause instanceof NoAnswer) {
    return {
      ...bare(cause.head?.headers ?? {}),
      noAnswer: cause.reason,
      status: cause.head?.status ?? null,
      errorCode: word(cause.networkCode) ?? cause.reason,
    }
  }
  if (!(error instanceof Stripe.errors.StripeError) || error.statusCode === undefined) {
    return { ...bare({}), noAnswer: 'unexpected_error', errorCode: 'unexpected_error' }
  }
  const type = word(error.rawType)
  const code = word(error.code)
  return {
    ...bare(error.headers ?? {}),
    status: error.statusCode,
    type,
    code,
    declineCode: word(error.decline_code),
    param: error.param ?? null,
    intent: error.payment_intent,
    errorCode: code ?? type ?? 'unknown_error',
  }
}

function bare(headers: Headers): Failure {
  return {
    noAnswer: null,
    status: null,
    type: null,
    code: null,
    declineCode: null,
    param: null,
    intent: undefined,
    requestId: requestIdIn(headers),
    replayed: replayedIn(headers),
    retryIsPointless: headers['stripe-should-retry'] === 'false',
    retryAfterMs: retryAfter(headers['retry-after']),
    errorCode: '',
  }
}

export function requestIdIn(headers: Headers): string | null {
  const id = headers['request-id']
  return typeof id === 'string' && id !== '' ? id : null
}

/** https://docs.stripe.com/api/idempotent_requests */
export function replayedIn(headers: Headers): boolean {
  return headers['idempotent-replayed'] === 'true'
}

/** RFC 9110, 10.2.3: seconds or a date; in ms. */
function retryAfter(value: unknown): number | null {
  if (typeof value !== 'string' || value.trim() === '') return null
  const seconds = Number(value)
  const ms = Number.isNaN(seconds) ? Date.parse(value) - Date.now() : seconds * 1000
  return Number.isFinite(ms) ? Math.max(0, ms) : null
}

/** Stripe's codes go into the database and to clients; whatever else stands in their place does not. */
function word(value: unknown): string | null {
  return typeof value === 'string' && /^\w{1,80}$/.test(value) ? value : null
}
