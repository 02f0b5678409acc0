/** Jobs, those that were given up first. */
import { el } from '../../common/dom.ts'
import { moment } from '../format.ts'
import { jobButtons } from '../job-buttons.ts'
import { filters, listing } from '../listing.ts'
import { badge, code, orderLink, toned } from '../parts.ts'
import type { Column } from '../table.ts'
import type { Job, JobInList } from '../types.ts'
import type { Page, View } from '../view.ts'
import { plain, statusWord, topicWord } from '../words.ts'

const states = ['dead', 'ready', 'done', 'discarded']

export const jobsPage: Page = async (view) => {
  const { state = 'dead', unnamed } = view.route.query
  const choices = [
    ...states.map((each) => ({ label: statusWord(each)[0], query: each === 'dead' ? {} : { state: each } })),
    { label: 'Of no shop', query: { unnamed: 'true' } },
  ]
  const list = await listing<JobInList>(view, {
    path: '/jobs',
    query: { state, unnamed },
    caption: `Jobs: ${statusWord(state)[0]}`,
    columns: jobColumns(view),
    empty: state === 'dead' ? 'No job was given up.' : 'There are no such jobs.',
  })
  const hint = el(
    'p',
    { class: 'hint' },
    'A job runs under the id of the fact that it follows from. An effect that it has had is not had again.',
  )
  return { title: 'Jobs', content: [filters(view, 'Which jobs', choices), hint, list] }
}

export function jobColumns<Row extends Job & { running?: boolean }>(view: View): readonly Column<Row>[] {
  return [
    {
      head: 'Job',
      cell: ({ topic, business_id }) => [topicWord(topic), el('br'), ...about(business_id)],
      names: true,
    },
    { head: 'State', cell: ({ state, running }) => [badge(state), running && ' ', running && toned('', 'Running')] },
    { head: 'What you can do', cell: (job) => jobButtons(view, job) },
    { head: 'Last error', cell: ({ last_error }) => (last_error === null ? '–' : plain(last_error)) },
    { head: 'Tries', cell: ({ attempts }) => String(attempts), number: true },
    {
      head: 'Due or ended',
      cell: ({ finished_at, run_at }) => (finished_at === null ? ['due ', moment(run_at)] : moment(finished_at)),
    },
  ]
}

/** `<order>:<what>` leads to the order. */
function about(businessId: string): Node[] {
  const [, orderId, rest = ''] = /^(ord_\w+)(.*)$/s.exec(businessId) ?? []
  return orderId === undefined ? [code(businessId)] : [orderLink(orderId), code(rest)]
}
