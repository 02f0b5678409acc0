/** Amounts for people. */

// As the service counts them: the currencies' own digits, and not the rounding habits that a browser knows of some.
const noDecimals = new Set('BIF CLP DJF GNF ISK JPY KMF KRW MGA PYG RWF UGX VND VUV XAF XOF XPF'.split(' '))
const threeDecimals = new Set('BHD JOD KWD OMR TND'.split(' '))

/** How many decimals an amount of the currency (ISO 4217, upper case) has. */
export function decimalsOf(currency: string): number {
  if (noDecimals.has(currency)) return 0
  return threeDecimals.has(currency) ? 3 : 2
}

/** Minor units as people write them, with the currency's code: 1250 EUR is "12.50 EUR" where the decimal sign is a point. */
export function money(minorUnits: number, currency: string): string {
  const decimals = decimalsOf(currency)
  const format = new Intl.NumberFormat(undefined, { minimumFractionDigits: decimals, maximumFractionDigits: decimals })
  return `${format.format(minorUnits / 10 ** decimals)}\u00a0${currency}`
}
