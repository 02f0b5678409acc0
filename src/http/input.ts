/** Schemas and checks that several routes share. Lengths are generous for people and small for attackers. */
import type { preValidationHookHandler } from 'fastify'
import { Type } from 'typebox'
import { invalidRequest } from './problems.ts'

export const Currency = Type.String({ pattern: '^[A-Z]{3}$', description: 'ISO 4217, upper case' })
export const Sku = Type.String({ minLength: 1, maxLength: 64, pattern: '^[\\x21-\\x7e]+$' })
export const MeterType = Type.String({ minLength: 1, maxLength: 64, pattern: '^[A-Za-z0-9_.:-]+$' })
export const Amount = Type.Integer({ minimum: 0, maximum: 999_999_999_999, description: 'minor units of the currency' })
export const Quantity = Type.Integer({ minimum: 1, maximum: 1_000_000 })

/** An object that refuses unknown fields. */
export function closed<Properties extends Parameters<typeof Type.Object>[0]>(properties: Properties) {
  return Type.Object(properties, { additionalProperties: false })
}

/** Refuses a query string on a POST, which nothing here would read. */
export const noQueryOnPost: preValidationHookHandler = async (request) => {
  if (request.method === 'POST' && request.url.includes('?')) {
    throw invalidRequest('A query string is not allowed here.')
  }
}

/** No body is the same as an empty object, where every field is optional. */
export const noBodyIsEmpty: preValidationHookHandler = async (request) => {
  if (request.body === undefined) request.body = {}
}
