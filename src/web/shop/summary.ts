/** Lines and their total, as a list to read. */
import { el } from '../common/dom.ts'
import type { Summary } from './lines.ts'
import { price } from './words.ts'

export function summaryList({ lines, total, currency }: Summary): HTMLElement[] {
  return [
    lineList(lines, currency),
    el('p', { class: 'total' }, el('span', {}, 'Total'), el('strong', {}, price(total, currency))),
  ]
}

export function lineList(lines: Summary['lines'], currency: string): HTMLElement {
  return el(
    'ul',
    { class: 'summary-lines' },
    ...lines.map(({ name, quantity, amount }) =>
      el(
        'li',
        {},
        el('span', { class: 'line-what' }, `${quantity} × `, el('bdi', {}, name)),
        amount !== undefined && el('span', { class: 'amount' }, price(amount, currency)),
      ),
    ),
  )
}
