/** Behind the counter: what went over the wire, and mishaps to ask for. For visitors of the demo; no shop would show it. */
import { el } from '../common/dom.ts'
import { mishapsPanel } from './mishaps.ts'
import type { Shop } from './shop.ts'
import type { Line } from './wire-log.ts'

export function fillBackstage(place: HTMLElement, shop: Shop): void {
  const list = el('ol', { class: 'wire' })
  const summary = el('p', { class: 'hint', role: 'status' })
  const clear = el('button', { type: 'button', class: 'small' }, 'Clear')
  clear.addEventListener('click', () => shop.wire.clear())
  const draw = () => {
    const { lines } = shop.wire
    list.replaceChildren(...lines.toReversed().map(row))
    const posts = lines.filter((line) => line.method === 'POST' && line.path === '/v1/checkouts')
    const keys = new Set(posts.map((line) => line.key)).size
    summary.textContent =
      posts.length === 0
        ? 'Nothing was sent yet.'
        : `${count(posts.length, 'checkout request')} with ${count(keys, 'key')}.${
            lines.some(isReplayed) ? ' A replayed answer was given before: nothing was done again.' : ''
          }`
    clear.hidden = lines.length === 0
  }
  shop.wire.onChange = draw
  draw()
  const wire = section('On the wire', summary, list, clear)
  const mishaps = shop.standIn ? section('Let something go wrong', mishapsPanel(shop)) : undefined
  // Beside the shop where there is room; otherwise behind a tap.
  for (const each of [wire, mishaps]) if (each !== undefined) each.open = matchMedia('(min-width: 1000px)').matches
  place.append(wire, ...(mishaps === undefined ? [] : [mishaps]))
  place.hidden = false
}

function section(title: string, ...children: HTMLElement[]): HTMLDetailsElement {
  return el('details', { class: 'card' }, el('summary', {}, el('h2', {}, title)), ...children)
}

function row(line: Line): HTMLElement {
  const { method, path, key, answer } = line
  return el(
    'li',
    {},
    el('span', { class: 'mono wire-request' }, `${method} ${path}`),
    el('span', { class: 'mono hint', title: key }, `key ${key.slice(0, 8)}`),
    answer === undefined
      ? el('span', { class: 'badge' }, 'under way')
      : answer === 'lost'
        ? el('span', { class: 'badge bad' }, 'no answer')
        : el('span', { class: `badge ${tone(answer.status)}` }, `${answer.status} ${answer.word}`.replaceAll('_', ' ')),
    isReplayed(line) && el('span', { class: 'badge' }, 'replayed'),
  )
}

function isReplayed({ answer }: Line): boolean {
  return answer !== undefined && answer !== 'lost' && answer.replayed
}

function tone(status: number): string {
  if (status < 202) return 'good'
  return status === 202 || status === 409 || status === 404 ? 'warn' : 'bad'
}

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? '' : 's'}`
}
