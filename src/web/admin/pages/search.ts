/** Finds orders by what people have at hand. */
import { el } from '../../common/dom.ts'
import { NoAnswer, Refusal } from '../api.ts'
import { listing, pathTo } from '../listing.ts'
import { code, notice, problemText } from '../parts.ts'
import { table } from '../table.ts'
import type { EventInList, List, Order, OrderInList } from '../types.ts'
import { hashOf, type Page, type Shown, type View } from '../view.ts'
import { orderColumns } from './orders.ts'

export const searchPage: Page = async (view) => {
  const text = view.route.search
  if (text === '')
    return shown('Search', [
      el(
        'p',
        {},
        'Type what you have into the field above: an order’s id, its idempotency key, the provider’s id of a payment, refund or dispute, or the customer’s email.',
      ),
    ])
  // A run and its order have the same id but for the prefix.
  const orderId = text.replace(/^run_/, 'ord_')
  if (/^ord_\w+$/.test(orderId))
    return (await goTo<Order>(view, pathTo('orders', orderId), ['orders', orderId])) ?? nothing(text, 'an order’s id')
  if (/^evt_\w+$/.test(text)) {
    const event = await goTo<EventInList>(view, pathTo('events', text), ['events', text])
    if (event !== null) return event
  }
  if (text.includes('@')) return byEmail(view, text)
  return byKeyOrReference(view, text)
}

/** Shows what a text names, in place of the search; null where there is none. */
async function goTo<Answer>(view: View, path: string, to: readonly string[]): Promise<Shown | null> {
  try {
    await view.api.get<Answer>(path, {}, view.signal)
  } catch (error) {
    if (error instanceof Refusal && error.status === 404) return null
    throw error
  }
  location.replace(hashOf(to))
  return shown('Search', [])
}

async function byEmail(view: View, email: string): Promise<Shown> {
  const list = await listing<OrderInList>(view, {
    path: '/orders',
    query: { email },
    caption: 'Orders found, newest first',
    columns: orderColumns,
    empty: `Nothing was found for ${email}: no customer has given exactly this email.`,
  })
  return shown('Search', [el('p', {}, code(email), ', looked up as the customer’s email:'), list])
}

async function byKeyOrReference(view: View, text: string): Promise<Shown> {
  const [keyed, referred] = await Promise.allSettled([
    ordersBy(view, { key: text }),
    ordersBy(view, { reference: text }),
  ])
  if (keyed.status === 'rejected') throw keyed.reason
  if (referred.status === 'fulfilled') {
    const orders = new Map([...keyed.value, ...referred.value].map((order) => [order.id, order]))
    return found(text, 'an idempotency key and as the provider’s reference', [...orders.values()])
  }
  const why = referred.reason
  if (!(why instanceof Refusal || why instanceof NoAnswer)) throw why
  const half = notice('warn', `It was not looked up as the provider’s reference. ${problemText(why, 'read')}`)
  return { ...found(text, 'an idempotency key', keyed.value, half) }
}

async function ordersBy(view: View, query: Record<string, string>): Promise<OrderInList[]> {
  const { data } = await view.api.get<List<OrderInList>>('/orders', query, view.signal)
  return data
}

function found(text: string, as: string, orders: readonly OrderInList[], before?: Node): Shown {
  if (orders.length === 0) return nothing(text, as, before)
  const { box } = table('Orders found, newest first', orderColumns, orders)
  return shown('Search', [
    before,
    el('p', {}, code(text), `, looked up as ${as}:`),
    el('div', { class: 'card flush' }, box),
  ])
}

function nothing(text: string, as: string, before?: Node): Shown {
  return shown('Search', [before, notice('', 'Nothing was found for ', code(text), `, looked up as ${as}.`)])
}

function shown(title: string, content: Shown['content']): Shown {
  return { title, content }
}
