/** Every code that an error may have, what it means, and which operations give it. */
import { el } from '../common/dom.ts'
import type { Contract, Operation } from './contract.ts'
import { statusBadge } from './labels.ts'

interface Code {
  code: string
  status: string
  meaning: string
  operations: Operation[]
}

export function errorsPage(contract: Contract): HTMLElement {
  return el(
    'article',
    { class: 'page' },
    el('h1', { tabindex: '-1' }, 'Error codes'),
    el(
      'div',
      { class: 'lead' },
      el(
        'p',
        {},
        'Every error is ',
        el('code', {}, 'application/problem+json'),
        ' (RFC 9457) with one of these codes.',
      ),
      el(
        'p',
        {},
        'Errors of a checkout say ',
        el('code', {}, 'new_key_safe'),
        ': true only where no charge of this attempt exists or can still appear. Otherwise repeat the same request with the same key.',
      ),
    ),
    el('ul', { class: 'codes' }, ...codesOf(contract).map(codeItem)),
  )
}

/** The id of the code's place on this page. */
export function placeOf(code: string): string {
  return `error-${code}`
}

function codeItem({ code, status, meaning, operations }: Code): HTMLElement {
  return el(
    'li',
    { id: placeOf(code), tabindex: '-1' },
    statusBadge(Number(status), status),
    el(
      'div',
      {},
      el('code', { class: 'name' }, code),
      el('p', {}, `${meaning}.`),
      el(
        'details',
        {},
        el('summary', {}, operations.length === 1 ? '1 operation' : `${operations.length} operations`),
        el(
          'ul',
          { class: 'plain' },
          ...operations.map(({ id, summary }) => el('li', {}, el('a', { href: `#${id}` }, summary))),
        ),
      ),
    ),
  )
}

function codesOf({ operations }: Contract): Code[] {
  const codes = new Map<string, Code>()
  for (const operation of operations) {
    for (const { status, codes: given } of operation.answers) {
      for (const { code, meaning } of given) {
        const known = codes.get(code) ?? { code, status, meaning, operations: [] }
        known.operations.push(operation)
        codes.set(code, known)
      }
    }
  }
  return [...codes.values()].sort((a, b) => Number(a.status) - Number(b.status) || (a.code < b.code ? -1 : 1))
}
