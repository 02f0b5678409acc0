/** `POST /checkouts` and what a storefront asks of an attempt by its own key. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { Deps } from '../deps.ts'
import { parseIdempotencyKey, parseKeyInPath } from '../domain/idempotency-key.ts'
import { isOpen } from '../domain/order.ts'
import { orderView } from '../domain/order-view.ts'
import { Problem } from '../domain/problem.ts'
import type { Answer } from '../flows/answers.ts'
import { cancelCheckout } from '../flows/cancel.ts'
import { checkout } from '../flows/checkout.ts'
import type { CheckoutBody } from '../flows/checkout-request.ts'
import { lookUpAttempt } from '../flows/look-up.ts'
import type { App } from './app-type.ts'
import { admit, callerOf, type KeyRing } from './auth.ts'
import * as contract from './contract/checkouts.ts'
import { Amount, Currency, closed, noQueryOnPost, Quantity, Sku } from './input.ts'

const ShortText = Type.String({ minLength: 1, maxLength: 200 })

export const Customer = closed({
  email: Type.String({ format: 'email', maxLength: 254 }),
  name: Type.Optional(ShortText),
})
export const PaymentMethod = Type.String({
  pattern: '^[A-Za-z0-9_]{1,255}$',
  description: "The provider's id of a payment method that its browser library made; card data never comes here",
})

const CheckoutRequestBody = closed({
  items: Type.Array(closed({ sku: Sku, quantity: Quantity }), { minItems: 1, maxItems: 100 }),
  customer: Customer,
  payment_method: PaymentMethod,
  cart_id: Type.Optional(Type.String({ minLength: 1, maxLength: 200, pattern: '^[\\x21-\\x7e]+$' })),
  currency: Type.Optional(Currency),
  expected_total: Type.Optional(Amount),
  capture: Type.Optional(Type.Union([Type.Literal('automatic'), Type.Literal('manual')])),
  shipping_address: Type.Optional(
    closed({
      name: Type.Optional(ShortText),
      line1: ShortText,
      line2: Type.Optional(ShortText),
      city: ShortText,
      postal_code: Type.Optional(Type.String({ minLength: 1, maxLength: 20 })),
      state: Type.Optional(ShortText),
      country: Type.String({ pattern: '^[A-Z]{2}$', description: 'ISO 3166-1 alpha-2' }),
    }),
  ),
  metadata: Type.Optional(
    Type.Record(Type.String({ pattern: '^[A-Za-z0-9_.-]{1,40}$' }), Type.String({ maxLength: 500 }), {
      maxProperties: 20,
      additionalProperties: false,
    }),
  ),
})

const KeyParams = Type.Object({ key: Type.String() })

export function checkoutRoutes(app: App, deps: Deps, ring: KeyRing): void {
  const storefront = admit(ring, 'storefront', 'backend')
  const config = { tellsNewKeySafe: 'never' } as const

  app.post(
    '/v1/checkouts',
    {
      preParsing: storefront,
      preValidation: noQueryOnPost,
      schema: { ...contract.createCheckout, body: CheckoutRequestBody },
      config: { tellsNewKeySafe: 'by_header' },
    },
    async (request, reply) => {
      const { tenantId, connectedAccount } = callerOf(request)
      const answer = await checkout(deps, {
        tenantId,
        connectedAccount,
        key: keyOf(request),
        requestId: request.id,
        ...traceOf(request),
        method: 'POST',
        path: '/v1/checkouts',
        body: request.body as CheckoutBody,
      })
      return sendAnswer(reply, answer)
    },
  )

  app.get(
    '/v1/checkouts/:key',
    { preParsing: storefront, schema: { ...contract.lookUpCheckout, params: KeyParams }, config },
    async (request) => {
      return lookUpAttempt(deps, callerOf(request).tenantId, keyInPath(request.params.key))
    },
  )

  app.post(
    '/v1/checkouts/:key/cancel',
    {
      preParsing: storefront,
      preValidation: noQueryOnPost,
      schema: { ...contract.cancelCheckout, params: KeyParams, body: EmptyBody },
      config,
    },
    async (request, reply) => {
      const { tenantId } = callerOf(request)
      const key = keyInPath(request.params.key)
      const order = await cancelCheckout(deps, { tenantId, key, requestId: request.id, ...traceOf(request) })
      if (isOpen(order.status)) reply.code(202).header('retry-after', retryAfter(deps.config.reconcileAfterMs))
      return orderView(order)
    },
  )
}

export const EmptyBody = Type.Optional(Type.Union([Type.Null(), closed({})]))

/** The request's idempotency key. Throws the `Problem` where there is none or it is malformed. */
export function keyOf(request: FastifyRequest): string {
  const parsed = parseIdempotencyKey(request.raw.rawHeaders)
  if (parsed.kind === 'key') return parsed.key
  if (parsed.kind === 'missing') {
    throw new Problem('idempotency_key_missing', {
      detail: 'Send an Idempotency-Key header: one random key per attempt, the same on every repeat.',
    })
  }
  throw new Problem('idempotency_key_invalid', { detail: parsed.reason })
}

function keyInPath(segment: string): string {
  const parsed = parseKeyInPath(segment)
  if (parsed.kind === 'invalid') throw new Problem('not_found', { members: { new_key_safe: false } })
  return parsed.key
}

/** The caller's trace, handed on to the provider. */
export function traceOf(request: FastifyRequest): { traceparent?: string } {
  const { traceparent } = request.headers
  return typeof traceparent === 'string' && /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(traceparent)
    ? { traceparent }
    : {}
}

/** `pathOf` tells where what was created is found, by its order. */
export function sendAnswer(
  reply: FastifyReply,
  answer: Answer,
  pathOf = (orderId: string) => `/v1/orders/${orderId}`,
): FastifyReply {
  reply
    .code(answer.status)
    .header(
      'content-type',
      answer.status >= 400 ? 'application/problem+json; charset=utf-8' : 'application/json; charset=utf-8',
    )
  if (answer.status === 201 && answer.orderId !== null) reply.header('location', pathOf(answer.orderId))
  if (answer.retryAfterMs !== null) reply.header('retry-after', retryAfter(answer.retryAfterMs))
  if (answer.replayed) reply.header('idempotent-replayed', 'true')
  return reply.send(answer.body)
}

/** For the Retry-After header: whole seconds, at least one. */
export function retryAfter(ms: number): string {
  return String(Math.max(1, Math.ceil(ms / 1000)))
}
