/** A refusal of the service, once and in an operator's words: its own are written for programs. */
import { money } from '../common/money.ts'
import type { Refusal } from './api.ts'
import { localTime } from './format.ts'
import { plain, statusWord } from './words.ts'

export function refusalText(refusal: Refusal, asked: 'read' | 'acted'): string {
  const { status, code, title, message, members } = refusal
  if (status === 403) return 'This key may not do that: it needs a key of the role admin.'
  switch (code) {
    case 'database_unavailable':
      return asked === 'read'
        ? 'The database cannot be reached at the moment.'
        : 'The database cannot be reached at the moment, so it may have been done or not. Look at it again before you repeat it.'
    case 'invalid_request':
      return invalid(message, asked)
    case 'provider_disagrees':
      return disagreement(message, members)
    case 'order_state_conflict':
      return `${sentence(title)} ${inWords(message)}`
    default:
      return message === title ? sentence(title) : inWords(message)
  }
}

function disagreement(message: string, members: Refusal['members']): string {
  const { captured, currency, provider_status: there, order_status: here } = members
  const head = 'The payment provider says otherwise'
  if (there === 'absent' && message.includes('may still arrive')) return inWords(message)
  if (typeof captured === 'number' && typeof currency === 'string')
    return `${head}: it has the payment as ${word(there)}, with ${money(captured, currency)} captured.`
  return `${head}, and the order is now: ${word(here)}.`
}

/** `querystring/state: must be equal to constant` names what was given; what would be right, the page offers. */
function invalid(message: string, asked: 'read' | 'acted'): string {
  const [, place, name] = /^(querystring|params|body)\/?([^:/]*)/.exec(message) ?? []
  if (place === undefined) return inWords(message)
  const what = name ? `“${plain(name)}”` : 'something'
  return asked === 'read'
    ? `The address of this page asks for what does not exist: ${what} is not one that can be shown.`
    : `It was not done: ${what} is not valid.`
}

/** With times as the operator's clock shows them, and without the underscores of codes. */
function inWords(text: string): string {
  const timed = text.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, (at) => localTime(at))
  return sentence(timed.replace(/\b[a-z]+(?:_[a-z]+)+\b/g, (code) => word(code)))
}

function word(code: unknown): string {
  return typeof code === 'string' ? statusWord(code)[0].toLowerCase() : 'not known'
}

function sentence(text: string): string {
  return /[.?]$/.test(text) ? text : `${text}.`
}
