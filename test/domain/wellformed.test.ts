import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { depthMax, findIllFormed } from '../../src/domain/wellformed.ts'

function nested(depth: number): string {
  return '['.repeat(depth) + ']'.repeat(depth)
}

/** JSON with whole Unicode characters and safe numbers, far less deep than the limit. */
const wellFormed = fc
  .anything({
    maxDepth: 4,
    key: fc.string({ unit: 'grapheme' }),
    values: [
      fc.string({ unit: 'grapheme' }),
      fc.maxSafeInteger(),
      fc.double({ min: -1e15, max: 1e15, noNaN: true }),
      fc.boolean(),
      fc.constant(null),
    ],
  })
  .filter((value) => !JSON.stringify(value).includes('__proto__'))

describe('ill-formed JSON', () => {
  test.each([
    ['"a\\u0000b"', '', 'nul'],
    ['{"customer":{"name":"a\\u0000"}}', '/customer/name', 'nul'],
    ['{"metadata":{"a\\u0000":"b"}}', '/metadata', 'nul'],
    ['{"items":[{"sku":"mug"},{"sku":"\\ud83d"}]}', '/items/1/sku', 'lone_surrogate'],
    ['{"a":"\\ude00\\ud83d"}', '/a', 'lone_surrogate'],
    ['{"metadata":{"\\udc00":1}}', '/metadata', 'lone_surrogate'],
    ['{"expected_total":9007199254740992}', '/expected_total', 'unsafe_number'],
    ['{"expected_total":9007199254740993}', '/expected_total', 'unsafe_number'],
    ['{"expected_total":-9007199254740992}', '/expected_total', 'unsafe_number'],
    ['{"expected_total":1e400}', '/expected_total', 'unsafe_number'],
    ['{"__proto__":{"admin":true}}', '', 'forbidden_key'],
    ['{"metadata":{"__proto__":"x"}}', '/metadata', 'forbidden_key'],
    ['{"\\u005f_proto__":1}', '', 'forbidden_key'],
    ['{"a/b":{"c~d":"\\u0000"}}', '/a~1b/c~0d', 'nul'],
    [nested(depthMax + 1), '/0'.repeat(depthMax), 'too_deep'],
  ])('%s is named', (text, path, problem) => {
    expect(findIllFormed(JSON.parse(text))).toEqual({ path, problem })
  })

  test('is named at the first place in the document', () => {
    expect(findIllFormed(JSON.parse('{"b":["ok","\\u0000"],"a":"\\ud800"}'))).toEqual({ path: '/b/1', problem: 'nul' })
  })

  test('however deep does not exhaust the stack', () => {
    let deep: unknown = 'core'
    for (let i = 0; i < 1_000_000; i++) deep = { a: deep }
    expect(findIllFormed(deep)).toEqual({ path: '/a'.repeat(depthMax), problem: 'too_deep' })
  })

  test('is found wherever it stands', () => {
    const place = fc.array(fc.oneof(fc.nat({ max: 3 }), fc.string({ unit: 'grapheme-ascii' })), { maxLength: 10 })
    fc.assert(
      fc.property(place, wellFormed, (steps, sibling) => {
        fc.pre(!steps.includes('__proto__'))
        let value: unknown = 'a\0'
        for (const step of [...steps].reverse()) {
          value =
            typeof step === 'number'
              ? [...Array.from({ length: step }, () => sibling), value]
              : Object.fromEntries([[step, value]])
        }
        const pointer = steps.map((step) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
        expect(findIllFormed(value)).toEqual({ path: pointer, problem: 'nul' })
      }),
    )
  })
})

describe('well-formed JSON', () => {
  test.each([
    'null',
    'true',
    '"é and e\\u0301 and \\ud83d\\ude00"',
    '9007199254740991',
    '-9007199254740991',
    '0.1',
    '-0',
    '1e-400',
    '{"constructor":"x","prototype":{},"toString":1,"hasOwnProperty":null}',
    '{"":{"":[]}}',
    nested(depthMax),
  ])('%s passes', (text) => {
    expect(findIllFormed(JSON.parse(text))).toBeNull()
  })

  test('of any shape passes', () => {
    fc.assert(
      fc.property(wellFormed, (value) => {
        expect(findIllFormed(value)).toBeNull()
      }),
    )
  })
})
