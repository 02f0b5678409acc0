/** One notification of the provider. */
import { el } from '../../common/dom.ts'
import { money } from '../../common/money.ts'
import { eventButton } from '../event-button.ts'
import { moment } from '../format.ts'
import { pathTo } from '../listing.ts'
import { badge, code, facts, link, orderLink } from '../parts.ts'
import type { EventInList } from '../types.ts'
import { hashOf, type Page } from '../view.ts'
import { plain } from '../words.ts'

export const eventPage: Page = async (view) => {
  const [, id = ''] = view.route.path
  const event = await view.api.get<EventInList>(pathTo('events', id), {}, view.signal)
  const { amount, amount_captured: captured, currency } = event
  const worth = (value: number | null) => value !== null && currency !== null && money(value, currency)
  const named = (value: string | null) => value !== null && code(value)
  const list = facts([
    ['Notification', code(event.id)],
    ['What', code(event.type)],
    ['What came of it', badge(event.state), event.reason === null ? '' : ` ${plain(event.reason)}`],
    ['Order', event.order_id !== null && orderLink(event.order_id)],
    ['About', plain(event.about)],
    ['Payment', named(event.intent_id)],
    ['Charge', named(event.charge_id)],
    ['Refund', named(event.refund_id)],
    ['Dispute', named(event.dispute_id)],
    ['Status there', event.status !== null && plain(event.status)],
    ['Amount', worth(amount)],
    ['Captured', worth(captured)],
    ['Decline', event.decline_code !== null && plain(event.decline_code)],
    ['Account', named(event.account)],
    ['Mode', event.livemode ? 'live' : 'test'],
    ['Readable', !event.readable && 'no: of a form or currency that is not known here'],
    ['Made at the provider', moment(event.created_at)],
    ['Received', moment(event.received_at)],
    ['Handled', moment(event.handled_at, 'not yet')],
  ])
  return {
    title: 'Notification',
    content: [
      el('p', {}, link(hashOf(['events']), 'All notifications')),
      el(
        'section',
        { class: 'card' },
        list,
        el('div', { class: 'buttons' }, eventButton(view, event.order_id, event.id)),
      ),
    ],
  }
}
