/** The demo shop: which view an address shows. */
import { byId, el } from '../shared/dom.ts'
import { fillBackstage } from './backstage.ts'
import { leaveCart, piecesIn, readCart, watchCart } from './cart.ts'
import { cartView } from './cart-view.ts'
import { catalogView } from './catalog-view.ts'
import { orderView } from './order-view.ts'
import { reviewView, type View } from './review-view.ts'
import { openShop, type Shop } from './shop.ts'

const main = byId('main')

start().catch(() => {
  main.replaceChildren(
    el('h1', {}, 'Demo shop'),
    el('p', { class: 'notice bad' }, 'The shop cannot be reached. Please reload the page.'),
  )
})

async function start(): Promise<void> {
  const shop = await openShop()
  let view: View | undefined
  let address = ''
  const show = (hash: string) => {
    // Paying is no step to go back to.
    history.replaceState(null, '', hash)
    render(true)
  }
  const render = (isNew: boolean) => {
    view?.leave()
    address = location.hash
    view = viewOf(shop, address, show)
    const focused = (document.activeElement as HTMLElement | null)?.dataset.focus
    main.replaceChildren(view.element)
    document.title = `${main.querySelector('h1')?.textContent ?? ''} - Demo shop`
    if (isNew) {
      scrollTo(0, 0)
      main.focus({ preventScroll: true })
    } else if (focused !== undefined) {
      const again = main.querySelector<HTMLElement>(`[data-focus="${CSS.escape(focused)}"]`)
      ;(again ?? main).focus()
    }
  }
  const showCount = () => {
    const pieces = piecesIn(readCart())
    const badge = byId('cart-count')
    badge.hidden = pieces === 0
    badge.textContent = String(pieces)
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
    showCount()
    if (view?.cartChanged !== undefined) view.cartChanged()
    else render(false)
  })
  // After the bank, say, or from the page cache: another tab may have paid.
  addEventListener('pageshow', (event) => event.persisted && render(false))
  main.addEventListener('click', (event) => {
    if (event.target instanceof Element && event.target.closest('[data-leave-cart]')) leaveCart(readCart().id)
  })
  fillBackstage(byId('backstage'), shop)
  showCount()
  render(false)
}

function viewOf(shop: Shop, hash: string, show: (hash: string) => void): View {
  const [, where, cart = '', how] = hash.split('/')
  const still = (element: HTMLElement): View => ({ element, leave() {}, cartChanged() {} })
  const cartShown = (): View => ({ element: cartView(shop), leave() {} })
  switch (where) {
    case 'cart':
      return cartShown()
    case 'review':
      return piecesIn(readCart()) === 0 ? cartShown() : reviewView(shop, show)
    case 'order':
      return still(orderView(shop, cart, how === 'late'))
    default:
      return still(catalogView(shop))
  }
}
