/** Notifications of the provider. */
import { el } from '../../common/dom.ts'
import { eventButton } from '../event-button.ts'
import { moment } from '../format.ts'
import { filters, listing } from '../listing.ts'
import { badge, code, link, orderLink } from '../parts.ts'
import type { Column } from '../table.ts'
import type { EventInList } from '../types.ts'
import { hashOf, type Page, type View } from '../view.ts'
import { plain, statusWord } from '../words.ts'

const states = ['mismatched', 'foreign', 'waiting', 'done', 'ignored']

export const eventsPage: Page = async (view) => {
  const { state, unnamed } = view.route.query
  const choices = [
    { label: 'All', query: {} },
    ...states.map((each) => ({ label: statusWord(each)[0], query: { state: each } })),
    { label: 'Of no shop', query: { unnamed: 'true' } },
  ]
  const list = await listing<EventInList>(view, {
    path: '/events',
    query: { state, unnamed },
    caption: 'Notifications of the provider, newest first',
    columns: columns(view),
    empty: 'There are no such notifications.',
  })
  const hint =
    unnamed === 'true'
      ? 'Of the shop’s account at the provider, but they name no shop of this service.'
      : 'Each is kept once, however often it was delivered, for 45 days.'
  return {
    title: 'Notifications',
    content: [filters(view, 'Which notifications', choices), el('p', { class: 'hint' }, hint), list],
  }
}

function columns(view: View): readonly Column<EventInList>[] {
  return [
    { head: 'Notification', cell: ({ id }) => link(hashOf(['events', id]), code(id)), names: true },
    { head: 'What', cell: ({ type }) => code(type) },
    { head: 'State', cell: ({ state }) => badge(state) },
    { head: 'What you can do', cell: ({ order_id, id }) => eventButton(view, order_id, id) },
    { head: 'Why', cell: ({ reason }) => (reason === null ? '–' : plain(reason)) },
    { head: 'Order', cell: ({ order_id }) => (order_id === null ? '–' : orderLink(order_id)) },
    { head: 'Received', cell: ({ received_at }) => moment(received_at) },
  ]
}
