/** Pages write amounts with the decimals that the service counts. */
import { expect, it } from 'vitest'
import { currency, currencyCodes } from '../../src/domain/currencies.ts'
import { decimalsOf, money } from '../../src/web/common/money.ts'

it('a page knows the decimals of every currency', () => {
  const wrong = currencyCodes().filter((code) => decimalsOf(code) !== currency(code)?.exponent)
  expect([wrong, currencyCodes().length > 100]).toEqual([[], true])
})

it('an amount is written with its currency', () => {
  const digits = (text: string) => text.replace(/[^\dA-Z]/g, '')
  expect(digits(money(123_456, 'EUR'))).toBe('123456EUR')
  expect(digits(money(5, 'EUR'))).toBe('005EUR')
  expect(digits(money(5, 'JPY'))).toBe('5JPY')
  expect(digits(money(5, 'KWD'))).toBe('0005KWD')
})
