import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { currency, currencyCodes } from '../../src/domain/currencies.ts'
import { formatMinor, fromProviderAmount, roundHalfUp, toProviderAmount } from '../../src/domain/money.ts'

const anyCode = fc.constantFrom(...currencyCodes())
const inexact = [Number.NaN, Number.POSITIVE_INFINITY, 0.5, 2 ** 53, -(2 ** 53)]

describe('amounts at the provider', () => {
  test.each([
    ['USD', 1099, 1099],
    ['JPY', 500, 500],
    ['KWD', 5120, 5120],
    ['ISK', 5, 500],
    ['UGX', 5, 500],
    ['HUF', 17_500, 17_500],
    ['ISK', 0, 0],
  ])('%s %d is %d there, and back', (code, ours, theirs) => {
    expect(toProviderAmount(ours, code)).toBe(theirs)
    expect(fromProviderAmount(theirs, code)).toBe(ours)
  })

  test('come back unchanged for every currency', () => {
    fc.assert(
      fc.property(anyCode, fc.integer({ min: 0, max: 999_999_999_999 }), (code, amount) => {
        expect(fromProviderAmount(toProviderAmount(amount, code), code)).toBe(amount)
      }),
    )
  })

  test('with a fraction of our unit are refused, not rounded', () => {
    expect(() => fromProviderAmount(550, 'ISK')).toThrow(RangeError)
    expect(() => fromProviderAmount(1, 'UGX')).toThrow(RangeError)
  })

  test('that are not exact, or of an unknown currency, are refused', () => {
    for (const amount of inexact) {
      expect(() => toProviderAmount(amount, 'EUR')).toThrow(RangeError)
      expect(() => fromProviderAmount(amount, 'EUR')).toThrow(RangeError)
    }
    expect(() => toProviderAmount(Number.MAX_SAFE_INTEGER, 'ISK')).toThrow(RangeError)
    expect(() => toProviderAmount(100, 'XXX')).toThrow(RangeError)
    expect(() => fromProviderAmount(100, 'eur')).toThrow(RangeError)
  })
})

describe('a metered line', () => {
  test.each([
    { quantity: 1_000_000, price: 300, per: 1_000_000, amount: 300 },
    { quantity: 1, price: 300, per: 1_000_000, amount: 0 },
    { quantity: 1666, price: 300, per: 1_000_000, amount: 0 },
    { quantity: 1667, price: 300, per: 1_000_000, amount: 1 },
    { quantity: 5000, price: 300, per: 1_000_000, amount: 2 },
    { quantity: 1, price: 1, per: 2, amount: 1 },
    { quantity: 4999, price: 1, per: 10_000, amount: 0 },
    { quantity: 0, price: 300, per: 1, amount: 0 },
    // In floating point this is 1.005 * 100 = 100.49999999999999.
    { quantity: 1005, price: 100, per: 1000, amount: 101 },
    { quantity: Number.MAX_SAFE_INTEGER, price: 1_000_000, per: 1_000_000, amount: Number.MAX_SAFE_INTEGER },
  ])('of $quantity units at $price for $per is $amount', ({ quantity, price, per, amount }) => {
    expect(roundHalfUp(quantity, price, per)).toBe(amount)
  })

  test('is never more than half a unit away, and at exactly half rounds up', () => {
    const quantity = fc.maxSafeNat()
    const price = fc.nat({ max: 1_000_000 })
    const per = fc.integer({ min: 1, max: 1_000_000_000 })
    fc.assert(
      fc.property(quantity, price, per, (quantity, price, per) => {
        const truth = BigInt(quantity) * BigInt(price)
        fc.pre(truth / BigInt(per) < BigInt(Number.MAX_SAFE_INTEGER))
        const excess = 2n * (BigInt(roundHalfUp(quantity, price, per)) * BigInt(per) - truth)
        expect(excess > -BigInt(per) && excess <= BigInt(per)).toBe(true)
      }),
    )
  })

  test('without sense is refused', () => {
    expect(() => roundHalfUp(-1, 300, 1000)).toThrow(RangeError)
    expect(() => roundHalfUp(1, -300, 1000)).toThrow(RangeError)
    expect(() => roundHalfUp(1, 300, 0)).toThrow(RangeError)
    expect(() => roundHalfUp(0.5, 300, 1000)).toThrow(RangeError)
    expect(() => roundHalfUp(Number.MAX_SAFE_INTEGER, 2, 1)).toThrow(RangeError)
  })
})

describe('amounts for people', () => {
  test.each([
    [1250, 'EUR', '12.50 EUR'],
    [5, 'EUR', '0.05 EUR'],
    [0, 'EUR', '0.00 EUR'],
    [-5, 'USD', '-0.05 USD'],
    [-1250, 'USD', '-12.50 USD'],
    [500, 'JPY', '500 JPY'],
    [0, 'JPY', '0 JPY'],
    [5120, 'KWD', '5.120 KWD'],
    [10, 'KWD', '0.010 KWD'],
    [1500, 'ISK', '1500 ISK'],
    [Number.MAX_SAFE_INTEGER, 'EUR', '90071992547409.91 EUR'],
  ])('%d %s reads %s', (amount, code, expected) => {
    expect(formatMinor(amount, code)).toBe(expected)
  })

  test('say the amount exactly, with as many decimals as the currency has', () => {
    fc.assert(
      fc.property(anyCode, fc.maxSafeInteger(), (code, amount) => {
        const [number = '', unit] = formatMinor(amount, code).split(' ')
        expect(unit).toBe(code)
        expect(number.split('.')[1]?.length ?? 0).toBe(currency(code)?.exponent)
        expect(Number(number.replace('.', ''))).toBe(amount)
      }),
    )
  })

  test('refuse what is no amount', () => {
    expect(() => formatMinor(0.5, 'EUR')).toThrow(RangeError)
    expect(() => formatMinor(1, 'XXX')).toThrow(RangeError)
  })
})
