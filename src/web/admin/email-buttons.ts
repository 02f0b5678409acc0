/** What a person may do about an email. */
import { el } from '../common/dom.ts'
import { actButton } from './act.ts'
import { pathTo } from './listing.ts'
import { subjectOf } from './subject.ts'
import type { Email } from './types.ts'
import type { View } from './view.ts'
import { plain, statusWord } from './words.ts'

export function emailButtons(view: View, orderId: string, email: Email): HTMLElement | string {
  const isUncertain = email.state === 'uncertain'
  if (!isUncertain && email.state !== 'failed') return '–'
  const id = `${orderId}:${email.kind}`
  const about = `${plain(email.kind)}, ${orderId}`
  const named = () => subjectOf(view, orderId, ['Email', plain(email.kind)])
  const press = async (verb: string) => {
    const { state } = await view.api.post<{ state: string }>(pathTo('emails', id, verb))
    return `The email about “${plain(email.kind)}” is now: ${statusWord(state)[0].toLowerCase()}.`
  }
  const sent = actButton(view, {
    label: 'It has arrived',
    about,
    question: {
      title: 'Has this email arrived?',
      about: named,
      says: ['It is kept as sent, and nothing is sent again.'],
      confirm: 'It has arrived',
    },
    run: () => press('sent'),
  })
  const again = actButton(view, {
    label: 'Send again',
    about,
    question: {
      title: 'Send this email again?',
      about: named,
      says: [
        isUncertain
          ? 'It may have arrived before: the customer may get it twice.'
          : 'The mail server refused it before.',
      ],
      confirm: 'Send it again',
      isDangerous: isUncertain,
    },
    run: () => press('send-again'),
  })
  return el('div', { class: 'buttons' }, isUncertain && sent, again)
}
