/** Emails that may or may not have been sent. */
import { el } from '../../common/dom.ts'
import { emailButtons } from '../email-buttons.ts'
import { moment } from '../format.ts'
import { listing } from '../listing.ts'
import { badge, orderLink } from '../parts.ts'
import type { EmailInList } from '../types.ts'
import type { Page } from '../view.ts'
import { plain } from '../words.ts'

export const emailsPage: Page = async (view) => {
  const list = await listing<EmailInList>(view, {
    path: '/emails',
    caption: 'Emails to decide about',
    columns: [
      { head: 'Order', cell: ({ order_id }) => orderLink(order_id), names: true },
      { head: 'Email', cell: ({ kind }) => plain(kind) },
      { head: 'State', cell: ({ state }) => badge(state) },
      { head: 'What you can do', cell: (email) => emailButtons(view, email.order_id, email) },
      { head: 'Why', cell: ({ reason }) => (reason === null ? '–' : plain(reason)) },
      { head: 'Since', cell: ({ updated_at }) => moment(updated_at) },
    ],
    empty: 'No email waits for a decision.',
  })
  const hint = el(
    'p',
    { class: 'hint' },
    'An email is sent at most once. Where a process died while it was sent, only the mail server’s log or the customer knows whether it has arrived.',
  )
  return { title: 'Emails', content: [hint, list] }
}
