import { hash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import canonicalize from 'canonicalize'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { DigestSecrets, differingFields, digestRequest } from '../../src/domain/digest.ts'

const { newest: secret } = new DigestSecrets(['a secret for tests'])
const request = { method: 'POST', path: '/v1/checkouts' }

function digestOf(body: object | undefined, defaults: Record<string, unknown> = {}): string {
  return digestRequest(secret, { ...request, body }, defaults).digest
}

function digestOfText(json: string): string {
  return digestOf(JSON.parse(json))
}

function tagsOf(body: object | undefined, defaults: Record<string, unknown> = {}) {
  return digestRequest(secret, { ...request, body }, defaults).tags
}

/** JSON as bodies hold it: numbers are safe integers. */
const json = fc.anything({
  maxDepth: 3,
  key: fc.string({ unit: 'grapheme' }),
  values: [fc.string({ unit: 'grapheme' }), fc.maxSafeInteger(), fc.boolean(), fc.constant(null)],
})
const anyBody = fc.dictionary(fc.oneof(fc.constantFrom('a', 'b', 'method', ':path'), fc.string()), json, { maxKeys: 5 })

function shuffled(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shuffled)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .map(([name, member]) => [name, shuffled(member)])
      .reverse(),
  )
}

describe('the digest of a request', () => {
  test('is a keyed SHA3-256 over method, path and the RFC 8785 form of the body', () => {
    fc.assert(
      fc.property(anyBody, (body) => {
        const text = canonicalize(['POST', '/v1/checkouts', body]) ?? ''
        expect(digestOf(body)).toBe(hash('sha3-256', secret.digestKey + text, 'base64'))
      }),
    )
  })

  test('stays what it was when the code changes, for stored ones are compared with it', () => {
    const body = { items: [{ sku: 'mug', quantity: 2 }], customer: { email: 'anna@example.com' }, note: 'é' }
    const { secretId, digest, tags } = digestRequest(secret, { ...request, body })
    expect(secretId).toBe('01c98d478959cce1')
    expect(digest).toBe('uEZAjrKxBB8u/EdTACU94rzw1sa3qIw1DU6IJjTFp4I=')
    expect({ ...tags }).toEqual({
      ':method': 'mj5EWGHUDjgu',
      ':path': 'mo556bpvgNlI',
      items: '2FUWZq2un6T0',
      customer: 'dQDmKvnL3J8z',
      note: 'BYukPdGRXryA',
    })
  })

  test('is the same for two bodies exactly when they are equal, whatever the order of keys', () => {
    fc.assert(
      fc.property(anyBody, anyBody, (one, other) => {
        expect(digestOf(one) === digestOf(other)).toBe(isDeepStrictEqual({ ...one }, { ...other }))
        expect(digestOf(shuffled(one) as object)).toBe(digestOf(one))
      }),
    )
  })

  test.each([
    ['order of keys', '{"a":1,"b":{"c":2,"d":3}}', '{"b":{"d":3,"c":2},"a":1}'],
    ['white space', '{"a":[1,2]}', ' {\n\t"a" : [ 1 , 2 ] }\r\n'],
    ['escapes', '{"name":"\\u00e9\\/\\u0041"}', '{"name":"é/A"}'],
    ['escapes in names', '{"\\u00e9":1}', '{"é":1}'],
    ['spelling of integers', '{"a":100,"b":0}', '{"a":1e2,"b":-0}'],
    ['an empty body', '{}', '{ }'],
  ])('does not depend on %s', (_, one, other) => {
    expect(digestOfText(other)).toBe(digestOfText(one))
  })

  test.each([
    ['the order of arrays', '{"items":[1,2]}', '{"items":[2,1]}'],
    ['composed and decomposed accents', '{"name":"\\u00e9"}', '{"name":"e\\u0301"}'],
    ['types', '{"quantity":1}', '{"quantity":"1"}'],
    ['null and absence', '{"a":null}', '{}'],
    ['upper and lower case', '{"a":"x"}', '{"a":"X"}'],
    ['white space in strings', '{"a":"x"}', '{"a":"x "}'],
    ['where a value stands', '{"a":{"b":1}}', '{"a":{},"b":1}'],
    ['an own key __proto__', '{"a":1,"__proto__":{"b":1}}', '{"a":1}'],
    ['an own key __proto__ further in', '{"a":{"__proto__":1}}', '{"a":{}}'],
    ['neighbouring large integers', '{"a":9007199254740991}', '{"a":9007199254740990}'],
  ])('depends on %s', (_, one, other) => {
    expect(digestOfText(other)).not.toBe(digestOfText(one))
  })

  test('depends on method and path, and takes no part of one for the other', () => {
    const digests = [
      { method: 'POST', path: '/v1/checkouts', body: {} },
      { method: 'PUT', path: '/v1/checkouts', body: {} },
      { method: 'POST', path: '/v1/checkouts/', body: {} },
      { method: 'POST/v1', path: '/checkouts', body: {} },
      { method: 'POST', path: '/v1/checkouts",{}', body: {} },
    ].map((each) => digestRequest(secret, each).digest)
    expect(new Set(digests).size).toBe(digests.length)
  })

  test('takes no body for an empty one', () => {
    expect(digestOf(undefined)).toBe(digestOf({}))
    expect(digestOf({ a: undefined })).toBe(digestOf({}))
    expect(tagsOf({ a: undefined })).toEqual(tagsOf({}))
  })

  test.each([2 ** 53, -(2 ** 53), 0.5, 1e21, Number.NaN, Number.POSITIVE_INFINITY])(
    'refuses the number %d',
    (number) => {
      expect(() => digestOf({ a: number })).toThrow(RangeError)
      expect(() => digestOf({ a: [{ b: number }] })).toThrow(RangeError)
    },
  )

  // No body with one comes this far; a digest must not take it for anything else all the same.
  test('tells a lone surrogate from all else', () => {
    const texts = ['{"a":"\\ud800"}', '{"a":"\\udc00"}', '{"a":"\\\\ud800"}', '{"a":"\\ufffd"}']
    expect(new Set(texts.map(digestOfText)).size).toBe(texts.length)
  })
})

describe('vectors of RFC 8785', () => {
  function expectCanonical(json: string, canonical: string): void {
    const text = `["POST","/v1/checkouts",${canonical}]`
    expect(digestOfText(json)).toBe(hash('sha3-256', secret.digestKey + text, 'base64'))
  }

  test('strings and literals, section 3.2.2', () => {
    expectCanonical(
      String.raw`{"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}`,
      String.raw`{"literals":[null,true,false],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
    )
  })

  test('sorting of names, section 3.2.3', () => {
    expectCanonical(
      String.raw`{
        "\u20ac": "Euro Sign",
        "\r": "Carriage Return",
        "\ufb33": "Hebrew Letter Dalet With Dagesh",
        "1": "One",
        "\ud83d\ude00": "Emoji: Grinning Face",
        "\u0080": "Control",
        "\u00f6": "Latin Small Letter O With Diaeresis"
      }`,
      '{"\\r":"Carriage Return","1":"One","\u0080":"Control","ö":"Latin Small Letter O With Diaeresis",' +
        '"€":"Euro Sign","😀":"Emoji: Grinning Face","\ufb33":"Hebrew Letter Dalet With Dagesh"}',
    )
  })

  test('names that look like numbers sort as text', () => {
    expectCanonical('{"9":1,"10":2,"a":{"9":1,"10":2}}', '{"10":2,"9":1,"a":{"10":2,"9":1}}')
  })

  test.each([
    ['0000000000000000', '0'],
    ['8000000000000000', '0'],
    ['433fffffffffffff', '9007199254740991'],
    ['c33fffffffffffff', '-9007199254740991'],
  ])('the integer %s of appendix B reads %s', (ieee754, canonical) => {
    const number = Buffer.from(ieee754, 'hex').readDoubleBE()
    expect(digestOf({ a: number })).toBe(digestOfText(`{"a":${canonical}}`))
  })

  test.each([
    '0000000000000001',
    '7fefffffffffffff',
    '4340000000000000',
    'c340000000000000',
    '4430000000000000',
    '7fffffffffffffff',
    '7ff0000000000000',
    '44b52d02c7e14af6',
    '444b1ae4d6e2ef50',
    '3eb0c6f7a0b5ed8d',
    '41b3de4355555555',
    'becbf647612f3696',
  ])('the number %s of appendix B is refused, being no safe integer', (ieee754) => {
    const number = Buffer.from(ieee754, 'hex').readDoubleBE()
    expect(() => digestOf({ a: number })).toThrow(RangeError)
  })
})

describe('fields equal to their default', () => {
  const defaults = { capture: 'automatic', options: { a: 1, b: [2] } }

  test('are left out', () => {
    expect(digestOf({ sku: 'mug', capture: 'automatic' }, defaults)).toBe(digestOf({ sku: 'mug' }, defaults))
    expect(digestOf({ options: { b: [2], a: 1 } }, defaults)).toBe(digestOf({}, defaults))
    expect(tagsOf({ capture: 'automatic' }, defaults)).toEqual(tagsOf({}, defaults))
  })

  test('count when they say something else', () => {
    expect(digestOf({ capture: 'manual' }, defaults)).not.toBe(digestOf({}, defaults))
    expect(digestOf({ options: { a: 1, b: ['2'] } }, defaults)).not.toBe(digestOf({}, defaults))
    expect(differingFields(tagsOf({}, defaults), tagsOf({ capture: 'manual' }, defaults))).toEqual(['capture'])
  })

  test('are looked for at the top alone, and never on a prototype', () => {
    expect(digestOf({ a: { capture: 'automatic' } }, defaults)).not.toBe(digestOf({ a: {} }, defaults))
    expect(digestOf(JSON.parse('{"constructor":1,"__proto__":1,"capture":"automatic"}'), defaults)).toBe(
      digestOf(JSON.parse('{"__proto__":1,"constructor":1}'), defaults),
    )
  })
})

describe('the fields that differ', () => {
  test('are exactly those whose values do, or that only one has', () => {
    fc.assert(
      fc.property(anyBody, anyBody, fc.array(fc.string()), (one, other, shared) => {
        const both = Object.fromEntries(shared.map((name) => [`shared ${name}`, name]))
        const left = { ...one, ...both }
        const right = { ...other, ...both }
        const names = new Set([...Object.keys(left), ...Object.keys(right)])
        const expected = [...names].filter(
          (name) =>
            Object.hasOwn(left, name) !== Object.hasOwn(right, name) || !isDeepStrictEqual(left[name], right[name]),
        )
        // What was stored has been through JSON.
        const stored = JSON.parse(JSON.stringify(tagsOf(left)))
        expect(differingFields(stored, tagsOf(right))).toEqual(expected.sort())
      }),
    )
  })

  test('name method and path beside fields of the same name', () => {
    const one = digestRequest(secret, { method: 'POST', path: '/a', body: { method: 'x', ':method': 'y' } }).tags
    const other = digestRequest(secret, { method: 'PUT', path: '/b', body: { method: 'x', ':method': 'y' } }).tags
    expect(differingFields(one, other)).toEqual(['method', 'path'])
    const third = digestRequest(secret, { method: 'POST', path: '/a', body: { method: 'x', ':method': 'z' } }).tags
    expect(differingFields(one, third)).toEqual([':method'])
  })

  test('include an own field __proto__ and those named like what every object has', () => {
    const one = tagsOf(JSON.parse('{"__proto__":1,"constructor":1}'))
    const other = JSON.parse(JSON.stringify(tagsOf({})))
    expect(differingFields(one, other)).toEqual(['__proto__', 'constructor'])
    expect(differingFields(other, one)).toEqual(['__proto__', 'constructor'])
  })

  test('are told apart by tags that are bound to the name', () => {
    const { a, b } = tagsOf({ a: 'same', b: 'same' })
    expect(a).toMatch(/^[\w+/]{12}$/)
    expect(a).not.toBe(b)
  })
})

describe('digest secrets', () => {
  const secrets = new DigestSecrets(['new', 'old'])

  test('newest first; an attempt finds the one that it remembers, also in another order', () => {
    const made = digestRequest(secrets.newest, { ...request, body: { a: 1 } })
    expect(secrets.newest).toBe(secrets.pick(made.secretId))
    const remembered = new DigestSecrets(['newer', 'old', 'new']).pick(made.secretId)
    if (remembered === undefined) throw new Error('the secret is still in the list')
    const again = digestRequest(remembered, { ...request, body: { a: 1 } })
    expect(again.digest).toEqual(made.digest)
    expect(differingFields(again.tags, made.tags)).toEqual([])
  })

  test('give different digests and tags', () => {
    const older = new DigestSecrets(['old']).newest
    expect(older.id).not.toBe(secrets.newest.id)
    const one = digestRequest(secrets.newest, { ...request, body: { a: 1 } })
    const other = digestRequest(older, { ...request, body: { a: 1 } })
    expect(one.digest).not.toEqual(other.digest)
    expect(differingFields(one.tags, other.tags)).toEqual(['a', 'method', 'path'])
  })

  test('that are gone are not found', () => {
    expect(secrets.pick(secret.id)).toBeUndefined()
  })

  test('are needed, and none may be empty', () => {
    expect(() => new DigestSecrets([])).toThrow(RangeError)
    expect(() => new DigestSecrets(['new', ''])).toThrow(RangeError)
  })
})
