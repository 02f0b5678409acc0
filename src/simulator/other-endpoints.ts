import type Stripe from 'stripe'
import { type Call, type Endpoint, endpoint } from './endpoint.ts'
import { invalidRequest, noSuch } from './errors.ts'
import { checkList, list, listShape } from './list-params.ts'
import { metadata, oneOf, optional, positive, text, texts } from './params.ts'
import type { ChargeRecord, EventRecord, Scope } from './records.ts'
import { refund } from './refunds.ts'

/** The charge a refund is of: named itself, or the one that the intent succeeded with. */
function chargeToRefund({ books, scope }: Call, chargeId?: string, intentId?: string): ChargeRecord {
  if (intentId === undefined) {
    if (chargeId !== undefined) return books.charges.get(scope, chargeId, 'charge', 400)
    const message = 'One of the following params should be provided for this request: payment_intent or charge.'
    throw invalidRequest(message, { code: 'parameter_missing', param: 'payment_intent' })
  }
  const intent = books.intents.get(scope, intentId, 'payment_intent', 400)
  const charge = books.charges.peek(intent.latest_charge ?? '')
  if (charge === undefined || charge.status !== 'succeeded') {
    throw invalidRequest(`This PaymentIntent (${intent.id}) does not have a successful charge to refund.`)
  }
  if (chargeId !== undefined && chargeId !== charge.id) throw noSuch('charge', chargeId, 'charge', 400)
  return charge
}

const ofPaymentShape = { ...listShape, payment_intent: optional(text), charge: optional(text) }

/** The intent whose records are listed, where the list is of one. */
function listedIntent(
  { books, scope }: Call,
  params: { payment_intent: string | undefined; charge?: string | undefined },
) {
  const charge = params.charge === undefined ? undefined : books.charges.get(scope, params.charge, 'charge', 400)
  const id = params.payment_intent ?? charge?.payment_intent
  return id === undefined ? undefined : books.intents.get(scope, id, 'payment_intent', 400)
}

function ofCharge(id: string | undefined) {
  return (record: { charge: string }) => id === undefined || record.charge === id
}

const refundEndpoints = [
  endpoint({
    method: 'POST',
    path: '/refunds',
    answers: 'refund',
    shape: {
      payment_intent: optional(text),
      charge: optional(text),
      amount: optional(positive),
      reason: optional(oneOf('duplicate', 'fraudulent', 'requested_by_customer')),
      metadata: optional(metadata),
    },
    run: (call, params) =>
      refund(call.change, chargeToRefund(call, params.charge, params.payment_intent), {
        amount: params.amount,
        reason: params.reason ?? null,
        metadata: params.metadata ?? {},
      }),
  }),
  endpoint({
    method: 'GET',
    path: '/refunds/:id',
    answers: 'refund',
    shape: {},
    run: ({ books, scope, id }) => books.refunds.get(scope, id, 'id', 404),
  }),
  endpoint({
    method: 'GET',
    path: '/refunds',
    answers: 'refund',
    list: true,
    shape: ofPaymentShape,
    check: checkList,
    run: (call, params) => {
      const within = listedIntent(call, params)?.refunds
      return list(
        '/v1/refunds',
        call.books.refunds.page(call.scope, params, { within, matches: ofCharge(params.charge) }),
      )
    },
  }),
]

const chargeEndpoints = [
  endpoint({
    method: 'GET',
    path: '/charges/:id',
    answers: 'charge',
    shape: {},
    run: ({ books, scope, id }) => books.charges.get(scope, id, 'charge', 404),
  }),
  endpoint({
    method: 'GET',
    path: '/charges',
    answers: 'charge',
    list: true,
    shape: { ...listShape, payment_intent: optional(text), customer: optional(text) },
    check: checkList,
    run: (call, { customer, ...params }) => {
      const within = listedIntent(call, params)?.charges
      const matches = (charge: ChargeRecord) => customer === undefined || charge.customer === customer
      return list('/v1/charges', call.books.charges.page(call.scope, params, { within, matches }))
    },
  }),
]

const disputeEndpoints = [
  endpoint({
    method: 'GET',
    path: '/disputes/:id',
    answers: 'dispute',
    shape: {},
    run: ({ books, scope, id }) => books.disputes.get(scope, id, 'dispute', 404),
  }),
  endpoint({
    method: 'GET',
    path: '/disputes',
    answers: 'dispute',
    list: true,
    shape: ofPaymentShape,
    check: checkList,
    run: (call, params) => {
      const within = listedIntent(call, params)?.disputes
      return list(
        '/v1/disputes',
        call.books.disputes.page(call.scope, params, { within, matches: ofCharge(params.charge) }),
      )
    },
  }),
]

const eventEndpoints = [
  endpoint({
    method: 'GET',
    path: '/events/:id',
    answers: 'event',
    shape: {},
    run: ({ books, scope, id }) => books.events.get(scope, id, 'id', 404),
  }),
  endpoint({
    method: 'GET',
    path: '/events',
    answers: 'event',
    list: true,
    shape: { ...listShape, type: optional(text), types: optional(texts) },
    check: checkList,
    run: ({ books, scope }, { type, types, ...query }) => {
      const wanted = types ?? (type === undefined ? undefined : [type])
      const matches = (event: EventRecord) => wanted?.includes(event.type) ?? true
      return list('/v1/events', books.events.page(scope, query, { matches }))
    },
  }),
]

const accountEndpoints = [
  endpoint({ method: 'GET', path: '/account', answers: 'account', shape: {}, run: ({ scope }) => account(scope) }),
  endpoint({
    method: 'GET',
    path: '/accounts/:id',
    answers: 'account',
    shape: {},
    run: ({ scope, id }) => {
      if (id !== scope.account) throw noSuch('account', id, 'account', 404)
      return account(scope)
    },
  }),
]

function account(scope: Scope): Stripe.Account {
  return {
    id: scope.account,
    object: 'account',
    charges_enabled: true,
    country: 'DE',
    default_currency: 'eur',
    details_submitted: true,
    email: null,
    metadata: {},
    payouts_enabled: true,
    type: 'standard',
  } as unknown as Stripe.Account
}

export const otherEndpoints: Endpoint[] = [
  ...refundEndpoints,
  ...chargeEndpoints,
  ...disputeEndpoints,
  ...eventEndpoints,
  ...accountEndpoints,
]
