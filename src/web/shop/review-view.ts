/** Review and pay. The attempt's key is made when this is shown, and everything that can happen to a payment ends here. */
import { el } from '../common/dom.ts'
import { askBank } from './bank-dialog.ts'
import { isOffline } from './bumpy-network.ts'
import { cardChoice } from './card-choice.ts'
import { readCart } from './cart.ts'
import { haveOneCurrency, linesOf, summaryOf, summaryOfSent } from './lines.ts'
import { noticeOf } from './notice.ts'
import type { Standing } from './paying.ts'
import type { Shop } from './shop.ts'
import { summaryList } from './summary.ts'
import { emailPointer, price } from './words.ts'

export interface View {
  element: HTMLElement
  /** Once it is in the page. */
  entered?(): void
  /** Before another one is shown. */
  leave(): void
  /** Instead of being shown anew. */
  cartChanged?(): void
  /** The payment stands elsewhere; where it is absent, the view is not concerned. */
  paymentChanged?(): void
}

/** `show` goes to another address within the shop. */
export function reviewView(shop: Shop, show: (hash: string) => void): View {
  const { paying } = shop
  let lines = linesOf(readCart(), shop)
  const left = new AbortController()
  let bankOpen: AbortController | undefined

  const email = el('input', { id: 'email', type: 'email', required: true, autocomplete: 'email', maxlength: '254' })
  // It is a demo; a real shop would know, or leave it empty.
  email.value = 'ada@example.com'
  const emailFault = el('p', { class: 'field-fault', id: 'email-fault', role: 'alert' })
  const markEmail = (isWrong: boolean) => {
    email.setAttribute('aria-invalid', String(isWrong))
    emailFault.textContent = isWrong ? 'Please enter a whole email address, such as ada@example.com.' : ''
    if (isWrong) email.focus()
  }
  email.setAttribute('aria-describedby', 'email-fault')
  email.addEventListener('input', () => markEmail(false))
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
      emailFault,
    ),
    el('section', { class: 'card' }, el('h2', { id: 'card-title' }, 'Card'), cardField.element),
  )
  const summary = el('div', { class: 'summary-lines' })
  const notice = el('div', { class: 'notice-place', role: 'status' })
  const payButton = el('button', { type: 'submit', class: 'primary pay' })
  const giveUpButton = el('button', { type: 'button', class: 'plain' }, 'Give up this payment')
  const bankButton = el('button', { type: 'button', class: 'primary pay' }, 'Continue to your bank')
  const promise = el('p', { class: 'hint promise' }, 'You are charged at most once, however often you press.')
  const form = el(
    'form',
    { class: 'review', novalidate: true },
    fields,
    el(
      'section',
      { class: 'card summary' },
      el('h2', {}, 'Your order'),
      summary,
      // None of these moves when another is shown: it might come under a pointer that was meant for another.
      el('div', { class: 'pay-place' }, payButton, bankButton),
      el('div', { class: 'give-up-place' }, giveUpButton, promise),
      notice,
    ),
  )
  const element = el(
    'div',
    {},
    el('a', { class: 'back', href: '#/cart' }, 'Back to the cart'),
    el('h1', {}, 'Review and pay'),
    form,
  )

  const draw = () => {
    const { standing } = paying
    const isReady = standing.kind === 'ready'
    const { record } = paying
    const sent = record?.sent?.body
    const reviewed = summaryOfSent(record, shop) ?? summaryOf(lines)
    if (sent !== undefined) {
      // Also what another tab, or this one before a reload, has sent.
      email.value = sent.customer.email
      cardField.choose(sent.payment_method)
    }
    summary.replaceChildren(...summaryList(reviewed))
    fields.disabled = !isReady
    notice.replaceChildren(...noticeOf(standing, shop, isOffline()))
    const isBusy = standing.kind === 'working' || standing.kind === 'loading'
    payButton.hidden = !isReady && !isBusy
    // Not disabled: it would lose the focus.
    payButton.setAttribute('aria-disabled', String(isBusy))
    payButton.textContent = isBusy ? busyWord(standing) : `Pay ${price(reviewed.total, reviewed.currency)}`
    bankButton.hidden = standing.kind !== 'bank'
    giveUpButton.hidden = !(standing.kind === 'bank' || (standing.kind === 'working' && standing.on === 'payment'))
    promise.hidden = !giveUpButton.hidden
    element.dataset.standing = standing.kind
  }
  const shown = async (standing: Standing) => {
    // Another tab may have answered.
    bankOpen?.abort()
    if (standing.kind === 'paid') return show(`#/order/${paying.cart}${standing.late ? '/late' : ''}`)
    draw()
    paying.told()
    // It lies below the buttons, on a phone perhaps below what is seen.
    if (standing.kind === 'ready' && standing.after !== undefined) notice.scrollIntoView({ block: 'nearest' })
    if (standing.kind === 'bank') return toBank(standing)
    if (standing.kind === 'ready' && standing.after?.kind === 'refused') {
      // Another price, or less of it.
      await shop.readProducts()
      lines = linesOf(readCart(), shop)
      if (left.signal.aborted) return
      draw()
      if (standing.after.problem.errors?.some(({ pointer }) => pointer.startsWith(emailPointer))) markEmail(true)
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
    if (!email.checkValidity()) return markEmail(true)
    const reviewed = summaryOf(lines)
    paying.pay(
      {
        items: lines.map(({ product, quantity }) => ({ sku: product.sku, quantity })),
        customer: { email: email.value },
        payment_method: cardField.value(),
        expected_total: reviewed.total,
      },
      reviewed,
    )
  })
  bankButton.addEventListener('click', () => {
    if (paying.standing.kind === 'bank') void toBank(paying.standing)
  })
  giveUpButton.addEventListener('click', () => paying.giveUp())
  const redraw = () => draw()
  addEventListener('online', redraw, { signal: left.signal })
  addEventListener('offline', redraw, { signal: left.signal })
  const unwatch = paying.watch((standing) => void shown(standing))
  left.signal.addEventListener('abort', unwatch)
  return {
    element,
    entered() {
      const before = paying.standing
      paying.start()
      if (paying.standing === before) void shown(before)
    },
    leave() {
      left.abort()
    },
    cartChanged() {
      const now = readCart()
      if (now.id !== paying.cart || paying.standing.kind !== 'ready') return
      lines = linesOf(now, shop)
      if (lines.length === 0 || !haveOneCurrency(lines)) show('#/cart')
      else draw()
    },
  }
}

function busyWord(standing: Standing): string {
  if (standing.kind === 'loading') return 'One moment…'
  return standing.kind === 'working' && standing.on === 'cancellation' ? 'Giving up…' : 'Paying…'
}
