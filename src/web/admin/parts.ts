/** Small pieces that the console's pages are made of. */
import { el } from '../common/dom.ts'
import { NoAnswer, Refusal } from './api.ts'
import { refusalText } from './refusal-text.ts'
import { statusWord, type Tone } from './words.ts'

export type Piece = Node | string | null | undefined | false

export function badge(status: string): HTMLElement {
  const [label, tone] = statusWord(status)
  return el('span', { class: `badge ${tone}`.trim() }, label)
}

export function toned(tone: Tone, text: string): HTMLElement {
  return el('span', { class: `badge ${tone}`.trim() }, text)
}

export function code(text: string): HTMLElement {
  return el('code', {}, text)
}

export function link(to: string, ...children: Piece[]): HTMLAnchorElement {
  return el('a', { href: to }, ...children)
}

export function orderLink(orderId: string): HTMLAnchorElement {
  return link(`#/orders/${encodeURIComponent(orderId)}`, code(orderId))
}

export function button(label: string, onClick: () => void, kind = ''): HTMLButtonElement {
  const made = el('button', { type: 'button', ...(kind === '' ? {} : { class: kind }) }, label)
  made.addEventListener('click', onClick)
  return made
}

export function notice(tone: Tone, ...children: Piece[]): HTMLElement {
  return el('div', { class: `notice ${tone}`.trim() }, ...children)
}

/** Names with what they name; those without are left out. */
export function facts(rows: readonly (readonly [name: string, ...value: Piece[]])[]): HTMLElement {
  const shown = rows.filter(([, first]) => first !== null && first !== undefined && first !== false)
  return el(
    'dl',
    { class: 'facts' },
    ...shown.map(([name, ...value]) => el('div', {}, el('dt', {}, name), el('dd', {}, ...value))),
  )
}

/** What went wrong, and what it means for what was asked for. */
export function problemText(error: unknown, asked: 'read' | 'acted'): string {
  if (error instanceof Refusal) {
    return refusalText(error, asked)
  }
  if (error instanceof NoAnswer) {
    return asked === 'read'
      ? 'The service did not answer. It may be restarting, or the connection is down.'
      : 'No answer came, so it may have been done or not. Look at it again before you repeat it.'
  }
  return 'Something went wrong in this page.'
}
