/** A list of the API, page by page. */
import { el } from '../common/dom.ts'
import { part, type Query } from './api.ts'
import { button, notice, problemText } from './parts.ts'
import { type Column, table } from './table.ts'
import type { List } from './types.ts'
import { hashOf, type View } from './view.ts'

interface Listing<Row> {
  path: string
  query?: Query
  caption: string
  columns: readonly Column<Row>[]
  /** Where there is none. */
  empty: string
}

const pageSize = '50'

export async function listing<Row>(
  view: View,
  { path, query, caption, columns, empty }: Listing<Row>,
): Promise<HTMLElement> {
  const read = (cursor?: string) => view.api.get<List<Row>>(path, { ...query, limit: pageSize, cursor }, view.signal)
  const first = await read()
  if (first.data.length === 0) return notice('', empty)
  const { box, addRows } = table(caption, columns, first.data)
  let next = first.next_cursor
  let count = first.data.length
  const told = el('p', { class: 'hint', role: 'status' })
  const tell = () => {
    told.textContent = next === null ? `${count} shown, and there are no more.` : `The first ${count} are shown.`
    more.hidden = next === null
  }
  const more = button('Show more', () => void showMore())
  async function showMore(): Promise<void> {
    if (next === null || more.disabled) return
    more.disabled = true
    try {
      const page = await read(next)
      addRows(page.data)
      count += page.data.length
      next = page.next_cursor
      tell()
    } catch (error) {
      if (!view.signal.aborted) told.textContent = problemText(error, 'read')
    } finally {
      more.disabled = false
    }
  }
  tell()
  return el('div', { class: 'card flush' }, box, el('div', { class: 'foot' }, told, more))
}

interface Choice {
  label: string
  query: Query
}

/** Links to the same list, filtered otherwise. */
export function filters(view: View, label: string, choices: readonly Choice[]): HTMLElement {
  const here = hashOf(view.route.path, view.route.query)
  const links = choices.map(({ label: text, query }) => {
    const to = hashOf(view.route.path, query)
    return el('a', { class: 'choice', href: to, 'aria-current': to === here ? 'true' : undefined }, text)
  })
  return el('nav', { class: 'choices', 'aria-label': label }, ...links)
}

/** `/orders/ord_1/reconcile`, below `/v1/admin`. */
export function pathTo(...parts: string[]): string {
  return `/${parts.map(part).join('/')}`
}
