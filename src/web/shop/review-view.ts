/** Review and pay. The attempt's key is made when this is shown, and everything that can happen to a payment ends here. */
import { el } from '../shared/dom.ts'
import { askBank } from './bank-dialog.ts'
import { isOffline } from './bumpy-network.ts'
import { cardChoice } from './card-choice.ts'
import { leaveCart, readCart } from './cart.ts'
import { linesOf, type Summary, summaryOf, summaryOfOrder, totalOf } from './lines.ts'
import { noticeOf } from './notice.ts'
import { Paying, type Standing } from './paying.ts'
import type { Shop } from './shop.ts'
import { price } from './words.ts'

export interface View {
  element: HTMLElement
  /** Before another one is shown. */
  leave(): void
  /** Instead of being shown anew. */
  cartChanged?(): void
}

/** `show` goes to another address within the shop. */
export function reviewView(shop: Shop, show: (hash: string) => void): View {
  const cart = readCart()
  let lines = linesOf(cart, shop)
  const left = new AbortController()
  let bankOpen: AbortController | undefined

  const email = el('input', { id: 'email', type: 'email', required: true, autocomplete: 'email', maxlength: '254' })
  // It is a demo; a real shop would know, or leave it empty.
  email.value = 'ada@example.com'
  const cardField = cardChoice()
  const fields = el(
    'fieldset',
    { class: 'plain-fieldset' },
    el('legend', { class: 'visually-hidden' }, 'Your details'),
    el(
      'section',
      { class: 'card' },
      el('h2', {}, 'Where the receipt goes'),
      el('label', { for: 'email' }, 'Email'),
      email,
    ),
    el('section', { class: 'card' }, el('h2', { id: 'card-title' }, 'Card'), cardField.element),
  )
  const summary = el('div', { class: 'summary-lines' })
  const notice = el('div', { class: 'notice-place', role: 'status' })
  const payButton = el('button', { type: 'submit', class: 'primary pay' })
  const giveUpButton = el('button', { type: 'button', class: 'plain' }, 'Give up this payment')
  const bankButton = el('button', { type: 'button', class: 'primary pay' }, 'Continue to your bank')
  const form = el(
    'form',
    { class: 'review', novalidate: true },
    fields,
    el(
      'section',
      { class: 'card summary' },
      el('h2', {}, 'Your order'),
      summary,
      notice,
      payButton,
      bankButton,
      giveUpButton,
      el('a', { class: 'back', href: '#/cart' }, 'Back to the cart'),
    ),
  )
  const element = el('div', {}, el('h1', {}, 'Review and pay'), form)

  const paying = new Paying(shop.client.attempt(cart.id), (standing) => void shown(standing))
  const draw = () => {
    const { standing } = paying
    const isReady = standing.kind === 'ready'
    const shownNow = standing.kind === 'bank' ? summaryOfOrder(standing.order) : summaryOf(lines)
    const { sent } = paying
    if (sent !== undefined) {
      // Also what another tab, or this one before a reload, has sent.
      email.value = sent.customer.email
      cardField.choose(sent.payment_method)
    }
    const total = sent?.expected_total ?? shownNow.total
    summary.replaceChildren(...summaryList({ ...shownNow, total }))
    fields.disabled = !isReady
    notice.replaceChildren(...noticeOf(standing, shop, isOffline()))
    const isBusy = standing.kind === 'working' || standing.kind === 'loading'
    payButton.hidden = !isReady && !isBusy
    // Not disabled: it would lose the focus.
    payButton.setAttribute('aria-disabled', String(isBusy))
    payButton.textContent = isBusy ? busyWord(standing) : `Pay ${price(total, shownNow.currency)}`
    bankButton.hidden = standing.kind !== 'bank'
    giveUpButton.hidden = !(standing.kind === 'bank' || (standing.kind === 'working' && standing.on === 'payment'))
    element.dataset.standing = standing.kind
  }
  const shown = async (standing: Standing) => {
    // Another tab may have answered.
    bankOpen?.abort()
    if (standing.kind === 'paid') {
      leaveCart(cart.id)
      return show(`#/order/${cart.id}${standing.late ? '/late' : ''}`)
    }
    draw()
    if (standing.kind === 'bank') return toBank(standing)
    if (standing.kind === 'ready' && standing.after?.kind === 'refused') {
      // Another price, or less of it.
      await shop.readProducts()
      lines = linesOf(readCart(), shop)
      draw()
    }
  }
  const toBank = async ({ order }: Extract<Standing, { kind: 'bank' }>) => {
    if (!shop.standIn) return
    bankOpen = new AbortController()
    const how = await askBank(order, AbortSignal.any([left.signal, bankOpen.signal]))
    if (how === 'answered') paying.confirm()
    else if (paying.standing.kind === 'bank') bankButton.focus()
  }

  form.addEventListener('submit', (event) => {
    event.preventDefault()
    if (paying.standing.kind !== 'ready') return
    if (!email.reportValidity()) return
    const { total } = totalOf(lines)
    paying.pay({
      items: lines.map(({ product, quantity }) => ({ sku: product.sku, quantity })),
      customer: { email: email.value },
      payment_method: cardField.value(),
      expected_total: total,
    })
  })
  bankButton.addEventListener('click', () => {
    if (paying.standing.kind === 'bank') void toBank(paying.standing)
  })
  giveUpButton.addEventListener('click', () => paying.giveUp())
  const redraw = () => draw()
  addEventListener('online', redraw, { signal: left.signal })
  addEventListener('offline', redraw, { signal: left.signal })
  draw()
  paying.start()
  return {
    element,
    leave() {
      left.abort()
      paying.stop()
    },
    cartChanged() {
      const now = readCart()
      if (now.id !== cart.id || paying.standing.kind !== 'ready') return
      lines = linesOf(now, shop)
      if (lines.length === 0) show('#/cart')
      else draw()
    },
  }
}

function busyWord(standing: Standing): string {
  if (standing.kind === 'loading') return 'One moment…'
  return standing.kind === 'working' && standing.on === 'cancellation' ? 'Giving up…' : 'Paying…'
}

function summaryList({ lines, total, currency }: Summary): HTMLElement[] {
  // Prices that have changed since the payment was sent are not those that are paid.
  const addUp = lines.reduce((sum, { amount }) => sum + amount, 0) === total
  return [
    el(
      'ul',
      {},
      ...lines.map(({ name, quantity, amount }) =>
        el(
          'li',
          {},
          el('span', {}, `${quantity} × ${name}`),
          addUp && el('span', { class: 'amount' }, price(amount, currency)),
        ),
      ),
    ),
    el('p', { class: 'total' }, el('span', {}, 'Total'), el('strong', {}, price(total, currency))),
  ]
}
