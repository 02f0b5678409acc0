/** Schemas and checks that several routes share. Lengths are generous for people and small for attackers. */
import type { preValidationHookHandler } from 'fastify'
import { Type } from 'typebox'
import { findIllFormed } from '../domain/wellformed.ts'
import { invalidRequest } from './problems.ts'

export const Currency = Type.String({ pattern: '^[A-Z]{3}$', description: 'ISO 4217, upper case' })
export const Sku = Type.String({ minLength: 1, maxLength: 64, pattern: '^[\\x21-\\x7e]+$' })
export const Amount = Type.Integer({ minimum: 0, maximum: 999_999_999_999, description: 'minor units of the currency' })
export const Quantity = Type.Integer({ minimum: 1, maximum: 1_000_000 })

/** An object that refuses unknown fields. */
export function closed<Properties extends Parameters<typeof Type.Object>[0]>(properties: Properties) {
  return Type.Object(properties, { additionalProperties: false })
}

/** Refuses what JSON allows but a database or a digest does not: NUL and lone surrogates in strings, numbers beyond
 * 2^53, `__proto__`, too deep a nesting; and a query string on a POST, which nothing here would read. */
export const wellFormed: preValidationHookHandler = async (request) => {
  if (request.method === 'POST' && request.url.includes('?')) {
    throw invalidRequest('A query string is not allowed here.')
  }
  const found = findIllFormed(request.body)
  if (found !== null) throw invalidRequest(`body${found.path}: ${problems[found.problem] ?? found.problem}`)
}

const problems: Partial<Record<string, string>> = {
  nul: 'must not contain a NUL character',
  lone_surrogate: 'must be well-formed Unicode, without lone surrogates',
  unsafe_number: 'must be a number below 2^53',
  too_deep: 'is nested too deeply',
}
