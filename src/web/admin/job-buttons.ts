/** What a person may do about a job. */
import { el } from '../common/dom.ts'
import { actButton } from './act.ts'
import { pathTo } from './listing.ts'
import { code } from './parts.ts'
import { orderIn, subjectOf } from './subject.ts'
import type { Job } from './types.ts'
import type { View } from './view.ts'
import { statusWord, topicWord } from './words.ts'

export function jobButtons(view: View, job: Job & { running?: boolean }): HTMLElement | string {
  if (job.running) return 'It runs this moment.'
  const id = `${job.topic}:${job.business_id}`
  const name = topicWord(job.topic)
  const named = () => subjectOf(view, orderIn(job.business_id), ['Job', code(id)])
  const press = async (verb: string) => {
    const { state } = await view.api.post<{ state: string }>(pathTo('jobs', id, verb))
    return `“${name}” is now: ${statusWord(state)[0].toLowerCase()}.`
  }
  const requeue = actButton(view, {
    label: job.state === 'ready' ? 'Run now' : job.state === 'done' ? 'Run again' : 'Requeue',
    about: id,
    question: {
      title: `Run “${name}” again?`,
      about: named,
      says: [
        'A worker takes it at once, from its first try on, under the same id.',
        'What it has had an effect on before is not changed a second time.',
      ],
      confirm: 'Run it',
    },
    run: () => press('requeue'),
  })
  if (job.state !== 'ready' && job.state !== 'dead') return el('div', { class: 'buttons' }, requeue)
  const discard = actButton(view, {
    label: 'Discard',
    kind: 'danger',
    about: id,
    question: {
      title: `Discard “${name}”?`,
      about: named,
      says: [
        'It is not run any more, and what it was to do is left undone.',
        'It can be requeued for 7 days; then it is deleted.',
      ],
      confirm: 'Discard it',
      isDangerous: true,
    },
    run: () => press('discard'),
  })
  return el('div', { class: 'buttons' }, requeue, discard)
}
