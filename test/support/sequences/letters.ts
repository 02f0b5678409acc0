/** The kinds of events that sequences are made of, each about the payment, refund or dispute as it is or as it was. */
import { type Notification, notification } from '../notifications.ts'

export type ProviderObject = Record<string, unknown>

/** What events can be about. */
export interface Objects {
  payment: ProviderObject
  /** The payment at an earlier time. */
  paymentBefore: ProviderObject
  charge: ProviderObject
  refund: ProviderObject
  refundBefore: ProviderObject
  dispute: ProviderObject
  disputeBefore: ProviderObject
  /** A payment of another order, which says that it is of this one. */
  foreign: ProviderObject
}

/** What news is about: money that goes back is nothing that we ask about by ourselves. `untrue`: it cannot be about the
 * order, or its kind says what its object denies; a person may be shown that. */
export type Told = 'payment' | 'refunds' | 'disputes' | 'untrue'

export interface Letter {
  /** For the reader of a failure. */
  name: string
  type: string
  about: keyof Objects
  tells: Told
}

/** All kinds, https://docs.stripe.com/api/events/types. Neither kind nor object need be true. */
export const kinds = {
  payment: [
    'payment_intent.succeeded',
    'payment_intent.payment_failed',
    'payment_intent.canceled',
    'payment_intent.requires_action',
    'payment_intent.processing',
    'payment_intent.amount_capturable_updated',
  ],
  refunds: ['refund.created', 'refund.updated', 'refund.failed'],
  charge: ['charge.refunded'],
  disputes: [
    'charge.dispute.created',
    'charge.dispute.funds_withdrawn',
    'charge.dispute.funds_reinstated',
    'charge.dispute.closed',
  ],
}

export const letters: readonly Letter[] = [
  ...kinds.payment.map((type) => letter(type, 'payment', 'payment')),
  ...kinds.charge.map((type) => letter(type, 'charge', 'refunds')),
  ...kinds.refunds.map((type) => letter(type, 'refund', 'refunds')),
  ...kinds.disputes.map((type) => letter(type, 'dispute', 'disputes')),
  // The same kinds, stale or about something else, where the object could be taken at its word.
  letter('payment_intent.succeeded', 'paymentBefore', 'payment'),
  letter('payment_intent.canceled', 'paymentBefore', 'payment'),
  letter('payment_intent.payment_failed', 'paymentBefore', 'payment'),
  letter('refund.updated', 'refundBefore', 'refunds'),
  letter('charge.dispute.closed', 'disputeBefore', 'disputes'),
  letter('payment_intent.succeeded', 'foreign', 'untrue'),
]

function letter(type: string, about: keyof Objects, tells: Told): Letter {
  return { name: `${type} (${about})`, type, about, tells }
}

/** What the letter lets be known, of these objects. */
export function toldBy({ type, about, tells }: Letter, objects: Objects): Told[] {
  const says = /^payment_intent\.(succeeded|canceled)$/.exec(type)?.[1]
  return says !== undefined && says !== objects[about].status ? [tells, 'untrue'] : [tells]
}

/** An event of its own each time. */
export function eventOf({ type, about }: Letter, objects: Objects): Notification {
  return notification(type, objects[about])
}
