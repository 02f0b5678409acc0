/** `POST /checkouts` and what a storefront asks of an attempt by its own key. */
import { Type } from 'typebox'
import type { Deps } from '../deps.ts'
import { parseKeyInPath } from '../domain/idempotency-key.ts'
import { isOpen } from '../domain/order.ts'
import { orderView } from '../domain/order-view.ts'
import { Problem } from '../domain/problem.ts'
import { cancelCheckout } from '../flows/saga/cancel.ts'
import { checkout } from '../flows/saga/checkout.ts'
import type { CheckoutBody } from '../flows/saga/checkout-request.ts'
import { lookUpAttempt } from '../flows/saga/look-up.ts'
import type { App } from './app-type.ts'
import { answersRepeats, attemptOf, needsRoom, retryAfter, sendAnswer } from './attempt.ts'
import { admit, callerOf, type KeyRing } from './auth.ts'
import * as contract from './contract/checkouts.ts'
import {
  Amount,
  bodyOptional,
  Currency,
  Customer,
  closed,
  EmptyBody,
  noQueryOnPost,
  PaymentMethod,
  Quantity,
  ShortText,
  Sku,
} from './input.ts'

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
      preParsing: [storefront, needsRoom(deps)],
      preValidation: [noQueryOnPost, answersRepeats(deps)],
      schema: { ...contract.createCheckout, body: CheckoutRequestBody },
      config: { tellsNewKeySafe: 'by_header', takesBytes: true },
    },
    async (request, reply) => {
      const answer = await checkout(deps, {
        ...attemptOf(request, '/v1/checkouts'),
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
      preValidation: bodyOptional,
      schema: { ...contract.cancelCheckout, params: KeyParams, body: EmptyBody },
      config,
    },
    async (request, reply) => {
      const { tenantId } = callerOf(request)
      const key = keyInPath(request.params.key)
      const order = await cancelCheckout(deps, { tenantId, key, requestId: request.id })
      if (isOpen(order.status)) reply.code(202).header('retry-after', retryAfter(deps.config.reconcileAfterMs))
      return orderView(order)
    },
  )
}

function keyInPath(segment: string): string {
  const parsed = parseKeyInPath(segment)
  if (parsed.kind === 'invalid') throw new Problem('idempotency_key_invalid', { detail: parsed.reason })
  return parsed.key
}
