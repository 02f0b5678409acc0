/** Plays what the provider's script shows in a real shop: the customer's bank asks whether it is really them. */
import type { Order } from '../client/index.ts'
import { el } from '../common/dom.ts'
import { postDemo } from './shop.ts'
import { price } from './words.ts'

/**
 * Opens the dialog. Resolves with `answered` once the bank has the customer's answer, or `left` where they closed it or the
 * signal is aborted.
 */
export function askBank(order: Order, signal: AbortSignal): Promise<'answered' | 'left'> {
  return new Promise((resolve) => {
    const fault = el('p', { role: 'alert', class: 'notice bad', hidden: true })
    const approve = el('button', { type: 'button', class: 'primary' }, 'Approve')
    const refuse = el('button', { type: 'button' }, 'Refuse')
    const leave = el('button', { type: 'button', class: 'plain' }, 'Answer later')
    const dialog = el(
      'dialog',
      { class: 'bank', 'aria-labelledby': 'bank-title' },
      el('p', { class: 'bank-name' }, 'Your bank'),
      el('h2', { id: 'bank-title' }, 'Is this payment yours?'),
      el(
        'dl',
        {},
        el('dt', {}, 'To'),
        el('dd', {}, 'Demo shop'),
        el('dt', {}, 'Amount'),
        el('dd', {}, price(order.total, order.currency)),
      ),
      fault,
      el('div', { class: 'bank-buttons' }, approve, refuse),
      leave,
    )
    const answer = async (outcome: 'approve' | 'refuse') => {
      approve.disabled = refuse.disabled = true
      const isTaken = await postDemo('bank', { payment: order.payment.reference, outcome }).catch(() => null)
      if (isTaken !== null) return end('answered')
      approve.disabled = refuse.disabled = false
      fault.hidden = false
      fault.textContent = 'Your bank cannot be reached. Please try again.'
    }
    const end = (how: 'answered' | 'left') => {
      dialog.remove()
      resolve(how)
    }
    approve.addEventListener('click', () => void answer('approve'))
    refuse.addEventListener('click', () => void answer('refuse'))
    leave.addEventListener('click', () => end('left'))
    // Escape.
    dialog.addEventListener('cancel', () => end('left'))
    signal.addEventListener('abort', () => end('left'))
    document.body.append(dialog)
    dialog.showModal()
    approve.focus()
  })
}
