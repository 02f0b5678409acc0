/** The demo shop: which view an address shows. */
import { byId, el } from '../common/dom.ts'
import { fillBackstage } from './backstage.ts'
import { fillBanner } from './banner.ts'
import { leavePaidCart, readCart, receiptSeen, startAfresh, watchCart } from './cart.ts'
import { cartView } from './cart-view.ts'
import { catalogView } from './catalog-view.ts'
import { keepDoubleClicksTogether } from './double-click.ts'
import { beingPaid, haveOneCurrency, linesOf, linesPaid } from './lines.ts'
import { orderView } from './order-view.ts'
import type { Paying } from './paying.ts'
import { reviewView, type View } from './review-view.ts'
import { openShop, payingFor, type Shop } from './shop.ts'

const main = byId('main')

openShop()
  .then(start, () => say('The shop cannot be reached. Please reload the page.'))
  .catch((fault: unknown) => {
    say(
      'Something in this page has failed. Please reload it. If that does not help, delete what your browser keeps of it.',
    )
    throw fault
  })

function say(text: string): void {
  main.replaceChildren(el('h1', {}, 'Demo shop'), el('p', { class: 'notice bad' }, text))
}

function start(shop: Shop): void {
  const banner = fillBanner(byId('payment'), shop)
  let view: View | undefined
  let address = ''
  const show = (hash: string) => {
    // Paying is no step to go back to.
    history.replaceState(null, '', hash)
    render(true)
  }
  const render = (isNew: boolean) => {
    view?.leave()
    if (location.hash.startsWith('#/review') && !canBePaid(shop)) history.replaceState(null, '', '#/cart')
    address = location.hash
    const [, where, cart = ''] = address.split('/')
    if (where === 'order') {
      receiptSeen(cart)
      banner.receiptSeen(cart)
    }
    view = viewOf(shop, address, show)
    const focused = (document.activeElement as HTMLElement | null)?.dataset.focus
    main.replaceChildren(view.element)
    document.title = `${main.querySelector('h1')?.textContent ?? ''} - Demo shop`
    drawBanner()
    if (isNew) {
      scrollTo(0, 0)
      main.focus({ preventScroll: true })
    } else if (focused !== undefined) {
      const again = main.querySelector<HTMLElement>(`[data-focus="${CSS.escape(focused)}"]`)
      ;(again ?? main).focus()
    }
    view.entered?.()
  }
  const drawBanner = () => banner.draw(address.split('/')[1])
  const showCount = () => {
    const pieces = linesOf(readCart(), shop).reduce((sum, { quantity }) => sum + quantity, 0)
    const badge = byId('cart-count')
    badge.hidden = pieces === 0
    badge.textContent = String(pieces)
  }
  const follow = (paying: Paying) => {
    paying.watch((standing) => {
      if (standing.kind === 'paid') {
        banner.paid(paying.cart)
        leavePaidCart(paying.cart, linesPaid(standing.order, paying.record))
      }
      view?.paymentChanged?.()
      drawBanner()
    })
    paying.goOn()
  }

  addEventListener('hashchange', async () => {
    // The skip link.
    if (!location.hash.startsWith('#/') && location.hash !== '') return main.focus()
    if (location.hash === address) return
    // Prices and stock as they are now; what is known serves while they cannot be read.
    await Promise.race([shop.readProducts(), new Promise((resolve) => setTimeout(resolve, 500))])
    render(true)
  })
  watchCart(() => {
    const { id } = readCart()
    if (id !== shop.paying.cart) {
      shop.paying = payingFor(shop.client, id)
      follow(shop.paying)
    }
    showCount()
    if (view?.cartChanged !== undefined) view.cartChanged()
    else render(false)
    drawBanner()
  })
  // After the bank, say, or from the page cache: another tab may have paid.
  addEventListener('pageshow', (event) => event.persisted && render(false))
  for (const change of ['online', 'offline']) addEventListener(change, drawBanner)
  main.addEventListener('click', (event) => {
    if (event.target instanceof Element && event.target.closest('[data-leave-cart]')) startAfresh()
  })
  keepDoubleClicksTogether()
  fillBackstage(byId('backstage'), shop)
  showCount()
  follow(shop.paying)
  render(false)
}

function viewOf(shop: Shop, hash: string, show: (hash: string) => void): View {
  const [, where, cart = '', how] = hash.split('/')
  const still = (element: HTMLElement): View => ({ element, leave() {}, cartChanged() {} })
  switch (where) {
    case 'cart':
      return cartShown(shop)
    case 'review':
      return reviewView(shop, show)
    case 'order':
      return still(orderView(shop, cart, how === 'late'))
    default:
      return still(catalogView(shop))
  }
}

/** Drawn anew when the cart has changed, and when it begins or ceases to be paid. */
function cartShown(shop: Shop): View {
  const place = el('div', {}, cartView(shop))
  let wasBeingPaid = beingPaid(shop) !== undefined
  return {
    element: place,
    leave() {},
    paymentChanged() {
      const isBeingPaid = beingPaid(shop) !== undefined
      if (isBeingPaid !== wasBeingPaid) place.replaceChildren(cartView(shop))
      wasBeingPaid = isBeingPaid
    },
  }
}

function canBePaid(shop: Shop): boolean {
  const lines = linesOf(readCart(), shop)
  return beingPaid(shop) !== undefined || (lines.length > 0 && haveOneCurrency(lines))
}
