/** Tables that scroll inside their own box. */
import { el } from '../common/dom.ts'
import type { Piece } from './parts.ts'

export interface Column<Row> {
  head: string
  cell(row: Row): Piece | Piece[]
  /** Aligned to the right. */
  number?: boolean
  /** Its cell names the row. */
  names?: boolean
  /** Long ids in it may be broken. */
  wraps?: boolean
}

/** A table with a caption for screen readers; `addRows` adds to it. */
export function table<Row>(
  caption: string,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
): { box: HTMLElement; addRows(more: readonly Row[]): void } {
  const body = el('tbody')
  const heads = columns.map(({ head, number }) =>
    el('th', { scope: 'col', class: number ? 'number' : undefined }, head),
  )
  const made = el(
    'table',
    {},
    el('caption', { class: 'visually-hidden' }, caption),
    el('thead', {}, el('tr', {}, ...heads)),
    body,
  )
  const addRows = (more: readonly Row[]) => body.append(...more.map((row) => tableRow(columns, row)))
  addRows(rows)
  // A box that scrolls has to be reached by keyboard.
  const scrolls = el('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': caption }, made)
  const hint = el('p', { class: 'wider', hidden: true }, 'Scroll sideways to see every column.')
  // Also once it is unfolded, or the window is made narrower.
  new ResizeObserver(() => {
    hint.hidden = scrolls.scrollWidth <= scrolls.clientWidth
  }).observe(scrolls)
  return { box: el('div', {}, hint, scrolls), addRows }
}

function tableRow<Row>(columns: readonly Column<Row>[], row: Row): HTMLTableRowElement {
  const cells = columns.map(({ cell, number, names, wraps }) => {
    const content = cell(row)
    const attributes = { class: number ? 'number' : wraps ? 'wraps' : undefined }
    const children = Array.isArray(content) ? content : [content]
    return names ? el('th', { ...attributes, scope: 'row' }, ...children) : el('td', attributes, ...children)
  })
  return el('tr', {}, ...cells)
}
