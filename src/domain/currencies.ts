/**
 * The currencies that an order can be in: the ISO 4217 currencies in which Stripe charges cards
 * (https://docs.stripe.com/currencies), with the limits that Stripe puts on one charge.
 *
 * The limits are checked before anything is claimed, so that a customer gets a clear refusal and not an attempt that
 * the provider turns down. Where Stripe's pages disagree, or the limit depends on the card's network, the narrower one
 * stands here: too narrow is a clear refusal that can be widened, too wide a charge that fails after the claim.
 */
export interface Currency {
  /** ISO 4217, upper case. */
  readonly code: string
  /** Decimals of an amount as Checkout counts it: an amount of 1250 with exponent 2 is 12.50. */
  readonly exponent: 0 | 2 | 3
  /** Every amount is a multiple of this, in minor units. */
  readonly step: number
  /** Smallest amount of one charge, in minor units. */
  readonly minimum: number
  /** Largest amount of one charge, in minor units. */
  readonly maximum: number
  /** What the provider counts as one of our minor units: 1, or 100 where it writes two decimals that must be zero. */
  readonly providerMultiplier: 1 | 100
}

/** All of these have two decimals at Stripe, those included that are used without (HUF and TWD: only payouts are whole). */
const twoDecimals =
  'AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BRL BSD BWP BYN BZD CAD CDF CHF CNY COP CRC CVE CZK DKK ' +
  'DOP DZD EGP ETB EUR FJD FKP GBP GEL GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR JMD KES KGS KHR KYD KZT LAK LBP LKR ' +
  'LRD LSL MAD MDL MKD MMK MNT MOP MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD ' +
  'RUB SAR SBD SCR SEK SGD SHP SLE SOS SRD SZL THB TJS TOP TRY TTD TWD TZS UAH USD UYU UZS WST XCD XCG YER ZAR ZMW'
const noDecimals = 'BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF'
/** Stripe's "special cases": without decimals for everybody, but its API goes on taking hundredths that must be 00. */
const noDecimalsInHundredths = 'ISK UGX'
/** Stripe's "three-decimal currencies": its partners need the last digit to be 0. */
const threeDecimals = 'BHD JOD KWD OMR TND'

/** From "Minimum charge amount by currency". Stripe applies it in the currency that the account settles in. */
const minimums: Readonly<Record<string, number>> = {
  AED: 200,
  CZK: 1500,
  DKK: 250,
  GBP: 30,
  HKD: 400,
  HUF: 17500,
  MXN: 1000,
  MYR: 200,
  NOK: 300,
  PLN: 200,
  RON: 200,
  SEK: 300,
  THB: 1000,
}
/**
 * For every other currency 50 minor units, as Stripe has it for the 18 that its list holds and the table above does not
 * (USD, EUR, JPY, KRW and others). Where Stripe names none, the true minimum is the settlement currency's at the day's
 * rate, which nobody knows here; 50 is then a floor that keeps out amounts which no account could charge.
 */
const minimumOfOthers = 50

/** Eight digits, as Stripe's API reference says for `amount`, in the provider's units. */
const providerMaximum = 99_999_999
/**
 * Where Stripe's page on currencies grants cards more digits by name. JPY is not among them: Stripe stops at eight for
 * JCB, Diners Club and Discover cards on Japanese accounts.
 */
const providerMaximums: Readonly<Record<string, number>> = {
  INR: 999_999_999,
  COP: 9_999_999_999,
  HUF: 9_999_999_999,
  LBP: 99_999_999_999,
  IDR: 999_999_999_999,
}

const currencies = new Map<string, Currency>()

function add(codes: string, kind: Pick<Currency, 'exponent' | 'step' | 'providerMultiplier'>): void {
  for (const code of codes.split(' ')) {
    const maximum = Math.floor((providerMaximums[code] ?? providerMaximum) / kind.providerMultiplier)
    currencies.set(
      code,
      Object.freeze({
        code,
        ...kind,
        minimum: minimums[code] ?? minimumOfOthers,
        maximum: maximum - (maximum % kind.step),
      }),
    )
  }
}

add(twoDecimals, { exponent: 2, step: 1, providerMultiplier: 1 })
add(noDecimals, { exponent: 0, step: 1, providerMultiplier: 1 })
add(noDecimalsInHundredths, { exponent: 0, step: 1, providerMultiplier: 100 })
add(threeDecimals, { exponent: 3, step: 10, providerMultiplier: 1 })

/** The currency with this upper-case ISO 4217 code, or undefined where cards are not charged in it. */
export function currency(code: string): Currency | undefined {
  return currencies.get(code)
}

/** Every code in the table, sorted. */
export function currencyCodes(): string[] {
  return [...currencies.keys()].sort()
}
