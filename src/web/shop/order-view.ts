/** The receipt. It is there again after a reload, and when the customer comes back to it. */
import { el } from '../common/dom.ts'
import { linesPaid } from './lines.ts'
import type { Shop } from './shop.ts'
import { lineList } from './summary.ts'
import { price } from './words.ts'

export function orderView(shop: Shop, cart: string, isLate: boolean): HTMLElement {
  const { record } = shop.client.attempt(cart)
  if (record?.end?.kind !== 'paid') {
    return el(
      'div',
      {},
      el('h1', {}, 'Nothing here'),
      el('p', {}, 'This browser knows of no such order.'),
      el('p', {}, el('a', { class: 'button', href: '#/' }, 'See the products')),
    )
  }
  const { order } = record.end
  const books = el('p', { class: 'books', role: 'status' })
  if (shop.standIn) void readBooks(record.key, books)
  return el(
    'div',
    { class: 'receipt' },
    el('h1', {}, 'Thank you'),
    isLate && el('p', { class: 'notice warn' }, 'The payment had gone through before it could be given up.'),
    el(
      'section',
      { class: 'card' },
      el(
        'p',
        { class: 'receipt-head' },
        el('span', { class: 'badge good' }, order.status === 'authorized' ? 'Authorized' : 'Paid'),
        el('strong', { class: 'receipt-total' }, price(order.total, order.currency)),
      ),
      el('dl', {}, el('dt', {}, 'Order'), el('dd', { class: 'mono', id: 'order-id' }, order.id)),
      lineList(linesPaid(order, record), order.currency),
      books,
    ),
    el('p', { class: 'hint' }, 'Go back, reload, or open the shop in another tab: it stays one order and one payment.'),
    el('p', {}, el('a', { class: 'button', href: '#/' }, 'Go on shopping')),
  )
}

/** What really happened: the stand-in for the provider keeps its own books. */
async function readBooks(key: string, place: HTMLElement): Promise<void> {
  const response = await fetch(`/shop/payments/${encodeURIComponent(key)}`)
  if (!response.ok) return
  const { data } = (await response.json()) as { data: { status: string; amount_received: number; currency: string }[] }
  const made = data.filter(({ status }) => status === 'succeeded')
  const sum = made.reduce((total, payment) => total + payment.amount_received, 0)
  const payments = made.length === 1 ? '1 payment' : `${made.length} payments`
  place.textContent = `In the bank's own books: ${payments}, ${price(sum, (made[0]?.currency ?? 'eur').toUpperCase())}.`
}
