import { checkChargeAmount, checkCurrency } from './currencies.ts'
import { type Call, type Endpoint, endpoint } from './endpoint.ts'
import { invalidRequest, noSuch } from './errors.ts'
import { checkList, list, listShape } from './list-params.ts'
import { boolean, hash, metadata, oneOf, optional, type Params, positive, required, text, texts } from './params.ts'
import { findPaymentMethod } from './payment-methods.ts'
import { cancel, capture, confirm } from './payments.ts'
import { newId } from './random.ts'
import type { PaymentIntentRecord } from './records.ts'

const confirmShape = {
  payment_method: optional(text),
  off_session: optional(boolean),
  error_on_requires_action: optional(boolean),
  return_url: optional(text),
  use_stripe_sdk: optional(boolean),
  receipt_email: optional(text),
  setup_future_usage: optional(oneOf('on_session', 'off_session')),
}

const createShape = {
  ...confirmShape,
  amount: required(positive),
  currency: required(text),
  allowed_payment_method_types: optional(texts),
  automatic_payment_methods: optional(
    hash({ enabled: required(boolean), allow_redirects: optional(oneOf('always', 'never')) }),
  ),
  capture_method: optional(oneOf('automatic', 'automatic_async', 'manual')),
  confirm: optional(boolean),
  confirmation_method: optional(oneOf('automatic', 'manual')),
  customer: optional(text),
  description: optional(text),
  metadata: optional(metadata),
  payment_method_types: optional(texts),
  statement_descriptor: optional(text),
  statement_descriptor_suffix: optional(text),
}

type CreateParams = Params<typeof createShape>

function checkCreate(params: CreateParams, version: string): void {
  checkCurrency(params.currency.toLowerCase())
  checkChargeAmount(params.amount, params.currency.toLowerCase())
  checkMethodTypes(params, version)
  checkConfirm(params)
  if (params.confirm) return
  for (const param of ['off_session', 'error_on_requires_action', 'return_url'] as const) {
    if (params[param] === undefined) continue
    throw invalidRequest(`${param} can only be given together with confirm=true.`, { param })
  }
}

/** Which of the three ways to choose payment methods an API version takes changed twice:
 * https://docs.stripe.com/changelog/dahlia/2026-07-29/allowed-payment-method-types-parameter and
 * https://docs.stripe.com/changelog/endive/2026-09-30/removes-the-payment-method-types-parameter-from-payment-intents-and-setup-intents */
function checkMethodTypes(params: CreateParams, version: string): void {
  const {
    payment_method_types: types,
    allowed_payment_method_types: allowed,
    automatic_payment_methods: automatic,
  } = params
  if (types && version >= '2026-09-30') {
    const message = `payment_method_types is no longer supported in the API version ${version}.`
    throw invalidRequest(message, { code: 'payment_method_types_no_longer_supported', param: 'payment_method_types' })
  }
  if (allowed && version < '2026-07-29') {
    const param = 'allowed_payment_method_types'
    throw invalidRequest(`Received unknown parameter: ${param}`, { code: 'parameter_unknown', param })
  }
  if ([types, allowed, automatic?.enabled || undefined].filter((given) => given !== undefined).length > 1) {
    const message =
      'payment_method_types, allowed_payment_method_types and automatic_payment_methods exclude each other.'
    throw invalidRequest(message, { param: types ? 'payment_method_types' : 'allowed_payment_method_types' })
  }
  const wrong = types?.find((type) => type !== 'card')
  if (wrong !== undefined) {
    throw invalidRequest(`The payment method type "${wrong}" is invalid.`, { param: 'payment_method_types' })
  }
  if (allowed && !allowed.includes('card')) {
    const message = 'None of the allowed payment method types can be used for this payment.'
    throw invalidRequest(message, { param: 'allowed_payment_method_types' })
  }
  const redirects = !types && !allowed && automatic?.allow_redirects !== 'never'
  if (params.confirm && redirects && params.return_url === undefined) {
    const message =
      'This PaymentIntent accepts payment methods that may redirect your customer, so confirming it needs a return_url. ' +
      'Otherwise set automatic_payment_methods[allow_redirects] to never, or name the payment methods.'
    throw invalidRequest(message)
  }
}

function checkConfirm(params: Params<typeof confirmShape>): void {
  if (params.off_session && params.setup_future_usage === 'on_session') {
    throw invalidRequest('off_session and setup_future_usage=on_session exclude each other.', { param: 'off_session' })
  }
}

function newIntent(call: Call, params: CreateParams): PaymentIntentRecord {
  const { change, scope } = call
  const id = newId('pi_')
  const named = params.payment_method_types ?? params.allowed_payment_method_types
  return {
    object: 'payment_intent',
    id,
    account: scope.account,
    livemode: scope.livemode,
    created: call.books.now(),
    metadata: params.metadata ?? {},
    amount: params.amount,
    amount_capturable: 0,
    amount_received: 0,
    currency: params.currency.toLowerCase(),
    status: params.payment_method === undefined ? 'requires_payment_method' : 'requires_confirmation',
    capture_method: params.capture_method ?? 'automatic_async',
    confirmation_method: params.confirmation_method ?? 'automatic',
    client_secret: newId(`${id}_secret_`),
    customer: params.customer ?? null,
    description: params.description ?? null,
    receipt_email: params.receipt_email ?? null,
    setup_future_usage: params.setup_future_usage ?? null,
    statement_descriptor: params.statement_descriptor ?? null,
    statement_descriptor_suffix: params.statement_descriptor_suffix ?? null,
    payment_method: params.payment_method ?? null,
    payment_method_types: ['card'],
    allowed_payment_method_types: params.allowed_payment_method_types ?? null,
    automatic_payment_methods: named
      ? null
      : { enabled: true, allow_redirects: params.automatic_payment_methods?.allow_redirects ?? 'always' },
    last_payment_error: null,
    return_url: params.return_url ?? null,
    cancellation_reason: null,
    canceled_at: null,
    latest_charge: null,
    idempotency_key: change.cause?.idempotency_key ?? null,
    charges: [],
    refunds: [],
    disputes: [],
  }
}

function checkMethod(id: string | undefined): void {
  if (id !== undefined && !findPaymentMethod(id)) throw noSuch('PaymentMethod', id, 'payment_method', 400)
}

function tryOut(call: Call, intent: PaymentIntentRecord, params: Params<typeof confirmShape>): PaymentIntentRecord {
  return confirm(call.change, intent, {
    offSession: params.off_session ?? false,
    errorOnRequiresAction: params.error_on_requires_action ?? false,
  })
}

export const paymentIntentEndpoints: Endpoint[] = [
  endpoint({
    method: 'POST',
    path: '/payment_intents',
    answers: 'payment_intent',
    shape: createShape,
    check: checkCreate,
    run: (call, params) => {
      checkMethod(params.payment_method)
      if (params.confirm && params.payment_method === undefined) {
        const message = 'You cannot confirm this PaymentIntent because you did not provide a payment method.'
        throw invalidRequest(message, { code: 'parameter_missing', param: 'payment_method' })
      }
      const intent = call.change.put(newIntent(call, params))
      call.change.emit('payment_intent.created', intent, intent)
      return params.confirm ? tryOut(call, intent, params) : intent
    },
  }),
  endpoint({
    method: 'GET',
    path: '/payment_intents/:id',
    answers: 'payment_intent',
    shape: { client_secret: optional(text) },
    run: ({ books, scope, id }) => books.intents.get(scope, id, 'intent', 404),
  }),
  endpoint({
    method: 'GET',
    path: '/payment_intents',
    answers: 'payment_intent',
    list: true,
    shape: { ...listShape, customer: optional(text) },
    check: checkList,
    run: ({ books, scope }, { customer, ...query }) => {
      const matches = (intent: PaymentIntentRecord) => customer === undefined || intent.customer === customer
      return list('/v1/payment_intents', books.intents.page(scope, query, { matches }))
    },
  }),
  endpoint({
    method: 'POST',
    path: '/payment_intents/:id/confirm',
    answers: 'payment_intent',
    shape: { ...confirmShape, client_secret: optional(text), capture_method: createShape.capture_method },
    check: checkConfirm,
    run: (call, params) => {
      const intent = call.books.intents.get(call.scope, call.id, 'intent', 404)
      checkMethod(params.payment_method)
      return tryOut(
        call,
        {
          ...intent,
          payment_method: params.payment_method ?? intent.payment_method,
          capture_method: params.capture_method ?? intent.capture_method,
          return_url: params.return_url ?? intent.return_url,
          receipt_email: params.receipt_email ?? intent.receipt_email,
          setup_future_usage: params.setup_future_usage ?? intent.setup_future_usage,
        },
        params,
      )
    },
  }),
  endpoint({
    method: 'POST',
    path: '/payment_intents/:id/cancel',
    answers: 'payment_intent',
    shape: { cancellation_reason: optional(oneOf('duplicate', 'fraudulent', 'requested_by_customer', 'abandoned')) },
    run: ({ change, books, scope, id }, params) =>
      cancel(change, books.intents.get(scope, id, 'intent', 404), params.cancellation_reason ?? null),
  }),
  endpoint({
    method: 'POST',
    path: '/payment_intents/:id/capture',
    answers: 'payment_intent',
    shape: {
      amount_to_capture: optional(positive),
      metadata: optional(metadata),
      statement_descriptor: optional(text),
    },
    run: ({ change, books, scope, id }, params) => {
      const intent = books.intents.get(scope, id, 'intent', 404)
      const described = params.metadata ? { ...intent, metadata: { ...intent.metadata, ...params.metadata } } : intent
      return capture(change, described, params.amount_to_capture)
    },
  }),
]
