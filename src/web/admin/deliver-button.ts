/** Delivering an event to the merchant again. */
import { actButton } from './act.ts'
import { pathTo } from './listing.ts'
import { code } from './parts.ts'
import { subjectOf } from './subject.ts'
import type { View } from './view.ts'

export function deliverButton(view: View, orderId: string, eventId: string, type: string): HTMLButtonElement {
  return actButton(view, {
    label: 'Deliver again',
    about: `${type}, ${eventId}`,
    question: {
      title: `Deliver “${type}” again?`,
      about: () => subjectOf(view, orderId, ['Event', code(eventId)]),
      says: [
        'It is sent at once, with the same bytes under the same id, to where the merchant’s events go now.',
        'A receiver that has had it knows it by the id.',
      ],
      confirm: 'Deliver it',
    },
    run: async () => {
      await view.api.post(pathTo('merchant-events', eventId, 'redeliver'))
      return `“${type}” is delivered again. The result is listed below in a moment.`
    },
  })
}
