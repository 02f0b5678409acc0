import { fromString, toUUID } from 'typeid-js'
import { describe, expect, test } from 'vitest'
import { isId, newId } from '../../src/domain/ids.ts'

const prefixes = ['ord', 'cus', 'ref', 'run', 'tra', 'evt'] as const

/** The version digit of the UUID within an id. */
function versionOf(id: string): string | undefined {
  return toUUID(fromString(id))[14]
}

describe('a new id', () => {
  test.each(prefixes)('with the prefix %s is a TypeID and unlike any other', (prefix) => {
    const ids = Array.from({ length: 1000 }, () => newId(prefix))
    expect(new Set(ids).size).toBe(1000)
    expect(ids.filter((id) => !isId(prefix, id))).toEqual([])
    expect(() => fromString(ids[0] ?? '', prefix)).not.toThrow()
  })

  test('sorts by time of birth', () => {
    const ids = Array.from({ length: 1000 }, () => newId('ord'))
    expect(ids).toEqual([...ids].sort())
    expect(versionOf(newId('ord'))).toBe('7')
  })

  test('of a customer holds no time', () => {
    expect(versionOf(newId('cus'))).toBe('4')
    // The first ten digits of a version 7 are its time, and hardly change between two calls.
    expect(newId('cus').slice(0, 14)).not.toBe(newId('cus').slice(0, 14))
  })
})

describe('the form of an id', () => {
  const id = 'ord_01h455vb4pex5vsknk084sn02q'

  test('is the prefix and 26 digits of base 32', () => {
    expect(isId('ord', id)).toBe(true)
  })

  test.each([
    '',
    'ord_',
    'ref_01h455vb4pex5vsknk084sn02q',
    '01h455vb4pex5vsknk084sn02q',
    'ord01h455vb4pex5vsknk084sn02q',
    'ORD_01h455vb4pex5vsknk084sn02q',
    'ord_01H455VB4PEX5VSKNK084SN02Q',
    'ord_81h455vb4pex5vsknk084sn02q',
    'ord_01h455vb4pex5vsknk084sn02',
    'ord_01h455vb4pex5vsknk084sn02qq',
    'ord_01h455vb4pex5vsknk084sn02u',
    'ord_01h455vb4pex5vsknk084sn02l',
    `${id}\n`,
    ` ${id}`,
  ])('is not %j', (text) => {
    expect(isId('ord', text)).toBe(false)
  })
})
