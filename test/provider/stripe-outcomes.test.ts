import Stripe from 'stripe'
import { describe, expect, test } from 'vitest'
import { describeFailure } from '../../src/provider/stripe-failure.ts'
import {
  changeOutcome,
  chargeOutcome,
  lookupOutcome,
  type Reply,
  refundLookupOutcome,
  refundOutcome,
} from '../../src/provider/stripe-outcomes.ts'

const intent = {
  id: 'pi_1',
  object: 'payment_intent',
  status: 'requires_payment_method',
  amount: 1250,
  amount_received: 0,
  amount_capturable: 0,
  currency: 'eur',
  livemode: false,
  created: 1_800_000_000,
  latest_charge: 'ch_1',
  last_payment_error: { code: 'card_declined', decline_code: 'generic_decline' },
  metadata: {},
}
const refund = {
  id: 're_1',
  object: 'refund',
  status: 'succeeded',
  amount: 100,
  currency: 'eur',
  created: 1_800_000_000,
  payment_intent: 'pi_1',
  charge: 'ch_1',
  metadata: null,
}

/** What the SDK makes of an error that Stripe answers. */
function refused(statusCode: number, error: object, headers: Record<string, string> = {}): Reply {
  const raw = { message: 'said for people', ...error, statusCode, headers, requestId: 'req_1' }
  return { failure: describeFailure(Stripe.errors.StripeError.generate(raw as never)) }
}

const invalid = { type: 'invalid_request_error' }
const replayed = { 'idempotent-replayed': 'true' }

describe('a charge', () => {
  test.each([
    ['succeeded', { kind: 'succeeded' }],
    ['requires_capture', { kind: 'authorized' }],
    ['requires_action', { kind: 'requires_action' }],
    ['canceled', { kind: 'canceled' }],
    ['requires_payment_method', { kind: 'incomplete' }],
    ['requires_confirmation', { kind: 'incomplete' }],
    ['processing', { kind: 'unknown', reason: 'processing', worthRetrying: false, intentId: 'pi_1' }],
    ['something_new', { kind: 'unknown', reason: 'unreadable_answer', worthRetrying: false, intentId: 'pi_1' }],
  ])('in the state %s', (status, outcome) => {
    expect(chargeOutcome({ body: { ...intent, status } })).toMatchObject(outcome)
  })

  test.each<[string, Reply, string | null]>([
    [
      'its decline code',
      refused(402, { type: 'card_error', code: 'card_declined', decline_code: 'lost_card' }),
      'lost_card',
    ],
    [
      'its code where there is no decline code',
      refused(402, { type: 'card_error', code: 'expired_card' }),
      'expired_card',
    ],
    ['none', refused(402, { type: 'card_error' }), null],
    ['a status of 400', refused(400, { type: 'card_error', code: 'incorrect_number' }), 'incorrect_number'],
    [
      'authentication off session',
      refused(402, { type: 'card_error', code: 'authentication_required', decline_code: 'authentication_required' }),
      'authentication_required',
    ],
    [
      'a replay',
      refused(402, { type: 'card_error', code: 'card_declined', decline_code: 'fraudulent' }, replayed),
      'fraudulent',
    ],
  ])('that is declined, with %s', (_, reply, declineCode) => {
    expect(chargeOutcome(reply)).toEqual({ kind: 'declined', code: 'card_declined', declineCode, payment: null })
  })

  test('that is declined carries the payment it left behind', () => {
    const error = { type: 'card_error', code: 'card_declined', payment_intent: intent }
    expect(chargeOutcome(refused(402, error))).toMatchObject({
      kind: 'declined',
      payment: {
        intentId: 'pi_1',
        chargeId: 'ch_1',
        status: 'requires_payment_method',
        declineCode: 'generic_decline',
      },
    })
  })

  test('that is called declined but carries money is what its payment says', () => {
    const error = { type: 'card_error', code: 'card_declined' }
    const succeeded = { ...intent, status: 'succeeded', amount_received: 1250 }
    expect(chargeOutcome(refused(402, { ...error, payment_intent: succeeded }))).toMatchObject({ kind: 'succeeded' })
    const processing = { ...intent, status: 'processing' }
    expect(chargeOutcome(refused(402, { ...error, payment_intent: processing }))).toMatchObject({ kind: 'unknown' })
  })

  test.each([
    [400, { ...invalid, code: 'resource_missing', param: 'payment_method' }],
    [404, { ...invalid, code: 'resource_missing', param: 'payment_method' }],
    [404, { ...invalid, code: 'resource_missing' }],
    [400, { ...invalid, param: 'payment_method' }],
    [400, { ...invalid, code: 'parameter_invalid_empty', param: 'payment_method' }],
    [400, { ...invalid, code: 'payment_method_unactivated' }],
    [400, { ...invalid, code: 'payment_method_unexpected_state' }],
    [400, { ...invalid, code: 'payment_method_currency_mismatch', param: 'currency' }],
    [400, { ...invalid, code: 'payment_intent_incompatible_payment_method' }],
  ])('with a %i about the payment method', (status, error) => {
    expect(chargeOutcome(refused(status, error))).toMatchObject({ kind: 'declined', code: 'payment_method_invalid' })
  })

  test.each([
    [400, { ...invalid, code: 'amount_too_small', param: 'amount' }],
    [400, { ...invalid, code: 'parameter_unknown', param: 'off_session' }],
    [400, { ...invalid, code: 'payment_method_types_no_longer_supported', param: 'payment_method_types' }],
    [400, { ...invalid, param: 'payment_method_types' }],
    [400, { ...invalid, code: 'resource_missing', param: 'customer' }],
    [404, invalid],
    [405, invalid],
  ])('with a %i about anything else', (status, error) => {
    expect(chargeOutcome(refused(status, error))).toEqual({
      kind: 'unknown',
      reason: 'provider_rejected',
      worthRetrying: false,
      replayedFailure: false,
      intentId: null,
    })
  })

  test.each<[Reply, object]>([
    [refused(409, { ...invalid, code: 'idempotency_key_in_use' }), { reason: 'key_in_use', worthRetrying: true }],
    [
      refused(409, { type: 'idempotency_error', code: 'idempotency_key_in_use' }),
      { reason: 'key_in_use', worthRetrying: true },
    ],
    [refused(400, { type: 'idempotency_error' }), { reason: 'idempotency_error', worthRetrying: false }],
    [refused(500, { type: 'api_error' }), { reason: 'provider_error', worthRetrying: true, replayedFailure: false }],
    [refused(503, { type: 'api_error' }), { reason: 'provider_error', worthRetrying: true, replayedFailure: false }],
    [
      refused(500, { type: 'api_error' }, replayed),
      { reason: 'provider_error', worthRetrying: false, replayedFailure: true },
    ],
    [
      refused(500, { type: 'api_error', payment_intent: intent }),
      { reason: 'provider_error', worthRetrying: true, intentId: 'pi_1' },
    ],
    [{ failure: describeFailure(new TypeError('a bug')) }, { reason: 'unexpected_error', worthRetrying: false }],
  ])('that is unknown (%#)', (reply, outcome) => {
    expect(chargeOutcome(reply)).toMatchObject({ kind: 'unknown', ...outcome })
  })

  test.each<[Reply, object]>([
    [refused(401, invalid), { reason: 'unauthorized', alert: true }],
    [refused(403, { ...invalid, code: 'account_invalid' }), { reason: 'forbidden', alert: true }],
    [refused(429, invalid), { reason: 'rate_limited', alert: false, retryAfterMs: null }],
    [refused(429, { ...invalid, code: 'lock_timeout' }), { reason: 'rate_limited' }],
    [refused(400, { ...invalid, code: 'rate_limit' }), { reason: 'rate_limited' }],
    [refused(429, invalid, { 'retry-after': '1.5' }), { reason: 'rate_limited', retryAfterMs: 1500 }],
    [refused(429, invalid, { 'retry-after': 'soon' }), { reason: 'rate_limited', retryAfterMs: null }],
    [refused(429, invalid, { 'retry-after': 'Wed, 21 Oct 2015 07:28:00 GMT' }), { retryAfterMs: 0 }],
  ])('that is not sent (%#)', (reply, outcome) => {
    expect(chargeOutcome(reply)).toMatchObject({ kind: 'not_sent', ...outcome })
  })
})

describe('a look-up', () => {
  test('of a payment that the provider does not have is absent, and only then', () => {
    const missing = { ...invalid, code: 'resource_missing', param: 'intent' }
    expect(lookupOutcome(refused(404, missing), 'pi_1')).toEqual({ kind: 'absent' })
    expect(lookupOutcome(refused(404, invalid), 'pi_1')).toMatchObject({ kind: 'unknown', intentId: 'pi_1' })
    expect(lookupOutcome(refused(400, missing), 'pi_1')).toMatchObject({ kind: 'unknown', intentId: 'pi_1' })
    expect(lookupOutcome(refused(401, missing), 'pi_1')).toMatchObject({ kind: 'not_sent' })
    expect(refundLookupOutcome(refused(404, missing))).toEqual({ kind: 'absent' })
    expect(refundLookupOutcome(refused(404, invalid))).toMatchObject({ kind: 'unknown' })
  })
})

describe('a change', () => {
  test('that is refused carries what the payment is instead', () => {
    const error = { ...invalid, code: 'payment_intent_unexpected_state', payment_intent: intent }
    expect(changeOutcome(refused(400, error), 'pi_1')).toMatchObject({
      kind: 'rejected',
      code: 'payment_intent_unexpected_state',
      payment: { intentId: 'pi_1' },
    })
    expect(changeOutcome(refused(409, error), 'pi_1')).toMatchObject({ kind: 'unknown', reason: 'key_in_use' })
    expect(changeOutcome(refused(500, error), 'pi_1')).toMatchObject({ kind: 'unknown', intentId: 'pi_1' })
  })
})

describe('a refund', () => {
  test.each([
    ['succeeded', 'succeeded'],
    ['pending', 'pending'],
    ['requires_action', 'pending'],
    ['failed', 'failed'],
    ['canceled', 'failed'],
  ])('in the state %s is %s', (status, kind) => {
    expect(refundOutcome({ body: { ...refund, status } })).toMatchObject({
      kind,
      refund: { refundId: 're_1', intentId: 'pi_1', amount: 100, currency: 'EUR', status: kind, metadata: {} },
    })
  })

  test.each<[Reply, object]>([
    [
      refused(400, { ...invalid, code: 'charge_already_refunded' }),
      { kind: 'rejected', code: 'charge_already_refunded' },
    ],
    [refused(400, { ...invalid, param: 'amount' }), { kind: 'rejected', code: 'invalid_request_error' }],
    [refused(404, { ...invalid, code: 'resource_missing' }), { kind: 'rejected', code: 'resource_missing' }],
    [refused(400, { type: 'idempotency_error' }), { kind: 'unknown', reason: 'idempotency_error' }],
    [refused(409, { ...invalid, code: 'idempotency_key_in_use' }), { kind: 'unknown', reason: 'key_in_use' }],
    [refused(500, { type: 'api_error' }, replayed), { kind: 'unknown', replayedFailure: true }],
    [refused(429, invalid), { kind: 'not_sent', reason: 'rate_limited' }],
    [{ body: { ...refund, status: 'evaporated' } }, { kind: 'unknown', reason: 'unreadable_answer' }],
    [{ body: { ...refund, currency: 'xxx' } }, { kind: 'unknown', reason: 'unreadable_answer' }],
  ])('that Stripe answers otherwise (%#)', (reply, outcome) => {
    expect(refundOutcome(reply)).toMatchObject(outcome)
  })
})
