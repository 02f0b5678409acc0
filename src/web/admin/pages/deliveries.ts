/** Events to the merchant that did not arrive. */
import { el } from '../../common/dom.ts'
import { deliverButton } from '../deliver-button.ts'
import { moment } from '../format.ts'
import { filters, listing } from '../listing.ts'
import { code, orderLink, toned } from '../parts.ts'
import type { DeliveryInList } from '../types.ts'
import type { Page } from '../view.ts'
import { plain } from '../words.ts'

const choices = [
  { label: 'Not delivered yet', query: {} },
  { label: 'Every failure', query: { show: 'failed' } },
  { label: 'All', query: { show: 'all' } },
]

export const deliveriesPage: Page = async (view) => {
  const { show, event_id } = view.route.query
  const isFiltered = show === undefined && event_id === undefined
  const list = await listing<DeliveryInList>(view, {
    path: '/deliveries',
    query: {
      event_id,
      undelivered: isFiltered ? 'true' : undefined,
      failed: show === 'failed' ? 'true' : undefined,
    },
    caption: 'Deliveries to the merchant, newest first',
    columns: [
      { head: 'Event', cell: ({ type }) => code(type), names: true },
      { head: 'Order', cell: ({ order_id }) => orderLink(order_id) },
      { head: 'Result', cell: ({ delivered }) => (delivered ? toned('good', 'Delivered') : toned('bad', 'Failed')) },
      { head: 'What you can do', cell: ({ order_id, event_id: id, type }) => deliverButton(view, order_id, id, type) },
      { head: 'Answer', cell: answerOf },
      { head: 'Try', cell: ({ attempt }) => String(attempt), number: true },
      { head: 'When', cell: ({ created_at }) => moment(created_at) },
    ],
    empty: isFiltered ? 'Every event has reached the merchant.' : 'There are no such deliveries.',
  })
  const hint = el(
    'p',
    { class: 'hint' },
    'A failed delivery is tried again by itself. The receiver knows a repeat by its id.',
  )
  return { title: 'Deliveries', content: [filters(view, 'Which deliveries', choices), hint, list] }
}

export function answerOf({ http_status: status, error }: { http_status: number | null; error: string | null }): string {
  const words = [
    ...(status === null ? [] : [String(status)]),
    ...(error === null || error === `http_${status}` ? [] : [plain(error)]),
  ]
  return words.length === 0 ? '–' : words.join(', ')
}
