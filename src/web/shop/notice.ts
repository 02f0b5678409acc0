/** What the review page tells of the payment, beside its button. */
import { el } from '../common/dom.ts'
import type { Standing } from './paying.ts'
import type { Shop } from './shop.ts'
import { isUnapproved, waiting, whyDeclined, whyRefused } from './words.ts'

type Tone = 'good' | 'warn' | 'bad' | ''

/** Nothing where there is nothing to tell. */
export function noticeOf(standing: Standing, shop: Shop, isOffline: boolean): HTMLElement[] {
  switch (standing.kind) {
    case 'working':
      if (standing.on === 'payment' && isOffline) return [note('warn', 'Waiting for the network', waiting.offline)]
      if (standing.reason === undefined) return []
      return [note('', standing.reason === 'checking' ? 'Checking' : 'Still trying', waiting[standing.reason])]
    case 'ready':
      return standing.after === undefined ? [] : [afterwards(standing.after, shop)]
    case 'bank':
      return [
        shop.standIn
          ? note('warn', 'Your bank asks', 'The payment waits for your answer. Nothing has been charged yet.')
          : note(
              'warn',
              'Your bank asks',
              'This demo cannot show it: it loads no script of the payment provider. Give up, and use another card.',
            ),
      ]
    case 'cart_taken':
      return [
        standing.paid
          ? note(
              'good',
              'Already paid',
              `This cart was paid from another device, as order ${standing.orderId ?? ''}. You are not charged again.`,
            )
          : note(
              'warn',
              'Being paid elsewhere',
              'Another device is paying for this cart. Finish or give up there. Nothing was charged here.',
            ),
        el(
          'a',
          { class: 'button primary', href: '#/', 'data-leave-cart': standing.paid },
          standing.paid ? 'Start a new cart' : 'See the products',
        ),
      ]
    case 'broken':
      return [
        note(
          'bad',
          'This browser keeps nothing',
          'Its storage is full or closed, and without it a payment could happen twice. Nothing was sent.',
        ),
      ]
    default:
      return []
  }
}

function afterwards(after: NonNullable<Extract<Standing, { kind: 'ready' }>['after']>, shop: Shop): HTMLElement {
  switch (after.kind) {
    case 'declined':
      return note('bad', isUnapproved(after.declineCode) ? 'Not approved' : 'Declined', whyDeclined(after.declineCode))
    case 'canceled':
      return note(
        '',
        'Payment ended',
        'It was given up, here or in another tab, or took too long. Nothing was charged, and nothing will be. You can pay again.',
      )
    case 'refused':
      return note('warn', 'Not paid', whyRefused(after.problem, shop.nameOf))
    case 'not_started':
      return note('', 'Not sent', 'Your payment has not reached us, and nothing was charged.')
    case 'failed':
      return note(
        'bad',
        'Not possible now',
        `${after.problem?.title ?? 'Something between you and the shop refuses'}. Nothing was charged by this.`,
      )
  }
}

export function note(tone: Tone, title: string, text: string): HTMLElement {
  return el('div', { class: `notice ${tone}` }, el('strong', {}, title), el('p', {}, text))
}
