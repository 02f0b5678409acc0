/** What can be bought. */
import type { Product } from '../client/index.ts'
import { el } from '../common/dom.ts'
import { addToCart } from './cart.ts'
import { beingPaid } from './lines.ts'
import type { Shop } from './shop.ts'
import { named, price } from './words.ts'

const pictured = ['mug', 'tee', 'poster', 'rare']
const fewLeft = 10

export function catalogView(shop: Shop): HTMLElement {
  const said = el('p', { role: 'status', class: 'visually-hidden' })
  const refused = el('div', { role: 'status', class: 'refused' })
  const add = ({ sku, name }: Product): boolean => {
    // What is being paid stays as it was sent.
    const isLocked = beingPaid(shop) !== undefined
    if (!isLocked) addToCart(sku)
    said.textContent = isLocked ? '' : `${named(name)} is in the cart.`
    refused.replaceChildren(...(isLocked ? [notAdded(name)] : []))
    return !isLocked
  }
  return el(
    'div',
    {},
    el('h1', {}, 'Products'),
    el('p', { class: 'lead' }, 'Put something into the cart, pay, and try to be charged twice.'),
    refused,
    el('ul', { class: 'products' }, ...[...shop.products.values()].map((product) => card(product, add))),
    said,
  )
}

function notAdded(name: string): HTMLElement {
  return el(
    'div',
    { class: 'notice warn' },
    el('p', {}, `${named(name)} was not added: your cart is being paid. You can add it once that has ended.`),
    el('a', { class: 'button', href: '#/review' }, 'Go on with the payment'),
  )
}

/** `put` tells whether it is in the cart. */
function card(product: Product, put: (product: Product) => boolean): HTMLElement {
  const { sku, name, unit_price, currency, available } = product
  const word = el('span', {}, 'Add to cart')
  const add = el(
    'button',
    { type: 'button' },
    el('span', {}, word, el('span', { class: 'visually-hidden' }, ` ${named(name)}`)),
  )
  add.disabled = available === 0
  add.addEventListener('click', () => {
    if (!put(product)) return
    word.textContent = 'Added'
    setTimeout(() => {
      word.textContent = 'Add to cart'
    }, 1200)
  })
  return el(
    'li',
    { class: 'card product' },
    picture(sku),
    el(
      'div',
      { class: 'product-text' },
      el('h2', {}, el('bdi', {}, name)),
      el('p', { class: 'price' }, price(unit_price, currency)),
      available === 0
        ? el('p', { class: 'stock' }, el('span', { class: 'badge bad' }, 'Sold out'))
        : available <= fewLeft &&
            el('p', { class: 'stock' }, el('span', { class: 'badge warn' }, `Only ${available} left`)),
    ),
    add,
  )
}

/** Says nothing that the name beside it does not say. */
export function picture(sku: string): HTMLElement {
  const file = pictured.includes(sku) ? sku : 'other'
  return el('img', { src: `/assets/shop/pictures/${file}.svg`, alt: '', width: '320', height: '240', class: 'picture' })
}
