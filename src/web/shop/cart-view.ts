/** The cart. While a payment for it is unsettled it cannot be changed, and what is shown is what was sent. */
import { el } from '../common/dom.ts'
import { type Cart, readCart, restOf, setQuantity } from './cart.ts'
import { picture } from './catalog-view.ts'
import { beingPaid, type CartLine, haveOneCurrency, linesOf, type Summary, summaryOf } from './lines.ts'
import type { Shop } from './shop.ts'
import { summaryList } from './summary.ts'
import { named, price } from './words.ts'

export function cartView(shop: Shop): HTMLElement {
  const sent = beingPaid(shop)
  const lines = linesOf(readCart(), shop)
  return el(
    'div',
    {},
    el('h1', {}, 'Your cart'),
    ...(sent !== undefined ? asSent(sent, shop) : lines.length === 0 ? empty() : inTheMaking(lines)),
  )
}

function empty(): HTMLElement[] {
  return [
    el(
      'div',
      { class: 'card empty' },
      el('p', {}, 'It is empty.'),
      el('a', { class: 'button primary', href: '#/' }, 'See the products'),
    ),
  ]
}

function asSent(sent: Summary, shop: Shop): HTMLElement[] {
  const cart = readCart()
  // Another tab may have added it just before the payment was sent.
  const rest = linesOf({ ...cart, quantities: restOf(cart, sent.lines) }, shop)
  const besides = rest.map(({ product, quantity }) => `${quantity} × ${shop.nameOf(product.sku)}`).join(', ')
  return [
    el(
      'p',
      { class: 'notice warn' },
      'A payment for this cart is under way. Go on with it, or give it up, to change the cart.',
    ),
    el('div', { class: 'card summary-lines' }, ...summaryList(sent)),
    ...(besides === ''
      ? []
      : [el('p', { class: 'hint' }, `Not part of this payment, and kept for the next: ${besides}.`)]),
    actions(el('a', { class: 'button primary', href: '#/review' }, 'Go on with the payment')),
  ]
}

function inTheMaking(lines: readonly CartLine[]): HTMLElement[] {
  const list = el('ul', { class: 'card cart-lines' }, ...lines.map((line) => row(readCart(), line)))
  if (!haveOneCurrency(lines)) {
    return [
      list,
      el(
        'p',
        { class: 'notice warn' },
        'These cannot be paid together: their prices are in different currencies. Take out those of all but one, and buy them afterwards.',
      ),
      actions(),
    ]
  }
  const { total, currency } = summaryOf(lines)
  return [
    list,
    el('p', { class: 'total' }, el('span', {}, 'Total'), el('strong', {}, price(total, currency))),
    actions(el('a', { class: 'button primary', href: '#/review' }, 'Review and pay')),
  ]
}

function actions(...children: HTMLElement[]): HTMLElement {
  return el('p', { class: 'actions' }, el('a', { class: 'button', href: '#/' }, 'Go on shopping'), ...children)
}

function row(cart: Cart, { product, quantity }: CartLine): HTMLElement {
  const { sku, unit_price, currency } = product
  const name = named(product.name)
  const step = (to: number, sign: string, label: string) => {
    const button = el(
      'button',
      { type: 'button', class: 'step', 'aria-label': label, 'data-focus': `${sku}${sign}` },
      sign,
    )
    button.addEventListener('click', () => {
      if (readCart().id === cart.id) setQuantity(sku, to)
    })
    return button
  }
  return el(
    'li',
    {},
    picture(sku),
    el(
      'div',
      { class: 'line-name' },
      el('strong', {}, el('bdi', {}, product.name)),
      el('span', { class: 'hint' }, `${price(unit_price, currency)} each`),
    ),
    el(
      'div',
      { class: 'stepper', role: 'group', 'aria-label': `Quantity of ${name}` },
      step(quantity - 1, '−', quantity === 1 ? `Take ${name} out` : `One ${name} less`),
      el('span', { class: 'quantity' }, String(quantity)),
      step(quantity + 1, '+', `One ${name} more`),
    ),
    el('span', { class: 'amount' }, price(unit_price * quantity, currency)),
  )
}
