import { hash } from 'node:crypto'

/** Longest key that is taken. With the tenant's id before it, it still fits the provider's limit of 255. */
export const keyLengthMax = 200

type ParsedKey = { kind: 'key'; key: string } | { kind: 'invalid'; reason: string }

/**
 * Reads the `Idempotency-Key` out of Node's `rawHeaders` (name, value, name, value, …). The raw list, because Node joins
 * the lines of a repeated header with a comma, after which two keys look like one.
 *
 * A key is 1 to 200 visible ASCII characters except `,` (a proxy may join repeated lines with it) and `"`. The quoted
 * form of the IETF draft (draft-ietf-httpapi-idempotency-key-header, a string of RFC 8941) is the same key: `"k"` is `k`.
 * Escapes and parameters of RFC 8941 are refused, so that no key has two spellings within the quotes.
 *
 * `reason` is a sentence for the client. It never holds the key.
 */
export function parseIdempotencyKey(rawHeaders: readonly string[]): ParsedKey | { kind: 'missing' } {
  let value: string | undefined
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() !== 'idempotency-key') continue
    if (value !== undefined) return invalid('The Idempotency-Key header must be sent once, not repeated.')
    value = rawHeaders[i + 1]
  }
  return value === undefined ? { kind: 'missing' } : parseHeaderValue(value.replace(/^[ \t]+|[ \t]+$/g, ''))
}

/** Checks a key that stands in a URL's path, already percent-decoded. The quoted form is one of the header alone. */
export function parseKeyInPath(segment: string): ParsedKey {
  return parseBareKey(segment)
}

/** What logs say instead of the key: enough to find the lines of one key, nothing that could be sent as one. */
export function hashKeyForLog(key: string): string {
  return hash('sha256', key).slice(0, 16)
}

function parseHeaderValue(value: string): ParsedKey {
  if (!value.startsWith('"')) return parseBareKey(value)
  if (value.length < 2 || !value.endsWith('"')) {
    return invalid('A quoted Idempotency-Key must end with its closing quote, without parameters.')
  }
  const key = value.slice(1, -1)
  if (key.includes('\\')) return invalid('A quoted Idempotency-Key must not contain a backslash.')
  return parseBareKey(key)
}

function parseBareKey(key: string): ParsedKey {
  if (key === '') return invalid('The Idempotency-Key must not be empty.')
  if (key.length > keyLengthMax) return invalid(`The Idempotency-Key must have at most ${keyLengthMax} characters.`)
  // Visible ASCII is ! to ~; of these " comes right after !, and , between + and -.
  if (!/^[!#-+\-.-~]+$/.test(key)) {
    return invalid('The Idempotency-Key must consist of visible ASCII characters other than comma and double quote.')
  }
  return { kind: 'key', key }
}

function invalid(reason: string): { kind: 'invalid'; reason: string } {
  return { kind: 'invalid', reason }
}
