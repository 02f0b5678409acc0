/** One comparison and what it found. */
import { el } from '../../common/dom.ts'
import { money } from '../../common/money.ts'
import { moment } from '../format.ts'
import { listing, pathTo } from '../listing.ts'
import { badge, code, facts, link, notice, orderLink } from '../parts.ts'
import type { Finding, Report } from '../types.ts'
import { hashOf, type Page } from '../view.ts'
import { whileSeen } from '../while-seen.ts'
import { counted, plain } from '../words.ts'
import { differing } from './reports.ts'

const whileRunningMs = 2000

export const reportPage: Page = async (view) => {
  const [, id = ''] = view.route.path
  const report = await view.api.get<Report>(pathTo('reports', id), {}, view.signal)
  const amount = (value: number | null, currency: string | null) =>
    value === null ? '–' : currency === null ? String(value) : money(value, currency)
  const findings = await listing<Finding>(view, {
    path: pathTo('reports', id, 'findings'),
    caption: 'What differs',
    columns: [
      { head: 'What', cell: ({ kind }) => badge(kind), names: true },
      { head: 'Order', cell: ({ order_id }) => (order_id === null ? '–' : orderLink(order_id)) },
      { head: 'Payment', cell: ({ reference }) => (reference === null ? '–' : code(reference)) },
      { head: 'Our books', cell: ({ ours, currency }) => amount(ours, currency), number: true },
      { head: 'The provider’s', cell: ({ theirs, currency }) => amount(theirs, currency), number: true },
    ],
    empty: report.state === 'running' ? 'Nothing that differs has been found so far.' : 'Nothing differs.',
  })
  if (report.state === 'running') {
    whileSeen(view.signal, whileRunningMs, async () => {
      const now = await view.api.get<Report>(pathTo('reports', id), {}, view.signal).catch(() => report)
      if (!view.signal.aborted && JSON.stringify(now) !== JSON.stringify(report)) await view.reload()
    })
  }
  return {
    title: 'Reconciliation report',
    beside: badge(report.state),
    content: [
      el('p', {}, link(hashOf(['reports']), 'All reports')),
      verdict(report),
      el(
        'section',
        { class: 'card' },
        facts([
          ['Period', moment(report.from), ' to ', moment(report.to)],
          ['Compared up to', moment(report.compared_to)],
          ['Matched', String(report.matched)],
          ['Not in our books', String(report.missing_here)],
          ['Not at the provider', String(report.missing_there)],
          ['Amounts differ', String(report.amount_differs)],
          ['Made', moment(report.created_at)],
          ['Ended', moment(report.finished_at, 'not yet')],
        ]),
      ),
      el('h2', {}, 'What differs'),
      findings,
    ],
  }
}

function verdict(report: Report): HTMLElement {
  const differs = differing(report)
  if (report.state === 'failed')
    return notice('bad', `The comparison was given up: ${plain(report.reason ?? 'unknown')}.`)
  if (report.state === 'running') return notice('', 'A worker is comparing. This page shows how far it has come.')
  if (differs === 0 && report.matched === 0)
    return notice('', 'There was no payment in the period, in neither of the books.')
  if (differs === 0) return notice('good', `Both books say the same of all ${report.matched} payments of the period.`)
  return notice('bad', `${counted(differs, 'payment differs', 'payments differ')}. Look at each order below.`)
}
