/** Every row that is kept about an order, in tables that are folded unless something in them needs a person. */
import { el } from '../common/dom.ts'
import { money } from '../common/money.ts'
import { deliverButton } from './deliver-button.ts'
import { emailButtons } from './email-buttons.ts'
import { eventButton } from './event-button.ts'
import { moment } from './format.ts'
import { auditColumns } from './pages/audit.ts'
import { answerOf } from './pages/deliveries.ts'
import { jobColumns } from './pages/jobs.ts'
import { badge, code, facts, link, type Piece, toned } from './parts.ts'
import { type Column, table } from './table.ts'
import type { Story } from './types.ts'
import { hashOf, type View } from './view.ts'
import { causeWord, plain, statusWord } from './words.ts'

export function orderTables(view: View, story: Story): HTMLElement[] {
  const folds = parts(view, story)
  const empty = folds.flatMap(({ name, count }) => (count === 0 ? [name.toLowerCase()] : []))
  return [
    ...folds.flatMap(({ box, count }) => (count === 0 ? [] : [box])),
    el('p', { class: 'hint' }, empty.length === 0 ? '' : `There is nothing of: ${empty.join(', ')}.`),
    el(
      'p',
      { class: 'hint' },
      folds.some(({ count }) => count >= linesMax) ? `Of each, the newest ${linesMax} are shown.` : '',
    ),
  ]
}

/** Of each kind the service gives no more. */
const linesMax = 200

interface Fold {
  name: string
  count: number
  box: HTMLElement
}

function parts(view: View, story: Story): Fold[] {
  return [
    lines(story),
    attempt(story),
    section('calls', 'Calls to the provider', story.provider_calls, [
      { head: 'Call', cell: ({ operation }) => code(operation), names: true },
      { head: 'Outcome', cell: ({ outcome }) => plain(outcome) },
      { head: 'HTTP', cell: ({ http_status }) => String(http_status ?? '–'), number: true },
      { head: 'Error', cell: ({ error_code }) => (error_code === null ? '–' : plain(error_code)) },
      { head: 'Took', cell: ({ duration_ms }) => `${duration_ms} ms`, number: true },
      { head: 'Repeated', cell: ({ replayed }) => (replayed ? 'yes' : 'no') },
      { head: 'Begun', cell: ({ started_at }) => moment(started_at) },
      { head: 'Request', cell: ({ request_id }) => (request_id === null ? '–' : code(request_id)) },
    ]),
    section(
      'events',
      'Notifications of the provider',
      story.provider_events,
      [
        {
          head: 'Notification',
          cell: ({ event_id }) => link(hashOf(['events', event_id]), code(event_id)),
          names: true,
        },
        { head: 'What', cell: ({ type }) => code(type) },
        { head: 'State', cell: ({ state }) => badge(state) },
        { head: 'Why', cell: ({ reason }) => (reason === null ? '–' : plain(reason)) },
        { head: 'Received', cell: ({ received_at }) => moment(received_at) },
        { head: 'What you can do', cell: ({ event_id }) => eventButton(view, story.id, event_id) },
      ],
      ({ state }) => state === 'mismatched',
    ),
    section('transitions', 'Changes of status', story.transitions, [
      { head: 'When', cell: ({ at }) => moment(at) },
      { head: 'From', cell: ({ from_status }) => statusWord(from_status)[0] },
      { head: 'To', cell: ({ to_status }) => badge(to_status), names: true },
      { head: 'By', cell: ({ cause }) => causeWord(cause) },
      { head: 'Reason', cell: ({ reason }) => (reason === null ? '–' : plain(reason)) },
      { head: 'Who', cell: ({ actor }) => (actor === null ? '–' : code(actor)) },
    ]),
    section('ledger', 'Ledger', story.ledger, [
      { head: 'Transfer', cell: ({ kind }) => plain(kind), names: true },
      { head: 'Debit', cell: ({ debit_account }) => plain(debit_account) },
      { head: 'Credit', cell: ({ credit_account }) => plain(credit_account) },
      { head: 'Amount', cell: ({ amount, currency }) => money(amount, currency), number: true },
      { head: 'For', cell: ({ business_id }) => code(business_id) },
      { head: 'Booked', cell: ({ created_at }) => moment(created_at) },
    ]),
    section('stock', 'Stock', story.stock_movements, [
      { head: 'Product', cell: ({ sku }) => code(sku), names: true },
      { head: 'Movement', cell: ({ kind }) => (kind === 'reserve' ? 'taken' : 'given back') },
      { head: 'Quantity', cell: ({ quantity }) => String(quantity), number: true },
      { head: 'When', cell: ({ created_at }) => moment(created_at) },
    ]),
    ...moneyBack(story),
    section('jobs', 'Jobs', story.jobs, jobColumns(view), ({ state }) => state === 'dead'),
    section(
      'emails',
      'Emails',
      story.emails,
      [
        { head: 'Email', cell: ({ kind }) => plain(kind), names: true },
        { head: 'State', cell: ({ state }) => badge(state) },
        { head: 'Why', cell: ({ reason }) => (reason === null ? '–' : plain(reason)) },
        { head: 'Since', cell: ({ updated_at }) => moment(updated_at) },
        { head: 'What you can do', cell: (email) => emailButtons(view, story.id, email) },
      ],
      ({ state }) => state === 'uncertain' || state === 'failed',
    ),
    ...merchant(view, story),
    section('audit', 'Audit log', story.audit, auditColumns),
  ]
}

function lines(story: Story): Fold {
  const { box } = table(
    'Lines',
    [
      { head: 'Product', cell: ({ name }) => name, names: true },
      { head: 'SKU', cell: ({ sku }) => code(sku) },
      { head: 'Quantity', cell: ({ quantity }) => String(quantity), number: true },
      { head: 'Each', cell: ({ unit_price }) => money(unit_price, story.currency), number: true },
      { head: 'Amount', cell: ({ amount }) => money(amount, story.currency), number: true },
    ],
    story.lines,
  )
  const metadata = Object.entries(story.metadata).map(([name, value]) => [name, value] as const)
  return fold('lines', 'Lines', story.lines.length + metadata.length, story.lines.length <= 5, [
    box,
    metadata.length > 0 && el('h3', {}, 'Metadata'),
    metadata.length > 0 && facts(metadata),
  ])
}

function attempt({ attempt: kept }: Story): Fold {
  if (kept === null) return fold('attempt', 'Attempt', 0, false, [])
  return fold('attempt', 'Attempt', 1, false, [
    facts([
      ['Idempotency key', code(kept.key)],
      ['State', plain(kept.state)],
      ['Answered with', kept.response_status === null ? 'no stored answer' : String(kept.response_status)],
      ['Begun', moment(kept.created_at)],
      ['Settled', moment(kept.settled_at, 'not yet')],
      ['Lease ends', kept.lease_expires_at !== null && moment(kept.lease_expires_at)],
      ['Answer forgotten', kept.swept_at !== null && moment(kept.swept_at)],
    ]),
  ])
}

function moneyBack(story: Story): Fold[] {
  return [
    section('refunds', 'Refunds', story.refunds, [
      { head: 'Refund', cell: ({ refund_id }) => code(refund_id), names: true },
      { head: 'Amount', cell: ({ amount, currency }) => money(amount, currency), number: true },
      { head: 'Status', cell: ({ status }) => badge(status) },
      { head: 'In doubt', cell: ({ doubt, failure_code }) => plain(doubt ?? failure_code ?? '–') },
      { head: 'Reason', cell: ({ reason }) => reason ?? '–' },
      { head: 'Provider’s id', cell: ({ provider_refund_id: id }) => (id === null ? '–' : code(id)) },
      { head: 'Key', cell: ({ attempt_key }) => (attempt_key === null ? 'made at the provider' : code(attempt_key)) },
      { head: 'Made', cell: ({ created_at }) => moment(created_at) },
    ]),
    section('disputes', 'Disputes', story.disputes, [
      { head: 'Dispute', cell: ({ dispute_id }) => code(dispute_id), names: true },
      { head: 'Amount', cell: ({ amount, currency }) => money(amount, currency), number: true },
      { head: 'Status', cell: ({ status }) => plain(status) },
      { head: 'Withdrawn', cell: ({ withdrawn }) => (withdrawn ? 'yes' : 'no') },
      { head: 'Reinstated', cell: ({ reinstated }) => (reinstated ? 'yes' : 'no') },
      { head: 'Opened', cell: ({ created_at }) => moment(created_at) },
    ]),
  ]
}

function merchant(view: View, story: Story): Fold[] {
  const types = new Map(story.merchant_events.map(({ event_id, type }) => [event_id, type]))
  const arrived = new Set(story.deliveries.flatMap(({ event_id, delivered }) => (delivered ? [event_id] : [])))
  const failed = new Set(story.deliveries.map(({ event_id }) => event_id).filter((id) => !arrived.has(id)))
  return [
    section(
      'merchant-events',
      'Events to the merchant',
      story.merchant_events,
      [
        { head: 'Event', cell: ({ type }) => code(type), names: true },
        { head: 'Id', cell: ({ event_id }) => code(event_id) },
        {
          head: 'Arrived',
          cell: ({ event_id: id }) =>
            arrived.has(id)
              ? toned('good', 'Delivered')
              : failed.has(id)
                ? toned('bad', 'Not yet')
                : toned('', 'Not sent'),
        },
        { head: 'Made', cell: ({ created_at }) => moment(created_at) },
        { head: 'What you can do', cell: ({ event_id, type }) => deliverButton(view, story.id, event_id, type) },
      ],
      ({ event_id }) => failed.has(event_id),
    ),
    section('deliveries', 'Deliveries', story.deliveries, [
      { head: 'Event', cell: ({ event_id }) => code(types.get(event_id) ?? event_id), names: true },
      { head: 'Result', cell: ({ delivered }) => (delivered ? toned('good', 'Delivered') : toned('bad', 'Failed')) },
      { head: 'Answer', cell: (delivery) => answerOf(delivery) },
      { head: 'Try', cell: ({ attempt: tries }) => String(tries), number: true },
      { head: 'Took', cell: ({ duration_ms }) => `${duration_ms} ms`, number: true },
      { head: 'When', cell: ({ created_at }) => moment(created_at) },
    ]),
  ]
}

function section<Row>(
  id: string,
  name: string,
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  needsPerson: (row: Row) => boolean = () => false,
): Fold {
  return fold(id, name, rows.length, rows.some(needsPerson), rows.length === 0 ? [] : [table(name, columns, rows).box])
}

function fold(id: string, name: string, count: number, isOpen: boolean, content: readonly Piece[]): Fold {
  const head = el('summary', {}, name, ' ', el('span', { class: 'count' }, String(count)))
  return {
    name,
    count,
    box: el('details', { class: 'card fold', id: `part-${id}`, open: isOpen }, head, ...content),
  }
}
