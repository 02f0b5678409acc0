/** Above every view: where the payment stands, while the view itself does not tell. */
import { el } from '../common/dom.ts'
import { isOffline } from './bumpy-network.ts'
import { isKept, readCart } from './cart.ts'
import { note, noticeOf } from './notice.ts'
import type { Standing } from './paying.ts'
import type { Shop } from './shop.ts'

export interface Banner {
  /** `view` tells of its payment itself where it is the review page, or the cart while that is being paid. */
  draw(view: string | undefined): void
  /** A payment of this tab's cart went through: said until its receipt is looked at. */
  paid(cart: string): void
  receiptSeen(cart: string): void
}

export function fillBanner(place: HTMLElement, shop: Shop): Banner {
  let paidHere: string | undefined
  let drawn = ''
  const contents = (view: string | undefined): HTMLElement[] => {
    const { paying } = shop
    const { standing } = paying
    if (view === 'review') return []
    if (standing.kind === 'working' || standing.kind === 'bank') return view === 'cart' ? [] : underWay(standing, shop)
    if (paying.isNews) return ended(standing, shop)
    const paid = readCart().paid ?? paidHere
    if (paid !== undefined) {
      return [
        note('good', 'Your payment went through', 'You have bought what was in your cart, once.'),
        el('a', { class: 'button', href: `#/order/${paid}` }, 'See the receipt'),
      ]
    }
    if (isKept()) return []
    return [
      note(
        'warn',
        'This browser keeps nothing for this page',
        'Its storage is closed or full. The cart is lost when you reload or close the page: do neither while you pay.',
      ),
    ]
  }
  return {
    draw(view) {
      const made = contents(view)
      const text = made.map(({ outerHTML }) => outerHTML).join('')
      // Said once, and a link keeps the focus.
      if (text === drawn) return
      drawn = text
      place.replaceChildren(...made)
    },
    paid(cart) {
      paidHere = cart
    },
    receiptSeen(cart) {
      if (paidHere === cart) paidHere = undefined
    },
  }
}

function underWay(standing: Extract<Standing, { kind: 'working' | 'bank' }>, shop: Shop): HTMLElement[] {
  const isGivingUp = standing.kind === 'working' && standing.on === 'cancellation'
  const told = noticeOf(standing, shop, isOffline())
  return [
    ...(told.length > 0
      ? told
      : [
          isGivingUp
            ? note('', 'Giving up', 'Your payment is being given up.')
            : note('', 'Paying', 'Your payment is under way.'),
        ]),
    el('a', { class: 'button', href: '#/review' }, isGivingUp ? 'See the payment' : 'Go on with the payment'),
  ]
}

function ended(standing: Standing, shop: Shop): HTMLElement[] {
  return [
    ...noticeOf(standing, shop, isOffline()).slice(0, 1),
    el('a', { class: 'button', href: '#/review' }, 'Back to the payment'),
  ]
}
