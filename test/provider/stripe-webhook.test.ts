import Stripe from 'stripe'
import { describe, expect, test } from 'vitest'
import { WebhookSignatureInvalid, WebhookUnreadable } from '../../src/provider/port.ts'
import { readStripeEvent } from '../../src/provider/stripe-webhook.ts'

const secret = 'whsec_one'
const now = new Date('2026-06-01T12:00:00.500Z')
const seconds = Math.floor(now.getTime() / 1000)

function sign(body: string, { with: by = secret, at = seconds } = {}): string {
  return Stripe.webhooks.generateTestHeaderString({ payload: body, secret: by, timestamp: at })
}

function read(body: string, header: string | undefined = sign(body), secrets = [secret]) {
  return readStripeEvent(Buffer.from(body), header, secrets, now)
}

function event(object: unknown, more: object = {}): string {
  return JSON.stringify({
    id: 'evt_1',
    object: 'event',
    type: 'some.type',
    created: seconds,
    livemode: false,
    api_version: '2026-08-26.dahlia',
    data: { object },
    ...more,
  })
}

function faultOf(act: () => unknown): string | undefined {
  try {
    act()
    return undefined
  } catch (error) {
    return error instanceof WebhookSignatureInvalid ? error.fault : `${error}`
  }
}

const empty = {
  objectId: null,
  readable: true,
  intentId: null,
  chargeId: null,
  refundId: null,
  disputeId: null,
  status: null,
  amount: null,
  amountCaptured: null,
  amountCapturable: null,
  amountRefunded: null,
  currency: null,
  metadata: {},
  declineCode: null,
  captureBefore: null,
  disputeReason: null,
}
const envelope = {
  id: 'evt_1',
  type: 'some.type',
  account: null,
  livemode: false,
  createdAt: new Date(seconds * 1000),
  apiVersion: '2026-08-26.dahlia',
}
const person = { email: 'jane@example.com', name: 'Jane Roe', phone: '+49 1', address: { line1: 'Somewhere 1' } }

describe('the signature', () => {
  const body = event({ object: 'customer', id: 'cus_1' })

  test('is of the bytes as they came: odd spacing, unicode and a trailing newline included', () => {
    for (const odd of [body, `${body}\n`, body.replaceAll(':', ' :\t'), event({ object: 'é😀', id: 'x' })]) {
      expect(read(odd).id).toBe('evt_1')
      expect(() => read(JSON.stringify(JSON.parse(`${odd} `), null, 1), sign(odd))).toThrow(WebhookSignatureInvalid)
    }
  })

  test.each<[string, string | undefined, string]>([
    ['missing', undefined, 'missing'],
    ['empty', '', 'missing'],
    ['garbage', 'garbage', 'malformed'],
    ['without a time', sign(body).replace(/t=\d+,/, ''), 'malformed'],
    ['with a second time', `t=${seconds - 1},${sign(body)}`, 'malformed'],
    ['with a time that is no number', sign(body).replace(`t=${seconds}`, `t=${seconds}x`), 'malformed'],
    ['without a signature', `t=${seconds}`, 'no_match'],
    ['with an empty signature', `t=${seconds},v1=`, 'no_match'],
    ['of another scheme', sign(body).replace('v1=', 'v0='), 'no_match'],
    ['by another secret', sign(body, { with: 'whsec_two' }), 'no_match'],
    ['by another secret and old', sign(body, { with: 'whsec_two', at: seconds - 301 }), 'no_match'],
    ['by another secret and of the future', sign(body, { with: 'whsec_two', at: seconds + 301 }), 'no_match'],
    ['of another body', sign(`${body} `), 'no_match'],
    ['of another time', sign(body).replace(`t=${seconds}`, `t=${seconds - 1}`), 'no_match'],
    ['too old', sign(body, { at: seconds - 301 }), 'too_old'],
    ['of the future', sign(body, { at: seconds + 301 }), 'in_the_future'],
  ])('that is %s is refused, and the reason is told', (_, header, fault) => {
    expect(faultOf(() => readStripeEvent(Buffer.from(body), header, [secret], now))).toBe(fault)
  })

  test('without a secret nothing is accepted', () => {
    expect(() => read(body, sign(body), [])).toThrow(WebhookSignatureInvalid)
    expect(() => read(body, sign(body), ['', ' '])).toThrow(WebhookSignatureInvalid)
  })

  test('by either secret is good while they are rotated, and so is a header with both', () => {
    const [one, two] = ['whsec_one', 'whsec_two']
    expect(read(body, sign(body, { with: two }), [one, two]).id).toBe('evt_1')
    const both = `${sign(body, { with: two })},${sign(body, { with: one }).replace(/t=\d+,/, '')}`
    expect(read(body, both, [one]).id).toBe('evt_1')
    expect(read(body, both, [two]).id).toBe('evt_1')
  })

  test('counts for five minutes, into the past and into the future', () => {
    for (const age of [0, 299, 300, -299, -300]) expect(read(body, sign(body, { at: seconds - age })).id).toBe('evt_1')
    for (const age of [301, 86_400, -301, -86_400]) {
      expect(() => read(body, sign(body, { at: seconds - age }))).toThrow(WebhookSignatureInvalid)
    }
  })

  test('over what is no event is told apart from a wrong one', () => {
    for (const odd of [
      '{}',
      'null',
      '[]',
      '"evt_1"',
      'no json',
      event(null, { id: 7 }),
      event(null, { livemode: 1 }),
    ]) {
      expect(() => read(odd)).toThrow(WebhookUnreadable)
    }
  })
})

describe('an event about', () => {
  const intent = {
    id: 'pi_1',
    object: 'payment_intent',
    status: 'requires_payment_method',
    amount: 70_000,
    amount_received: 0,
    amount_capturable: 0,
    currency: 'isk',
    livemode: false,
    created: seconds,
    client_secret: 'pi_1_secret_x',
    latest_charge: 'ch_1',
    last_payment_error: { code: 'card_declined', decline_code: 'lost_card', message: 'Jane, no' },
    metadata: { tenant: 'ten_1', order: 'ord_1', key: 'k', note: 'for Jane' },
    receipt_email: person.email,
    shipping: person,
  }

  test('a payment names it in our amounts, and nobody', () => {
    const got = read(event(intent, { account: 'acct_1', request: { id: 'req_1', idempotency_key: 'k' } }))
    expect(got).toEqual({
      ...envelope,
      ...empty,
      account: 'acct_1',
      object: 'payment_intent',
      objectId: 'pi_1',
      intentId: 'pi_1',
      chargeId: 'ch_1',
      status: 'requires_payment_method',
      amount: 700,
      amountCaptured: 0,
      amountCapturable: 0,
      currency: 'ISK',
      metadata: { tenant: 'ten_1', order: 'ord_1', key: 'k' },
      declineCode: 'lost_card',
    })
    expect(JSON.stringify(got)).not.toMatch(/jane|secret/i)
  })

  test('a charge tells what was captured and what went back', () => {
    const charge = {
      id: 'ch_1',
      object: 'charge',
      status: 'succeeded',
      amount: 1000,
      amount_captured: 600,
      amount_refunded: 550,
      captured: true,
      currency: 'eur',
      payment_intent: 'pi_1',
      payment_method_details: { card: { capture_before: seconds + 60, last4: '4242' } },
      billing_details: person,
      metadata: { tenant: 'ten_1', order: 'ord_1', key: 'k' },
    }
    const got = read(event(charge))
    expect(got).toEqual({
      ...envelope,
      ...empty,
      object: 'charge',
      objectId: 'ch_1',
      intentId: 'pi_1',
      chargeId: 'ch_1',
      status: 'succeeded',
      amount: 1000,
      amountCaptured: 600,
      amountCapturable: 0,
      amountRefunded: 150,
      currency: 'EUR',
      metadata: charge.metadata,
      captureBefore: new Date((seconds + 60) * 1000),
    })
    expect(JSON.stringify(got)).not.toMatch(/jane|4242/i)
    const hold = { ...charge, captured: false, amount_captured: 0, amount_refunded: 0 }
    expect(read(event(hold))).toMatchObject({ amountCaptured: 0, amountCapturable: 1000, amountRefunded: 0 })
    const released = { ...charge, captured: false, amount_captured: 0, amount_refunded: 1000 }
    expect(read(event(released))).toMatchObject({ amountCaptured: 0, amountRefunded: 0 })
  })

  test('a refund names the payment that it is of', () => {
    const refund = {
      id: 're_1',
      object: 'refund',
      status: 'canceled',
      amount: 100,
      currency: 'eur',
      created: seconds,
      charge: 'ch_1',
      payment_intent: { id: 'pi_1', object: 'payment_intent' },
      metadata: { refund: 'ref_1', order: 'ord_1', tenant: 'ten_1', note: 'Jane' },
    }
    expect(read(event(refund))).toEqual({
      ...envelope,
      ...empty,
      object: 'refund',
      objectId: 're_1',
      intentId: 'pi_1',
      chargeId: 'ch_1',
      refundId: 're_1',
      status: 'failed',
      amount: 100,
      currency: 'EUR',
      metadata: { refund: 'ref_1', order: 'ord_1', tenant: 'ten_1' },
    })
  })

  test('a dispute names the payment that it is of', () => {
    const dispute = {
      id: 'dp_1',
      object: 'dispute',
      status: 'needs_response',
      reason: 'fraudulent',
      amount: 1250,
      currency: 'eur',
      charge: 'ch_1',
      payment_intent: 'pi_1',
      evidence: { customer_name: person.name },
    }
    expect(read(event(dispute))).toEqual({
      ...envelope,
      ...empty,
      object: 'dispute',
      objectId: 'dp_1',
      intentId: 'pi_1',
      chargeId: 'ch_1',
      disputeId: 'dp_1',
      status: 'needs_response',
      amount: 1250,
      currency: 'EUR',
      disputeReason: 'fraudulent',
    })
  })

  test('anything else is kept by its id alone', () => {
    const customer = { object: 'customer', id: 'cus_1', ...person }
    expect(read(event(customer))).toEqual({ ...envelope, ...empty, object: 'other', objectId: 'cus_1' })
    for (const odd of [null, 7, 'text', [], {}]) expect(read(event(odd))).toMatchObject({ object: 'other' })
    const thin = event(undefined, { object: 'v2.core.event', created: now.toISOString(), data: undefined })
    expect(read(thin)).toEqual({ ...envelope, ...empty, createdAt: now, object: 'other' })
  })

  test('a currency or a shape that we do not know keeps its ids, and says that it was not read', () => {
    expect(read(event({ ...intent, currency: 'xxx' }))).toEqual({
      ...envelope,
      ...empty,
      object: 'payment_intent',
      objectId: 'pi_1',
      intentId: 'pi_1',
      readable: false,
    })
    // Half a króna.
    expect(read(event({ ...intent, amount: 70_050 }))).toMatchObject({ readable: false, amount: null })
    for (const object of ['payment_intent', 'charge', 'refund', 'dispute'] as const) {
      const odd = { object, id: 'x_1', payment_intent: 'pi_1', amount: 'much' }
      expect(read(event(odd))).toMatchObject({ object, objectId: 'x_1', readable: false, amount: null, currency: null })
    }
    const odd = { object: 'refund', id: 're_1', payment_intent: 'pi_1', charge: 'ch_1' }
    expect(read(event(odd))).toMatchObject({ refundId: 're_1', intentId: 'pi_1', chargeId: 'ch_1', readable: false })
  })
})
