/** Handling a notification again. */
import { actButton } from './act.ts'
import { pathTo } from './listing.ts'
import { code } from './parts.ts'
import { subjectOf } from './subject.ts'
import type { View } from './view.ts'
import { plain, statusWord } from './words.ts'

export function eventButton(view: View, orderId: string | null, eventId: string): HTMLButtonElement {
  return actButton(view, {
    label: 'Replay',
    about: eventId,
    question: {
      title: 'Replay this notification?',
      about: () => subjectOf(view, orderId, ['Notification', code(eventId)]),
      says: [
        'It is handled as when it came, with the same id; where its news is not definite, the provider is asked.',
        'What it brought before has no second effect.',
      ],
      confirm: 'Replay it',
    },
    run: async () => {
      const { state, reason } = await view.api.post<{ state: string; reason: string | null }>(
        pathTo('events', eventId, 'replay'),
      )
      const why = reason === null ? '' : ` (${plain(reason)})`
      return `The notification was handled again: ${statusWord(state)[0].toLowerCase()}${why}.`
    },
  })
}
