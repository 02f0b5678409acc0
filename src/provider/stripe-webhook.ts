import Stripe from 'stripe'
import { type NotificationReader, type ProviderEvent, WebhookSignatureInvalid, WebhookUnreadable } from './port.ts'
import { readCharge, readEvent, readPayment, readRefund, readToldDispute } from './stripe-shapes.ts'

/** Reads notifications that one of the endpoint's secrets has signed. */
export function stripeNotifications(secrets: readonly string[]): NotificationReader {
  return {
    provider: 'stripe',
    signatureHeader: 'stripe-signature',
    read: (rawBody, signature, now) => readStripeEvent(rawBody, signature, secrets, now),
  }
}

/**
 * Reads a notification of Stripe (https://docs.stripe.com/webhooks/signature).
 *
 * `secrets`: one of them must have signed; there are several while they are being rotated. The signature must be at most
 * `toleranceSeconds` older or newer than `now`. Throws `WebhookSignatureInvalid`, and `WebhookUnreadable` where what was
 * signed is no event. An event that is about something we do not know, or cannot read, is returned with its ids.
 */
export function readStripeEvent(
  rawBody: Buffer,
  signatureHeader: string | undefined,
  secrets: readonly string[],
  now: Date,
  toleranceSeconds = 300,
): ProviderEvent {
  verify(rawBody, signatureHeader ?? '', secrets, now, toleranceSeconds)
  const event = readEvent(parse(rawBody))
  if (event === undefined) throw new WebhookUnreadable('What was signed is no event')
  const { object, ...envelope } = event
  return { ...envelope, ...about(object) }
}

function verify(body: Buffer, header: string, secrets: readonly string[], now: Date, toleranceSeconds: number): void {
  if (header === '') throw new WebhookSignatureInvalid('missing')
  const age = Math.floor(now.getTime() / 1000) - signedAt(header)
  if (Number.isNaN(age)) throw new WebhookSignatureInvalid('malformed')
  if (!secrets.some((secret) => isSigned(body, header, secret))) throw new WebhookSignatureInvalid('no_match')
  if (age > toleranceSeconds) throw new WebhookSignatureInvalid('too_old')
  // One of a future time could be replayed until then.
  if (age < -toleranceSeconds) throw new WebhookSignatureInvalid('in_the_future')
}

/** Whatever its time: the SDK checks that only towards the past. */
function isSigned(body: Buffer, header: string, secret: string): boolean {
  const anyTime = 0
  try {
    return Stripe.webhooks.signature?.verifyHeader(body, header, secret, anyTime) === true
  } catch {
    // Whatever the SDK finds wrong with a header that anybody may have sent, it is not signed.
    return false
  }
}

/** Unix time in seconds; NaN unless the header names exactly one. */
function signedAt(header: string): number {
  const times = header.split(',').filter((item) => item.startsWith('t='))
  return times.length === 1 ? Number(times[0]?.slice(2) || Number.NaN) : Number.NaN
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    return undefined
  }
}

type About = Omit<ProviderEvent, 'id' | 'type' | 'account' | 'livemode' | 'createdAt' | 'apiVersion'>

const nothing: About = {
  object: 'other',
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

function about({ kind, id, intentId, chargeId, value }: NonNullable<ReturnType<typeof readEvent>>['object']): About {
  const unreadable = { ...nothing, objectId: id, readable: false }
  switch (kind) {
    case 'payment_intent': {
      const base = { ...unreadable, object: kind, intentId: id }
      const payment = readPayment(value)
      if (payment === undefined) return base
      const { chargeId, status, amount, amountCaptured, amountCapturable, currency, metadata, declineCode } = payment
      const facts = { chargeId, status, amount, amountCaptured, amountCapturable, currency, metadata, declineCode }
      return { ...base, readable: true, ...facts }
    }
    case 'charge': {
      const charge = readCharge(value)
      return { ...unreadable, object: kind, chargeId: id, intentId, readable: charge !== undefined, ...charge }
    }
    case 'refund': {
      const base = { ...unreadable, object: kind, refundId: id, intentId, chargeId }
      const refund = readRefund(value)
      if (refund === undefined) return base
      const { status, amount, currency, metadata } = refund
      return { ...base, readable: true, status, amount, currency, metadata }
    }
    case 'dispute': {
      const dispute = readToldDispute(value)
      const ids = { disputeId: id, intentId, chargeId }
      return { ...unreadable, ...ids, object: kind, readable: dispute !== undefined, ...dispute }
    }
    default:
      return { ...nothing, objectId: id }
  }
}
