/** Reads JSON bodies strictly: what is taken is what was sent, or the client learns what is wrong. */
import { isUtf8 } from 'node:buffer'
import type { FastifyRequest } from 'fastify'
import { Problem } from '../domain/problem.ts'
import { findIllFormed, type IllFormedProblem } from '../domain/wellformed.ts'
import type { App } from './app-type.ts'
import { invalidRequest, isEncoded } from './problems.ts'

/** Bodies are JSON, as it is: neither another type nor another coding of it is guessed at. */
export function takeJsonBodies(app: App): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, async (request: FastifyRequest, body: Buffer) => {
    refuseEncoded(request, body)
    return request.routeOptions.config.takesBytes === true ? body : parseJsonBody(body)
  })
  // Some clients send an empty body in chunks and without a type where they have none to send.
  app.addContentTypeParser('*', { parseAs: 'buffer' }, async (request: FastifyRequest, body: Buffer) => {
    refuseEncoded(request, body)
    if (body.length > 0) throw new Problem('unsupported_media_type')
  })
}

function refuseEncoded(request: FastifyRequest, body: Buffer): void {
  if (body.length === 0 || !isEncoded(request)) return
  throw new Problem('unsupported_media_type', { detail: 'The body must come as it is, without a Content-Encoding.' })
}

/**
 * The parsed body; undefined for none. Throws a `Problem` for what is no JSON, and for what JSON allows but a database or
 * a digest does not: invalid UTF-8 (RFC 8259, 8.1), a key twice in one object (of which everybody reads another one), NUL
 * and lone surrogates in strings, numbers beyond 2^53, `__proto__`, too deep a nesting.
 */
export function parseJsonBody(bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined
  if (!isUtf8(bytes)) throw invalidRequest('The body is not valid UTF-8.')
  const text = bytes.toString()
  const value = parse(text)
  const found = findIllFormed(value)
  if (found !== null) throw invalidRequest(`body${found.path}: ${problems[found.problem]}.`)
  if (keysIn(text) !== keysOf(value)) throw invalidRequest('The body has an object with the same key twice.')
  return value
}

const problems: Record<IllFormedProblem, string> = {
  nul: 'must not contain a NUL character',
  lone_surrogate: 'must be well-formed Unicode, without lone surrogates',
  unsafe_number: 'must be a number below 2^53',
  too_deep: 'is nested too deeply',
  forbidden_key: 'must not have a key "__proto__"',
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    // The engine's own message quotes the body, which may be anybody's data.
    const [position] = /at position \d+/.exec((error as Error).message) ?? []
    throw invalidRequest(`The body is not valid JSON${position === undefined ? '' : ` (${position})`}.`)
  }
}

/** In text that is known to be JSON, a string is a key exactly where a colon follows. */
function keysIn(text: string): number {
  let keys = 0
  for (const found of text.match(stringsOfJson) ?? []) if (found.endsWith(':')) keys += 1
  return keys
}

/** Each with the colon that may follow it. */
const stringsOfJson = /"[^"\\]*(?:\\.[^"\\]*)*"\s*:?/g

/** The parser keeps the last of several equal keys. */
function keysOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const members = Object.values(value)
  return members.reduce<number>((keys, member) => keys + keysOf(member), Array.isArray(value) ? 0 : members.length)
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The body arrives as bytes, which a hook of the route parses. */
    takesBytes?: boolean
  }
}
