/** What happened to an order, as sentences in the order of time. */
import { el } from '../common/dom.ts'
import { money } from '../common/money.ts'
import { duration, moment, offset } from './format.ts'
import { code, type Piece } from './parts.ts'
import type { Story } from './types.ts'
import { actionWord, causeWord, plain, statusWord, type Tone } from './words.ts'

type Source = 'Customer' | 'Order' | 'Provider' | 'Ledger' | 'Stock' | 'Email' | 'Merchant' | 'Operator'

interface Moment {
  at: string
  source: Source
  text: Piece[]
  tone?: Tone
  /** What those that follow one another may have in common, and how they are told as one. Where it is not given: the text. */
  same?: { key: string; text: Piece[] }
}

export function timeline(story: Story): HTMLElement {
  const moments = folded(momentsOf(story).sort((a, b) => Date.parse(a.at) - Date.parse(b.at)))
  return el(
    'ol',
    { class: 'timeline' },
    ...moments.map(({ at, source, text, tone = '' }) =>
      el(
        'li',
        { class: tone },
        el('span', { class: 'when' }, moment(at), ' ', el('span', { class: 'hint' }, offset(story.created_at, at))),
        el('span', { class: 'source' }, source),
        el('span', { class: 'text' }, ...text),
      ),
    ),
  )
}

/** Equal ones that follow one another, as one: nobody reads the same line 26 times. */
function folded(moments: readonly Moment[]): Moment[] {
  const runs: Moment[][] = []
  for (const each of moments) {
    const run = runs.at(-1)
    if (run?.[0] !== undefined && keyOf(run[0]) === keyOf(each)) run.push(each)
    else runs.push([each])
  }
  return runs.flatMap((run) => {
    const [first, last] = [run[0], run.at(-1)]
    if (first === undefined || last === undefined || first === last) return run
    const seconds = (Date.parse(last.at) - Date.parse(first.at)) / 1000
    const text = first.same?.text ?? first.text
    return [{ ...first, text: [...text, ` ${run.length} times in ${duration(Math.max(1, Math.round(seconds)))}.`] }]
  })
}

function keyOf({ source, text, same, tone = '' }: Moment): string {
  return `${source} ${tone} ${same?.key ?? el('span', {}, ...text).textContent}`
}

function momentsOf(story: Story): Moment[] {
  return [
    ...beginning(story),
    ...story.provider_calls.map((call): Moment => {
      const replayed = call.replayed ? ', which repeated an earlier answer' : ''
      const error = call.error_code === null ? '' : ` (${plain(call.error_code)})`
      return {
        at: call.started_at,
        source: 'Provider',
        text: [
          'Asked ',
          code(call.operation),
          `: ${plain(call.outcome)}${error}, after ${call.duration_ms} ms${replayed}.`,
        ],
        tone: call.outcome === 'unknown' ? 'warn' : '',
        same: {
          key: JSON.stringify([call.operation, call.outcome, call.error_code, call.replayed]),
          text: ['Asked ', code(call.operation), `: ${plain(call.outcome)}${error}${replayed};`],
        },
      }
    }),
    // Of a type that is not used: the table has it.
    ...story.provider_events
      .filter(({ state }) => state !== 'ignored')
      .map(
        (event): Moment => ({
          at: event.received_at,
          source: 'Provider',
          text: [
            'Told us ',
            code(event.type),
            `: ${statusWord(event.state)[0].toLowerCase()}${event.reason === null ? '' : `, ${plain(event.reason)}`}.`,
          ],
          tone: event.state === 'mismatched' ? 'bad' : '',
        }),
      ),
    ...story.transitions.map((change): Moment => {
      const [label, tone] = statusWord(change.to_status)
      const why = change.reason === null ? '' : `: ${plain(change.reason)}`
      return {
        at: change.at,
        source: 'Order',
        text: [el('strong', {}, label), ` ${causeWord(change.cause)}${why}.`],
        tone,
      }
    }),
    ...story.ledger.map(
      (line): Moment => ({
        at: line.created_at,
        source: 'Ledger',
        text: [`${money(line.amount, line.currency)} booked: ${plain(line.kind)}.`],
      }),
    ),
    ...stock(story),
    ...moneyBack(story),
    ...news(story),
    ...story.audit.map(
      (entry): Moment => ({
        at: entry.created_at,
        source: 'Operator',
        text: [
          `${entry.actor}: ${actionWord(entry.action)}. What came of it: ${plain(entry.outcome)}.`,
          entry.reason !== null && ' ',
          entry.reason !== null && el('q', {}, entry.reason),
        ],
      }),
    ),
  ]
}

function beginning(story: Story): Moment[] {
  const moments: Moment[] = [
    {
      at: story.created_at,
      source: 'Customer',
      text: [
        `Began ${story.kind === 'run' ? 'a metered run' : 'a checkout'} of ${money(story.total, story.currency)}.`,
      ],
    },
  ]
  const { attempt } = story
  if (attempt?.settled_at) {
    moments.push({
      at: attempt.settled_at,
      source: 'Customer',
      text: [
        `The answer was kept: ${attempt.response_status ?? 'its body has been swept'}. Every repeat gets the same.`,
      ],
    })
  }
  if (story.cancel_requested_at !== null) {
    moments.push({
      at: story.cancel_requested_at,
      source: 'Order',
      text: ['Was to be canceled: nothing is sent for it from here on.'],
    })
  }
  if (story.hold_ending !== null) {
    const { action, amount, created_at } = story.hold_ending
    const what = action === 'capture' ? `to be captured with ${money(amount, story.currency)}` : 'to be let go'
    moments.push({ at: created_at, source: 'Merchant', text: [`The hold was ${what}.`] })
  }
  return moments
}

function stock(story: Story): Moment[] {
  return story.stock_movements.map(
    ({ kind, sku, quantity, created_at }): Moment => ({
      at: created_at,
      source: 'Stock',
      text: [`${quantity} of `, code(sku), kind === 'reserve' ? ' taken.' : ' given back.'],
    }),
  )
}

function moneyBack(story: Story): Moment[] {
  const refunds = story.refunds.map(
    (refund): Moment => ({
      at: refund.created_at,
      source: refund.attempt_key === null ? 'Provider' : 'Merchant',
      text: [
        `Refund of ${money(refund.amount, refund.currency)}: ${statusWord(refund.status)[0].toLowerCase()}.`,
        refund.reason !== null && ' ',
        refund.reason !== null && el('q', {}, refund.reason),
      ],
      tone: refund.status === 'failed' ? 'bad' : '',
    }),
  )
  const disputes = story.disputes.map(
    (dispute): Moment => ({
      at: dispute.created_at,
      source: 'Provider',
      text: [`Dispute over ${money(dispute.amount, dispute.currency)}: ${plain(dispute.status)}.`],
      tone: 'bad',
    }),
  )
  return [...refunds, ...disputes]
}

function news(story: Story): Moment[] {
  const emails = story.emails.map((email): Moment => {
    const [label, tone] = statusWord(email.state)
    return {
      at: email.updated_at,
      source: 'Email',
      text: [
        `About “${plain(email.kind)}”: ${label.toLowerCase()}${email.reason === null ? '' : `, ${plain(email.reason)}`}.`,
      ],
      tone: tone === 'good' ? '' : tone,
    }
  })
  const types = new Map(story.merchant_events.map(({ event_id, type }) => [event_id, type]))
  const events = story.merchant_events.map(
    ({ created_at, type }): Moment => ({
      at: created_at,
      source: 'Merchant',
      text: ['Is to be told ', code(type), '.'],
    }),
  )
  const deliveries = story.deliveries.map(
    (delivery): Moment => ({
      at: delivery.created_at,
      source: 'Merchant',
      text: [
        delivery.delivered ? 'Was told ' : 'Did not take ',
        code(types.get(delivery.event_id) ?? delivery.event_id),
        delivery.delivered
          ? '.'
          : `: ${[delivery.error ?? delivery.http_status]
              .filter(Boolean)
              .map((word) => plain(String(word)))
              .join(', ')}.`,
      ],
      tone: delivery.delivered ? '' : 'bad',
    }),
  )
  return [...emails, ...events, ...deliveries]
}
