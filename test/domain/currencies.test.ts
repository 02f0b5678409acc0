import { describe, expect, test } from 'vitest'
import { currency, currencyCodes } from '../../src/domain/currencies.ts'

describe('the table of currencies', () => {
  test('knows ISO 4217 codes only, upper case only, and none that is withdrawn', () => {
    const iso = new Set(Intl.supportedValuesOf('currency'))
    expect(currencyCodes().filter((code) => !iso.has(code))).toEqual([])
    for (const code of [
      'eur',
      'Eur',
      '',
      'EUR ',
      'XXX',
      'BTC',
      'BGN',
      'HRK',
      'SLL',
      'STD',
      'constructor',
      '__proto__',
    ]) {
      expect(currency(code)).toBeUndefined()
    }
  })

  test('counts two decimals everywhere but in the currencies that Stripe lists as different', () => {
    const codesWith = (exponent: number) => currencyCodes().filter((code) => currency(code)?.exponent === exponent)
    expect(codesWith(0).join(' ')).toBe('BIF CLP DJF GNF ISK JPY KMF KRW MGA PYG RWF UGX VND VUV XAF XOF XPF')
    expect(codesWith(3).join(' ')).toBe('BHD JOD KWD OMR TND')
    expect(codesWith(2).length).toBe(115)
  })

  test.each([
    { code: 'USD', exponent: 2, step: 1, minimum: 50, maximum: 99_999_999, providerMultiplier: 1 },
    { code: 'EUR', exponent: 2, step: 1, minimum: 50, maximum: 99_999_999, providerMultiplier: 1 },
    { code: 'GBP', exponent: 2, step: 1, minimum: 30, maximum: 99_999_999, providerMultiplier: 1 },
    { code: 'MXN', exponent: 2, step: 1, minimum: 1000, maximum: 99_999_999, providerMultiplier: 1 },
    { code: 'TWD', exponent: 2, step: 1, minimum: 50, maximum: 99_999_999, providerMultiplier: 1 },
    { code: 'HUF', exponent: 2, step: 1, minimum: 17_500, maximum: 9_999_999_999, providerMultiplier: 1 },
    { code: 'IDR', exponent: 2, step: 1, minimum: 50, maximum: 999_999_999_999, providerMultiplier: 1 },
    { code: 'COP', exponent: 2, step: 1, minimum: 50, maximum: 9_999_999_999, providerMultiplier: 1 },
    { code: 'JPY', exponent: 0, step: 1, minimum: 50, maximum: 99_999_999, providerMultiplier: 1 },
    { code: 'MGA', exponent: 0, step: 1, minimum: 50, maximum: 99_999_999, providerMultiplier: 1 },
    { code: 'ISK', exponent: 0, step: 1, minimum: 50, maximum: 999_999, providerMultiplier: 100 },
    { code: 'UGX', exponent: 0, step: 1, minimum: 50, maximum: 999_999, providerMultiplier: 100 },
    { code: 'KWD', exponent: 3, step: 10, minimum: 50, maximum: 99_999_990, providerMultiplier: 1 },
    { code: 'TND', exponent: 3, step: 10, minimum: 50, maximum: 99_999_990, providerMultiplier: 1 },
  ])('has $code as the provider has it', (expected) => {
    expect(currency(expected.code)).toEqual(expected)
  })

  test('has limits that can themselves be charged', () => {
    for (const code of currencyCodes()) {
      const entry = currency(code)
      if (entry === undefined) throw new Error(`${code} is listed and not found`)
      const { minimum, maximum, step, providerMultiplier } = entry
      expect(minimum % step, code).toBe(0)
      expect(maximum % step, code).toBe(0)
      expect(minimum, code).toBeLessThan(maximum)
      expect(Number.isSafeInteger(maximum * providerMultiplier), code).toBe(true)
    }
  })

  test('cannot be changed by who reads it', () => {
    expect(Object.isFrozen(currency('EUR'))).toBe(true)
  })
})
