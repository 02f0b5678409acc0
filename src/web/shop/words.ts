/** What the customer is told. */
import type { CheckoutProblem, WaitReason } from '../client/index.ts'
import { decimalsOf } from '../common/money.ts'

export function price(minorUnits: number, currency: string): string {
  const decimals = decimalsOf(currency)
  const digits = { minimumFractionDigits: decimals, maximumFractionDigits: decimals }
  return new Intl.NumberFormat('en', { style: 'currency', currency, ...digits }).format(minorUnits / 10 ** decimals)
}

export const waiting: Record<WaitReason | 'offline', string> = {
  offline: 'You are offline. We go on as soon as you are connected again. You will not be charged twice.',
  no_answer: 'No answer reached us. We are asking again for the same payment. You will not be charged twice.',
  busy: 'The payment service is busy. We are trying again. You will not be charged twice.',
  checking: 'We are checking with your bank. You will not be charged twice.',
}

/** A product's name within a sentence: one that is written from right to left leaves the words around it where they are. */
export function named(name: string): string {
  return /^[\u0020-\u024f]*$/.test(name) ? name : `\u2068${name}\u2069`
}

const declines: Record<string, string> = {
  insufficient_funds: 'There is not enough money on it.',
  expired_card: 'It has expired.',
  incorrect_cvc: 'The security code is not right.',
  lost_card: 'Please ask your bank.',
  stolen_card: 'Please ask your bank.',
  authentication_required: 'Your bank wants to ask you first, and could not.',
}

/** The customer or their bank did not approve it; the card itself was not declined. */
const unapproved = new Set(['payment_intent_authentication_failure', 'authentication_not_handled'])

export function isUnapproved(code: string | undefined): boolean {
  return unapproved.has(code ?? '')
}

export function whyDeclined(code: string | undefined): string {
  if (isUnapproved(code)) {
    return 'You refused at your bank, or it could not tell that it was you. Nothing was charged. You can try again, or use another card.'
  }
  return `The card was declined. ${declines[code ?? ''] ?? 'Your bank gave no reason.'} Nothing was charged. You can use another card.`
}

/** `nameOf` names products. */
export function whyRefused(problem: CheckoutProblem, nameOf: (sku: string) => string): string {
  switch (problem.code) {
    case 'out_of_stock':
      return `${(problem.items ?? []).map((item) => left(nameOf(item.sku), item.available ?? 0)).join(' ')} Nothing was charged.`
    case 'price_changed':
      return `The price has changed${
        problem.total === undefined || problem.currency === undefined
          ? ''
          : `: the total is now ${price(problem.total, problem.currency)}`
      }. Nothing was charged.`
    case 'unknown_sku':
      return `${(problem.skus ?? []).map(nameOf).join(', ')}: no longer sold. Nothing was charged.`
    case 'invalid_request': {
      const fields = new Set((problem.errors ?? []).map(({ pointer }) => fieldOf(pointer)))
      return `The shop cannot take this${fields.size === 0 ? '' : `: please look at ${[...fields].join(', ')}`}. Nothing was charged.`
    }
    default:
      return `${problem.title}. Nothing was charged.`
  }
}

/** Of a JSON pointer into what was sent. */
function fieldOf(pointer: string): string {
  return pointer.startsWith(emailPointer) ? 'the email address' : pointer.slice(1).replaceAll('/', ' ')
}

/** Of the field of the review page. */
export const emailPointer = '/customer/email'

function left(name: string, available: number): string {
  return available === 0 ? `${name} is sold out.` : `Only ${available} of ${name} left.`
}
