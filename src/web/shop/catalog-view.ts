/** What can be bought. */
import type { Product } from '../client/index.ts'
import { el } from '../shared/dom.ts'
import { addToCart } from './cart.ts'
import type { Shop } from './shop.ts'
import { price } from './words.ts'

const pictured = ['mug', 'tee', 'poster', 'rare']
const fewLeft = 10

export function catalogView({ products }: Shop): HTMLElement {
  const said = el('p', { role: 'status', class: 'visually-hidden' })
  return el(
    'div',
    {},
    el('h1', {}, 'Products'),
    el('p', { class: 'lead' }, 'Put something into the cart, pay, and try to be charged twice.'),
    el('ul', { class: 'products' }, ...[...products.values()].map((product) => card(product, said))),
    said,
  )
}

function card(product: Product, said: HTMLElement): HTMLElement {
  const { sku, name, unit_price, currency, available } = product
  const word = el('span', {}, 'Add to cart')
  const add = el(
    'button',
    { type: 'button' },
    el('span', {}, word, el('span', { class: 'visually-hidden' }, ` ${name}`)),
  )
  add.disabled = available === 0
  add.addEventListener('click', () => {
    addToCart(sku)
    said.textContent = `${name} is in the cart.`
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
      el('h2', {}, name),
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
