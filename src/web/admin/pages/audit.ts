/** Who did what. */
import { el } from '../../common/dom.ts'
import { moment } from '../format.ts'
import { filters, listing } from '../listing.ts'
import { code, link, orderLink } from '../parts.ts'
import type { Column } from '../table.ts'
import type { AuditEntry } from '../types.ts'
import { hashOf, type Page } from '../view.ts'
import { actionWord, knownActions, plain } from '../words.ts'

export const auditPage: Page = async (view) => {
  const { action, order_id } = view.route.query
  const choices = [
    { label: 'All', query: {} },
    ...knownActions.map((each) => ({ label: actionWord(each), query: { action: each } })),
  ]
  const list = await listing<AuditEntry>(view, {
    path: '/audit',
    query: { action, order_id },
    caption: 'Audit log, newest first',
    columns: auditColumns,
    empty: 'Nothing of this kind has been done.',
  })
  const hint = el(
    'p',
    { class: 'hint' },
    'Every button of this console and of the command line, whoever pressed it and whatever came of it.',
  )
  return { title: 'Audit log', content: [filters(view, 'Which entries', choices), hint, list] }
}

export const auditColumns: readonly Column<AuditEntry>[] = [
  { head: 'When', cell: ({ created_at }) => moment(created_at) },
  {
    head: 'Who',
    cell: ({ actor, key_id }) => [actor, key_id !== null && ' ', key_id !== null && code(key_id)],
    wraps: true,
  },
  { head: 'What', cell: ({ action }) => actionWord(action), names: true },
  { head: 'On', cell: target, wraps: true },
  { head: 'What came of it', cell: ({ outcome }) => plain(outcome) },
  { head: 'In their words', cell: ({ reason }) => reason ?? '–' },
  { head: 'Request', cell: ({ request_id }) => code(request_id), wraps: true },
]

function target({ target: { type, id }, order_id }: AuditEntry): Node[] | Node {
  if (type === 'order') return orderLink(id)
  if (type === 'report') return link(hashOf(['reports', id]), code(id))
  if (type === 'provider_event') return link(hashOf(['events', id]), code(id))
  const named = el('span', {}, `${plain(type)} `, code(id))
  return order_id === null || id.includes(order_id) ? named : [named, el('br'), orderLink(order_id)]
}
