import { invalidRequest } from './errors.ts'

/** Presentment currencies for cards, https://docs.stripe.com/currencies#presentment-currencies. */
const supported = new Set(
  (
    'usd aed afn all amd ang aoa ars aud awg azn bam bbd bdt bhd bif bmd bnd bob brl bsd bwp byn bzd cad cdf chf clp cny ' +
    'cop crc cve czk djf dkk dop dzd egp etb eur fjd fkp gbp gel gip gmd gnf gtq gyd hkd hnl htg huf idr ils inr isk jmd ' +
    'jod jpy kes kgs khr kmf krw kwd kyd kzt lak lbp lkr lrd lsl mad mdl mga mkd mmk mnt mop mur mvr mwk mxn myr mzn nad ' +
    'ngn nio nok npr nzd omr pab pen pgk php pkr pln pyg qar ron rsd rub rwf sar sbd scr sek sgd shp sle sos srd std szl ' +
    'thb tjs tnd top try ttd twd tzs uah ugx uyu uzs vnd vuv wst xaf xcd xcg xof xpf yer zar zmw'
  ).split(' '),
)

/** Decimals are two unless the currency is listed here. ISK and UGX have none, yet Stripe takes them as hundreds. */
const zeroDecimal = new Set('bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf'.split(' '))
const wholeHundreds = new Set(['isk', 'ugx'])
const threeDecimal = new Set(['bhd', 'jod', 'kwd', 'omr', 'tnd'])

/** https://docs.stripe.com/currencies#minimum-and-maximum-charge-amounts, minor units. Elsewhere Stripe takes the
 * equivalent of the settlement currency's minimum, which the simulator, having no rates, does not check. */
const minimum: Record<string, number> = {
  usd: 50,
  aed: 200,
  aud: 50,
  brl: 50,
  cad: 50,
  chf: 50,
  czk: 1500,
  dkk: 250,
  eur: 50,
  gbp: 30,
  hkd: 400,
  huf: 17500,
  inr: 50,
  jpy: 50,
  mxn: 1000,
  myr: 200,
  nok: 300,
  nzd: 50,
  pln: 200,
  ron: 200,
  sek: 300,
  sgd: 50,
  thb: 1000,
}
const digitsMax: Record<string, number> = { cop: 10, huf: 10, idr: 12, inr: 9, jpy: 10 }

/** Throws Stripe's 400 for a currency it does not take. */
export function checkCurrency(currency: string): void {
  if (!supported.has(currency)) throw invalidRequest(`Invalid currency: ${currency}`, { param: 'currency' })
}

/** Throws Stripe's 400 for an amount (minor units) it would not charge in this currency. */
export function checkChargeAmount(amount: number, currency: string, param = 'amount'): void {
  const most = 10 ** (digitsMax[currency] ?? 8) - 1
  if (amount > most) {
    const message = `Amount must be no more than ${display(most, currency)}`
    throw invalidRequest(message, { code: 'amount_too_large', param })
  }
  if (amount < (minimum[currency] ?? 1)) {
    const message = `Amount must be at least ${display(minimum[currency] ?? 1, currency)}`
    throw invalidRequest(message, { code: 'amount_too_small', param })
  }
  checkStep(amount, currency, param)
}

/** `12.50 EUR`, for messages. */
export function display(amount: number, currency: string): string {
  const decimals = zeroDecimal.has(currency) ? 0 : threeDecimal.has(currency) ? 3 : 2
  return `${(amount / 10 ** decimals).toFixed(decimals)} ${currency.toUpperCase()}`
}

/** Throws Stripe's 400 for an amount that is off the currency's step, https://docs.stripe.com/currencies#special-cases
 * and #three-decimal. */
export function checkStep(amount: number, currency: string, param: string): void {
  if (wholeHundreds.has(currency) && amount % 100 !== 0) {
    throw invalidRequest(`Amount must be divisible by 100: ${currency.toUpperCase()} has no decimals`, { param })
  }
  if (threeDecimal.has(currency) && amount % 10 !== 0) {
    throw invalidRequest(`The last digit of an amount in ${currency.toUpperCase()} must be 0`, { param })
  }
}
