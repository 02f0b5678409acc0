/** What a person may do about an order: have the provider asked, or decide. */
import { el } from '../common/dom.ts'
import { money } from '../common/money.ts'
import { act, actButton } from './act.ts'
import { ask } from './confirm.ts'
import { keepDraft } from './drafts.ts'
import { duration } from './format.ts'
import { pathTo } from './listing.ts'
import { notice, type Piece } from './parts.ts'
import { orderSubject } from './subject.ts'
import type { Order, Story } from './types.ts'
import type { View } from './view.ts'
import { statusWord } from './words.ts'

export function orderActions(view: View, story: Story): Piece[] {
  return [...reconcile(view, story), ...decide(view, story)]
}

const open = new Set(['pending', 'requires_action', 'needs_reconcile'])

function reconcile(view: View, story: Story): Piece[] {
  const isPaid = ['paid', 'partially_refunded', 'refunded'].includes(story.status)
  if (!open.has(story.status) && !isPaid && story.status !== 'authorized') {
    return [el('p', {}, 'The order has ended unpaid. Money that still arrives for it is given back by itself.')]
  }
  const does = isPaid
    ? 'The provider is asked for refunds and disputes that were made there, and they are booked here. Nothing is charged.'
    : story.status === 'authorized'
      ? 'The provider is asked what became of the hold. A capture or cancel that is under way is asked for again, once and the same.'
      : 'The provider is asked now, as the workers would when the order’s turn comes. Within minutes of the checkout, a charge that may not have arrived is sent again under the same key, so that it can happen once at most.'
  const pressed = actButton(view, {
    label: 'Reconcile now',
    kind: 'primary',
    question: { title: 'Ask the provider now?', about: () => orderSubject(story), says: [does], confirm: 'Ask now' },
    run: async () =>
      outcomeText('The provider was asked.', await view.api.post<Order>(pathTo('orders', story.id, 'reconcile'))),
  })
  return [
    el('p', {}, isPaid ? 'Read what was given back at the provider.' : 'Have the provider asked at once.'),
    pressed,
  ]
}

function outcomeText(did: string, order: Order): string {
  const now = `${did} The order is now: ${statusWord(order.status)[0].toLowerCase()}.`
  if (order.next_ask_at === null) return now
  const seconds = (Date.parse(order.next_ask_at) - Date.now()) / 1000
  return `${now} ${seconds > 1 ? `The provider is asked again in ${duration(seconds)}.` : 'The provider is asked again shortly.'}`
}

interface Choice {
  outcome: string
  label: string
  does: string
}

/** What can be decided of the order as it stands. The service asks the provider first, and refuses what it contradicts. */
function choicesFor(story: Story): Choice[] {
  const choices: Choice[] = []
  const suspended = story.ledger.filter(
    ({ kind, business_id }) =>
      kind === 'mismatch' &&
      !story.ledger.some((other) => other.kind === 'mismatch_resolved' && other.business_id === business_id),
  )
  const worth = suspended.map(({ amount, currency }) => money(amount, currency)).join(' and ')
  if (story.status === 'needs_reconcile' && suspended.length === 1) {
    choices.push({
      outcome: 'accept_captured',
      label: 'Accept what was captured',
      does: `The order becomes paid with the ${worth} that are in suspense.`,
    })
  }
  if (suspended.length > 0) {
    choices.push({
      outcome: 'refund_suspense',
      label: 'Give back what is in suspense',
      does: `The ${worth} in suspense go back to the customer${open.has(story.status) ? ', and the order is canceled' : ''}.`,
    })
  }
  if (open.has(story.status)) {
    choices.push(
      {
        outcome: 'canceled',
        label: 'Canceled',
        does: 'Only where no payment exists or can appear any more. What is unfinished at the provider is closed there first; the stock is released.',
      },
      {
        outcome: 'payment_failed',
        label: 'Payment failed',
        does: 'The same, but the order says that the payment failed.',
      },
      { outcome: 'paid', label: 'Paid', does: 'Only where the provider has the payment as paid.' },
    )
  } else if (story.reconcile_reason !== undefined) {
    choices.push({
      outcome: 'acknowledge',
      label: 'Take the flag off',
      does: 'The order stays as it is; it is no longer listed as one that needs a person.',
    })
  }
  return choices
}

function decide(view: View, story: Story): Piece[] {
  const choices = choicesFor(story)
  if (choices.length === 0) return []
  const reason = el('textarea', { id: 'reason', rows: '3', maxlength: '500', 'aria-describedby': 'reason-hint' })
  const told = el('div', { role: 'alert' })
  const press = el('button', { type: 'submit' }, 'Decide')
  const radios = choices.map(({ outcome, label, does }) =>
    el(
      'div',
      { class: 'option' },
      el('input', {
        type: 'radio',
        name: 'outcome',
        id: `outcome-${outcome}`,
        value: outcome,
        'aria-describedby': `does-${outcome}`,
      }),
      el(
        'div',
        {},
        el('label', { for: `outcome-${outcome}` }, label),
        el('p', { class: 'hint', id: `does-${outcome}` }, does),
      ),
    ),
  )
  const form = el(
    'form',
    { class: 'decide', novalidate: true },
    el('fieldset', {}, el('legend', {}, 'Decide by hand'), ...radios),
    el('label', { for: 'reason' }, 'Why, in your own words'),
    reason,
    el(
      'p',
      { class: 'hint', id: 'reason-hint' },
      'Kept in the audit log, at most 500 characters. The provider is asked first, and a decision that it contradicts is refused.',
    ),
    told,
    press,
  )
  const forget = keepDraft(view, story.id, form)
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    if (!press.disabled) void submit()
  })
  async function submit(): Promise<void> {
    const choice = choices.find(({ outcome }) => outcome === new FormData(form).get('outcome'))
    const words = reason.value.trim()
    const wrong = choice === undefined ? 'Choose what to decide.' : words === '' ? 'Say why.' : null
    told.replaceChildren(...(wrong === null ? [] : [notice('bad', wrong)]))
    if (choice === undefined) return form.querySelector('input')?.focus()
    if (words === '') return reason.focus()
    press.disabled = true
    const isSure = await ask(
      {
        title: `Decide: ${choice.label.toLowerCase()}?`,
        about: () => orderSubject(story),
        says: [
          choice.does,
          'The provider is asked first; nothing changes where it says otherwise.',
          el('q', {}, words),
        ],
        confirm: choice.outcome === 'acknowledge' ? 'Take it off' : 'Decide',
        isDangerous: choice.outcome !== 'acknowledge',
      },
      view.signal,
    )
    press.disabled = false
    if (!isSure) return
    const body = { outcome: choice.outcome, reason: words }
    await act(view, press, async () => {
      const order = await view.api.post<Order>(pathTo('orders', story.id, 'decide'), body)
      forget()
      return outcomeText(`Decided: ${choice.label.toLowerCase()}.`, order)
    })
  }
  return [form]
}
