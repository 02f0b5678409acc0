/** An order's whole story. */
import { el } from '../../common/dom.ts'
import { money } from '../../common/money.ts'
import { moment } from '../format.ts'
import { pathTo } from '../listing.ts'
import { orderActions } from '../order-actions.ts'
import { orderTables } from '../order-tables.ts'
import { badge, button, code, facts, notice, toned } from '../parts.ts'
import { timeline } from '../timeline.ts'
import type { Story } from '../types.ts'
import type { Page, View } from '../view.ts'
import { whileSeen } from '../while-seen.ts'
import { plain, reasonSentence } from '../words.ts'

const lookEveryMs = 5000

export const orderPage: Page = async (view) => {
  const [, id = ''] = view.route.path
  const path = pathTo('orders', id)
  const story = await view.api.get<Story>(path, {}, view.signal)
  return {
    title: 'Order',
    beside: el('span', { class: 'beside' }, badge(story.status), story.disputed && toned('bad', 'Disputed')),
    content: [
      el('p', { class: 'id' }, code(story.id)),
      changeNotice(view, path, story),
      reasonNotice(story),
      el(
        'div',
        { class: 'columns' },
        el('section', { class: 'card' }, el('h2', {}, 'At a glance'), glance(view, story)),
        el('section', { class: 'card' }, el('h2', {}, 'What you can do'), ...orderActions(view, story)),
      ),
      el('section', { class: 'card' }, el('h2', {}, 'What happened'), timeline(story)),
      el('h2', {}, 'Everything that is kept'),
      ...orderTables(view, story),
    ],
  }
}

function reasonNotice({ status, reconcile_reason: reason }: Story): HTMLElement | null {
  if (reason === undefined) return null
  const head = status === 'needs_reconcile' ? 'Needs reconciliation' : 'Flagged'
  const sentence = reasonSentence(reason)
  return notice('warn', el('strong', {}, `${head}: ${plain(reason)}. `), sentence)
}

function glance(view: View, story: Story): HTMLElement {
  const amount = (value: number) => money(value, story.currency)
  const { payment, customer } = story
  const email = customer?.email ?? null
  const isOpen = story.expires_at !== null
  const list = facts([
    ['Total', el('strong', {}, amount(story.total))],
    ['Captured', amount(story.captured)],
    ['Refunded', amount(story.refunded)],
    ['Customer', email ?? 'erased', customer?.name ? ` (${customer.name})` : ''],
    ['What', story.kind === 'run' ? 'metered run' : 'checkout', story.capture === 'manual' ? ', captured by hand' : ''],
    ['Payment', payment.reference === null ? 'not known yet' : code(payment.reference)],
    ['Its status there', payment.status !== null && plain(payment.status)],
    ['Decline', payment.decline_code !== undefined && plain(payment.decline_code)],
    ['Hold ends by itself', payment.capture_before !== undefined && moment(payment.capture_before)],
    ['Idempotency key', code(story.attempt_key)],
    ['Charge sent', isOpen && (story.maybe_sent ? 'perhaps: some call had no definite answer' : 'surely not yet')],
    ['Recovery asked', story.asks > 0 && (story.asks === 1 ? 'once' : `${story.asks} times`)],
    ['Asked again', story.next_ask_at !== null && moment(story.next_ask_at)],
    ['Expires', story.expires_at !== null && moment(story.expires_at)],
    ['Cancel requested', story.cancel_requested_at !== null && moment(story.cancel_requested_at)],
    ['Made', moment(story.created_at)],
    ['Changed', moment(story.updated_at)],
  ])
  const find = email !== null && button('Find this customer’s orders', () => view.find(email))
  return el('div', {}, list, el('div', { class: 'buttons' }, find))
}

/** Says so where the order has moved on since it was shown. It is not replaced under the hands of whoever reads it. */
function changeNotice(view: View, path: string, story: Story): HTMLElement {
  const box = el('div', { role: 'status' })
  const asShown = JSON.stringify(story)
  whileSeen(view.signal, lookEveryMs, async () => {
    if (box.childElementCount > 0) return
    const now = await view.api.get<Story>(path, {}, view.signal).catch(() => null)
    if (now === null || JSON.stringify(now) === asShown) return
    const show = button('Show it as it is now', () => void view.reload())
    box.append(
      notice('', el('div', { class: 'told' }, el('span', {}, 'This order has changed since it was shown.'), show)),
    )
  })
  return box
}
