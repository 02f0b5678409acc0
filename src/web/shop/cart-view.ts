/** The cart. While a payment for it is unsettled it cannot be changed: what is shown is what is being paid. */
import { el } from '../shared/dom.ts'
import { type Cart, readCart, setQuantity } from './cart.ts'
import { picture } from './catalog-view.ts'
import { type CartLine, linesOf, totalOf } from './lines.ts'
import type { Shop } from './shop.ts'
import { price } from './words.ts'

export function cartView(shop: Shop): HTMLElement {
  const cart = readCart()
  const lines = linesOf(cart, shop)
  if (lines.length === 0) {
    return el(
      'div',
      {},
      el('h1', {}, 'Your cart'),
      el(
        'div',
        { class: 'card empty' },
        el('p', {}, 'It is empty.'),
        el('a', { class: 'button primary', href: '#/' }, 'See the products'),
      ),
    )
  }
  const isBeingPaid = shop.client.attempt(cart.id).record?.sent !== undefined
  const { total, currency } = totalOf(lines)
  return el(
    'div',
    {},
    el('h1', {}, 'Your cart'),
    isBeingPaid &&
      el(
        'p',
        { class: 'notice warn' },
        'A payment for this cart is under way. Go on with it, or give it up, to change the cart.',
      ),
    el('ul', { class: 'card cart-lines' }, ...lines.map((line) => row(cart, line, isBeingPaid))),
    el('p', { class: 'total' }, el('span', {}, 'Total'), el('strong', {}, price(total, currency))),
    el(
      'p',
      { class: 'actions' },
      el('a', { class: 'button', href: '#/' }, 'Go on shopping'),
      el('a', { class: 'button primary', href: '#/review' }, isBeingPaid ? 'Go on with the payment' : 'Review and pay'),
    ),
  )
}

function row(cart: Cart, { product, quantity }: CartLine, isLocked: boolean): HTMLElement {
  const { sku, name, unit_price, currency } = product
  const step = (to: number, sign: string, label: string) => {
    const button = el(
      'button',
      { type: 'button', class: 'step', 'aria-label': label, 'data-focus': `${sku}${sign}` },
      sign,
    )
    button.disabled = isLocked
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
      el('strong', {}, name),
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
