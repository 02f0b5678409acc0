/** Contract of the operator's figures. */
import { countedMax, startedMax } from '../../store/operator-figures.ts'
import { at } from './examples.ts'
import { operation } from './operation.ts'
import { count, listOf, moment, named, object, orNull, type Schema, text, words } from './schema.ts'

const counted: Schema = { ...count, maximum: countedMax, description: `counted up to ${countedMax}` }

const FiguresSchema = named(
  'Figures',
  object({
    object: words('figures'),
    at: moment,
    tenant: object({ id: text, name: text }),
    actor: { ...text, description: 'what the API key is called' },
    key_id: text,
    waiting: object({
      needs_reconcile: counted,
      oldest_needs_reconcile_at: orNull({ ...moment, description: 'when the oldest of them was made' }),
      flagged: { ...counted, description: `orders that have ended or hold their money, counted up to ${countedMax}` },
      dead_jobs: counted,
      unnamed_dead_jobs: { ...counted, description: 'for events of the tenant’s account that name no tenant' },
      due_jobs: counted,
      oldest_due_at: orNull({ ...moment, description: 'since when the longest waiting job has been due' }),
      uncertain_emails: counted,
      failed_emails: counted,
      undelivered: { ...counted, description: 'events to the merchant whose latest delivery failed' },
      foreign_events: { ...counted, description: 'received in the last 7 days' },
      mismatched_events: { ...counted, description: 'received in the last 7 days' },
      unnamed_events: { ...counted, description: 'likewise, of the tenant’s account, but they name no tenant' },
    }),
    started: {
      ...listOf(object({ at: moment, orders: { ...count, maximum: startedMax } })),
      description: 'orders begun in each of the last minutes, the present one last',
    },
    process: {
      ...object({ id: text, since: moment, replays: count, conflicts: count }),
      description:
        'What leaves no row: answers given again, and keys refused for another request, since this one process of the API started. Several processes each count their own.',
    },
  }),
)

export const readFigures = operation({
  operationId: 'readFigures',
  tag: 'Operators',
  summary: 'What waits, for how long, and what is going on',
  description:
    'Of the key’s tenant. All but `process` is read from the database, so it is the same from every process.',
  answers: {
    200: {
      description: 'The figures of this moment.',
      body: FiguresSchema,
      examples: {
        quiet: {
          object: 'figures',
          at,
          tenant: { id: 'ten_demo', name: 'Demo shop' },
          actor: 'ops',
          key_id: '3f6b0d2c91a4e857',
          waiting: {
            needs_reconcile: 1,
            oldest_needs_reconcile_at: at,
            flagged: 0,
            dead_jobs: 0,
            unnamed_dead_jobs: 0,
            due_jobs: 2,
            oldest_due_at: at,
            uncertain_emails: 0,
            failed_emails: 0,
            undelivered: 0,
            foreign_events: 0,
            mismatched_events: 0,
            unnamed_events: 0,
          },
          started: [{ at: '2026-11-30T09:15:00.000Z', orders: 12 }],
          process: { id: '6e0d1c52-5a0f-4b7e-9d0e-0b9c3a7f1f44', since: at, replays: 3, conflicts: 0 },
        },
      },
    },
  },
})
