/**
 * Amounts are integers in the minor units of their currency, as Checkout counts them. Nothing here rounds but
 * `roundHalfUp`, and nothing returns a number that arithmetic could have made inexact.
 */
import { type Currency, currency } from './currencies.ts'

/**
 * Our minor units as the provider counts them: the same, but hundredfold for ISK and UGX.
 * Throws a RangeError for an unknown currency and for an amount that is not exact.
 */
export function toProviderAmount(amount: number, code: string): number {
  return exact(exact(amount) * known(code).providerMultiplier)
}

/**
 * The provider's amount in our minor units. Throws a RangeError for an unknown currency and where the provider names
 * a fraction of our minor unit, which cannot be booked.
 */
export function fromProviderAmount(amount: number, code: string): number {
  return exact(exact(amount) / known(code).providerMultiplier)
}

/**
 * The amount of a metered line: `quantity` units at `price` minor units for every `per` units, a half rounded up.
 * Throws a RangeError unless quantity and price are at least 0, per at least 1, and the result is exact.
 */
export function roundHalfUp(quantity: number, price: number, per: number): number {
  if (exact(quantity) < 0 || exact(price) < 0 || exact(per) < 1) {
    throw new RangeError(`${quantity} units at ${price} for ${per} is no metered line`)
  }
  const halves = 2n * BigInt(quantity) * BigInt(price) + BigInt(per)
  return exact(Number(halves / (2n * BigInt(per))))
}

/** An amount for people: `12.50 EUR`, `500 JPY`, `-0.05 USD`. Throws a RangeError for an unknown currency. */
export function formatMinor(amount: number, code: string): string {
  const { exponent } = known(code)
  const digits = String(Math.abs(exact(amount))).padStart(exponent + 1, '0')
  const whole = digits.slice(0, digits.length - exponent)
  const fraction = digits.slice(digits.length - exponent)
  return `${amount < 0 ? '-' : ''}${whole}${exponent === 0 ? '' : `.${fraction}`} ${code}`
}

function known(code: string): Currency {
  const found = currency(code)
  if (found === undefined) throw new RangeError(`${code} is not a currency that can be charged`)
  return found
}

/** Beyond 2^53 - 1 neighbouring integers collapse into one another, so no such number may stand for money. */
function exact(number: number): number {
  if (!Number.isSafeInteger(number)) throw new RangeError(`${number} is not an exact integer`)
  return number
}
