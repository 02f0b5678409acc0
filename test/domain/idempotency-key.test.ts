import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { hashKeyForLog, keyLengthMax, parseIdempotencyKey, parseKeyInPath } from '../../src/domain/idempotency-key.ts'

/** The header as Node hands it over, among others. */
function sent(...values: string[]): string[] {
  return [
    'Host',
    'localhost',
    ...values.flatMap((value) => ['Idempotency-Key', value]),
    'Content-Type',
    'application/json',
  ]
}

const visible = Array.from({ length: 0x7f - 0x21 }, (_, i) => String.fromCharCode(0x21 + i))
const allowed = visible.filter((character) => character !== ',' && character !== '"')
const anyKey = fc.string({ unit: fc.constantFrom(...allowed), minLength: 1, maxLength: keyLengthMax })

describe('the Idempotency-Key header', () => {
  test('takes every allowed key as it is', () => {
    fc.assert(
      fc.property(
        anyKey.filter((key) => !key.startsWith('"')),
        (key) => {
          expect(parseIdempotencyKey(sent(key))).toEqual({ kind: 'key', key })
        },
      ),
    )
  })

  test('takes the quoted form as the same key', () => {
    fc.assert(
      fc.property(
        anyKey.filter((key) => !key.includes('\\')),
        (key) => {
          expect(parseIdempotencyKey(sent(`"${key}"`))).toEqual(parseIdempotencyKey(sent(key)))
        },
      ),
    )
    expect(parseIdempotencyKey(sent('"8e03978e-40d5-43dd-bc93-6894a57f9324"'))).toEqual({
      kind: 'key',
      key: '8e03978e-40d5-43dd-bc93-6894a57f9324',
    })
  })

  test('ignores white space around the value and the spelling of the name', () => {
    expect(parseIdempotencyKey(['IDEMPOTENCY-KEY', ' \tk \t'])).toEqual({ kind: 'key', key: 'k' })
    expect(parseIdempotencyKey(['idempotency-key', ' "k" '])).toEqual({ kind: 'key', key: 'k' })
  })

  test('is missing where it was not sent', () => {
    expect(parseIdempotencyKey([])).toEqual({ kind: 'missing' })
    expect(parseIdempotencyKey(sent())).toEqual({ kind: 'missing' })
    expect(parseIdempotencyKey(['X-Idempotency-Key', 'k', 'Referer', 'Idempotency-Key'])).toEqual({ kind: 'missing' })
  })

  test.each([
    ['sent twice', sent('a', 'b')],
    ['sent twice with the same value', sent('k', 'k')],
    ['sent twice in different spellings', ['idempotency-key', 'k', 'Idempotency-Key', 'k']],
    ['sent twice, once empty', sent('', 'k')],
    ['joined by a proxy', sent('a, b')],
    ['joined by a proxy without a space', sent('k,k')],
    ['joined by a proxy, quoted', sent('"k", "k"')],
    ['empty', sent('')],
    ['only white space', sent(' \t ')],
    ['empty in quotes', sent('""')],
    ['only a quote', sent('"')],
    ['quoted at the start only', sent('"k')],
    ['quoted at the end only', sent('k"')],
    ['with a quote inside', sent('k"k')],
    ['with a quote inside quotes', sent('"k"k"')],
    ['with an escaped quote', sent('"k\\"k"')],
    ['with an escaped backslash', sent('"k\\\\k"')],
    ['with a parameter', sent('"k";a=1')],
    ['with a parameter that ends in a quote', sent('"k";a="1"')],
    ['with a space inside', sent('a b')],
    ['with a space inside the quotes', sent('" k "')],
    ['with a control character', sent('k\u0001')],
    ['with DEL', sent('k\u007f')],
    ['with a NUL', sent('k\0')],
    ['with a line break', sent('k\n')],
    ['with a letter beyond ASCII', sent('clé')],
    ['one character too long', sent('k'.repeat(201))],
    ['one character too long within quotes', sent(`"${'k'.repeat(201)}"`)],
  ])('is invalid %s', (_, headers) => {
    expect(parseIdempotencyKey(headers)).toEqual({ kind: 'invalid', reason: expect.any(String) })
  })

  test('takes 200 characters, quoted too', () => {
    const key = 'k'.repeat(200)
    expect(parseIdempotencyKey(sent(key))).toEqual({ kind: 'key', key })
    expect(parseIdempotencyKey(sent(`"${key}"`))).toEqual({ kind: 'key', key })
  })

  test('never repeats the value in the reason, which may be a secret or a person', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), (value) => {
        const secret = `s3cr3t${value}s3cr3t `
        const parsed = parseIdempotencyKey(sent(secret, secret))
        expect(parsed.kind === 'invalid' && parsed.reason.includes('s3cr3t')).toBe(false)
      }),
    )
  })
})

describe('a key in a path', () => {
  test('is any key that the header takes', () => {
    fc.assert(
      fc.property(anyKey, (key) => {
        expect(parseKeyInPath(decodeURIComponent(encodeURIComponent(key)))).toEqual({ kind: 'key', key })
      }),
    )
  })

  test.each(['', '"k"', 'a,b', 'a b', ' k', 'clé', 'k\n', 'k'.repeat(201)])('is not %j', (segment) => {
    expect(parseKeyInPath(segment).kind).toBe('invalid')
  })
})

test('logs name a key by a hash that does not hold it', () => {
  expect(hashKeyForLog('k')).toBe('8254c329a92850f6')
  expect(hashKeyForLog('k')).not.toBe(hashKeyForLog('K'))
})
