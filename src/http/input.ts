/** Schemas and checks that several routes share. Lengths are generous for people and small for attackers. */
import type { preValidationHookHandler } from 'fastify'
import { Type } from 'typebox'
import { invalidRequest } from './problems.ts'

export const Currency = Type.String({ pattern: '^[A-Z]{3}$', description: 'ISO 4217, upper case' })
export const Sku = Type.String({ minLength: 1, maxLength: 64, pattern: '^[\\x21-\\x7e]+$' })
export const MeterType = Type.String({ minLength: 1, maxLength: 64, pattern: '^[A-Za-z0-9_.:-]+$' })
export const Amount = Type.Integer({ minimum: 0, maximum: 999_999_999_999, description: 'minor units of the currency' })
export const Quantity = Type.Integer({ minimum: 1, maximum: 1_000_000 })
export const ShortText = Type.String({ minLength: 1, maxLength: 200 })

export const IdParams = Type.Object({ id: Type.String() })

/** An object that refuses unknown fields. */
export function closed<Properties extends Parameters<typeof Type.Object>[0]>(properties: Properties) {
  return Type.Object(properties, { additionalProperties: false })
}

/** One mailbox in a domain of the internet: quoted local parts may hold line breaks and commas, and a bare host or an
 * address in brackets is a machine of ours as likely as anybody's. */
const Email = Type.String({ format: 'email', pattern: '^[^\\s"@]+@[A-Za-z0-9-]+(\\.[A-Za-z0-9-]+)+$', maxLength: 254 })

export const Customer = closed({
  email: Email,
  name: Type.Optional(ShortText),
})
export const PaymentMethod = Type.String({
  pattern: '^[A-Za-z0-9_]{1,255}$',
  description: "The provider's id of a payment method that its browser library made; card data never comes here",
})

/** Of a POST that says everything by its path. */
export const EmptyBody = Type.Optional(closed({}))

/** Refuses a query string on a POST, which nothing here would read. */
export const noQueryOnPost: preValidationHookHandler = async (request) => {
  if (request.method === 'POST' && request.url.includes('?')) {
    throw invalidRequest('A query string is not allowed here.')
  }
}

/** Of a POST where every field is optional: no body is the same as an empty object. `null` is not: who sends that for a
 * refund may not have meant all that is left. */
const noBodyIsEmpty: preValidationHookHandler = async (request) => {
  if (request.body === undefined) request.body = {}
}

/** What a POST with an optional body does before it is validated. */
export const bodyOptional = [noQueryOnPost, noBodyIsEmpty]
