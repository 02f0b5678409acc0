/** Orders: those that need a person first. */

import { money } from '../../common/money.ts'
import { duration, moment } from '../format.ts'
import { filters, listing } from '../listing.ts'
import { badge, orderLink, toned } from '../parts.ts'
import type { Column } from '../table.ts'
import type { OrderInList } from '../types.ts'
import type { Page } from '../view.ts'
import { plain, statusWord } from '../words.ts'

export const orderColumns: readonly Column<OrderInList>[] = [
  { head: 'Order', cell: ({ id }) => orderLink(id), names: true },
  {
    head: 'Status',
    cell: ({ status, disputed }) => [badge(status), disputed && ' ', disputed && toned('bad', 'Disputed')],
  },
  { head: 'Reason', cell: ({ reconcile_reason }) => (reconcile_reason === undefined ? '–' : plain(reconcile_reason)) },
  { head: 'In this status for', cell: ({ status_age_seconds }) => duration(status_age_seconds), number: true },
  { head: 'Total', cell: ({ total, currency }) => money(total, currency), number: true },
  { head: 'Made', cell: ({ created_at }) => moment(created_at) },
]

const byStatus = ['requires_action', 'authorized', 'paid', 'payment_failed', 'canceled', 'pending']

const choices = [
  { label: 'Need a person', query: {} },
  { label: 'Need reconciliation', query: { status: 'needs_reconcile' } },
  { label: 'Flagged', query: { flagged: 'settled' } },
  ...byStatus.map((status) => ({ label: statusWord(status)[0], query: { status } })),
  { label: 'All', query: { all: 'true' } },
]

export const ordersPage: Page = async (view) => {
  const { status, reason, flagged, all } = view.route.query
  const needsPerson = all === undefined && status === undefined && reason === undefined
  const list = await listing<OrderInList>(view, {
    path: '/orders',
    query: { status, reason, flagged: needsPerson ? (flagged ?? 'true') : undefined },
    caption: 'Orders, newest first',
    columns: orderColumns,
    empty: needsPerson ? 'No order needs a person.' : 'There are no such orders.',
  })
  return { title: 'Orders', content: [filters(view, 'Which orders', choices), list] }
}
