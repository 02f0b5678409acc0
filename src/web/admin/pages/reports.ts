/** The provider's books compared with ours: start a comparison, see those that were made. */
import { el } from '../../common/dom.ts'
import { act } from '../act.ts'
import { ask } from '../confirm.ts'
import { keepDraft } from '../drafts.ts'
import { moment } from '../format.ts'
import { listing } from '../listing.ts'
import { badge, button, facts, link, notice } from '../parts.ts'
import type { Report } from '../types.ts'
import { hashOf, type Page, type View } from '../view.ts'
import { counted } from '../words.ts'

const dayMs = 86_400_000
const daysMax = 366

export const reportsPage: Page = async (view) => {
  const list = await listing<Report>(view, {
    path: '/reports',
    caption: 'Comparisons, newest first',
    columns: [
      { head: 'Period from', cell: ({ id, from }) => link(hashOf(['reports', id]), moment(from)), names: true },
      { head: 'to', cell: ({ to }) => moment(to) },
      { head: 'State', cell: ({ state }) => badge(state) },
      { head: 'Matched', cell: ({ matched }) => String(matched), number: true },
      { head: 'Differ', cell: (report) => String(differing(report)), number: true },
      { head: 'Made', cell: ({ created_at }) => moment(created_at) },
    ],
    empty: 'No comparison has been made yet.',
  })
  return { title: 'Reconciliation reports', content: [startForm(view), el('h2', {}, 'Comparisons'), list] }
}

export function differing({ missing_here, missing_there, amount_differs }: Report): number {
  return missing_here + missing_there + amount_differs
}

function startForm(view: View): HTMLElement {
  const from = el('input', { id: 'from', type: 'datetime-local', required: true })
  const to = el('input', { id: 'to', type: 'datetime-local', required: true })
  const told = el('div', { role: 'alert' })
  const set = (days: number) => {
    from.value = localText(new Date(Date.now() - days * dayMs))
    to.value = localText(new Date())
  }
  set(1)
  const start = el('button', { type: 'submit', class: 'primary' }, 'Compare the books')
  const form = el(
    'form',
    { class: 'card', novalidate: true },
    el('h2', {}, 'Compare the provider’s books with ours'),
    el(
      'p',
      {},
      'Every payment of a period is read at the provider and held against the ledger. What differs is listed, and flagged on its order; nothing is moved.',
    ),
    el(
      'div',
      { class: 'fields' },
      el('div', {}, el('label', { for: 'from' }, 'From (your time)'), from),
      el('div', {}, el('label', { for: 'to' }, 'To (your time)'), to),
    ),
    told,
    el(
      'div',
      { class: 'buttons' },
      start,
      button('Last day', () => set(1)),
      button('Last 7 days', () => set(7)),
      button('Last 30 days', () => set(30)),
    ),
  )
  const forget = keepDraft(view, 'report', form)
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    if (!start.disabled) void press()
  })
  async function press(): Promise<void> {
    const period = { from: new Date(from.value), to: new Date(to.value) }
    const wrong = fault(period)
    told.replaceChildren(...(wrong === null ? [] : [notice('bad', wrong)]))
    if (wrong !== null) return
    start.disabled = true
    const isSure = await ask(
      {
        title: 'Compare the books of this period?',
        about: () =>
          facts([
            ['From', moment(period.from.toISOString())],
            ['To', moment(period.to.toISOString())],
          ]),
        says: [
          'A worker reads the provider’s list of payments, slowly enough that customers are not held up. Orders that differ are flagged; nothing is moved.',
        ],
        confirm: 'Compare',
      },
      view.signal,
    )
    start.disabled = false
    if (!isSure) return
    await act(view, start, async () => {
      const { id } = await view.api.post<Report>('/reports', {
        from: period.from.toISOString(),
        to: period.to.toISOString(),
      })
      forget()
      location.hash = hashOf(['reports', id])
      return 'The comparison has begun.'
    })
  }
  return form
}

function fault({ from, to }: { from: Date; to: Date }): string | null {
  if (Number.isNaN(from.getTime()) || Number.isNaN(to.getTime())) return 'Give both moments.'
  if (from >= to) return 'The period ends before it begins.'
  return to.getTime() - from.getTime() > daysMax * dayMs ? `A period has at most ${counted(daysMax, 'day')}.` : null
}

/** As the field wants it: local, to the minute. */
function localText(date: Date): string {
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}
