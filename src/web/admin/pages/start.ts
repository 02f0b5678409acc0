/** What needs a person now, and what is going on. */
import { el } from '../../common/dom.ts'
import { duration, moment, secondsSince } from '../format.ts'
import { everyMs, type LiveFigures, minutesShown } from '../live.ts'
import { facts, notice } from '../parts.ts'
import { plot } from '../plot.ts'
import type { Figures } from '../types.ts'
import { hashOf, type Page } from '../view.ts'
import { atLeast, counted } from '../words.ts'

export const startPage: Page = async (view) => {
  const waiting = el('div', { id: 'waiting' })
  const going = el('div', { class: 'figures' })
  const told = el('p', { class: 'hint' })
  view.live.watch((live) => {
    if (live.latest === null) {
      waiting.replaceChildren(
        el('p', { class: 'loading' }, live.isSilent ? 'The service does not answer.' : 'Loading…'),
      )
      return
    }
    // Links are replaced only where something has changed: a person may be on one of them.
    const text = JSON.stringify(live.latest.waiting)
    if (waiting.dataset.shown !== text) {
      waiting.dataset.shown = text
      waiting.replaceChildren(...whatWaits(live.latest))
    }
    going.replaceChildren(...goingOn(live))
    told.replaceChildren(...freshness(live))
  }, view.signal)
  return {
    title: 'What needs a person',
    content: [waiting, el('h2', {}, 'What is going on'), told, going],
  }
}

interface Matter {
  count: number
  one: string
  many: string
  /** Said where there is none. */
  none: string
  more: string
  to: string
  /** Usually somebody else's, and no reason for alarm. */
  isQuiet?: boolean
}

function whatWaits({ waiting, at }: Figures): Node[] {
  const { oldest_needs_reconcile_at: oldest } = waiting
  const matters: Matter[] = [
    {
      count: waiting.needs_reconcile,
      one: 'order needs reconciliation',
      many: 'orders need reconciliation',
      none: 'No order needs reconciliation',
      more:
        oldest === null
          ? ''
          : `The oldest was made ${duration(secondsSince(oldest, Date.parse(at)))} ago. Recovery asks the provider by itself; one that stays needs you.`,
      to: hashOf(['orders'], { status: 'needs_reconcile' }),
    },
    {
      count: waiting.flagged,
      one: 'order is flagged',
      many: 'orders are flagged',
      none: 'No order is flagged',
      more: 'Ended, but something does not fit.',
      to: hashOf(['orders'], { flagged: 'settled' }),
    },
    {
      count: waiting.dead_jobs,
      one: 'job was given up',
      many: 'jobs were given up',
      none: 'No job was given up',
      more: 'Mend the cause, then requeue or discard.',
      to: hashOf(['jobs']),
    },
    {
      count: waiting.unnamed_dead_jobs,
      one: 'job for a notification of no shop was given up',
      many: 'jobs for notifications of no shop were given up',
      none: 'No job for a notification of no shop was given up',
      more: 'Mend the cause, then requeue or discard.',
      to: hashOf(['jobs'], { unnamed: 'true' }),
      isQuiet: true,
    },
    {
      count: waiting.uncertain_emails + waiting.failed_emails,
      one: 'email is uncertain or failed',
      many: 'emails are uncertain or failed',
      none: 'No email is in doubt',
      more: 'It may have arrived or not, or the mail server refused it.',
      to: hashOf(['emails']),
    },
    {
      count: waiting.undelivered,
      one: 'event has not reached the merchant',
      many: 'events have not reached the merchant',
      none: 'Every event has reached the merchant',
      more: 'The latest delivery failed. It is tried again for some days.',
      to: hashOf(['deliveries']),
    },
    {
      count: waiting.mismatched_events,
      one: 'notification does not match our books',
      many: 'notifications do not match our books',
      none: 'Every notification matches our books',
      more: 'In the last 7 days.',
      to: hashOf(['events'], { state: 'mismatched' }),
    },
    {
      count: waiting.foreign_events + waiting.unnamed_events,
      one: 'notification fits no order',
      many: 'notifications fit no order',
      none: 'Every notification fits an order',
      more: 'In the last 7 days. Usually of something else that uses the same account.',
      to: hashOf(['events'], waiting.foreign_events > 0 ? { state: 'foreign' } : { unnamed: 'true' }),
      isQuiet: true,
    },
  ]
  const [urgent, quiet] = [matters.filter(({ isQuiet }) => !isQuiet), matters.filter(({ isQuiet }) => isQuiet)]
  const present = urgent.filter(({ count }) => count > 0)
  const resting = [...urgent.filter(({ count }) => count === 0), ...quiet.filter(({ count }) => count > 0)]
  return [
    present.length === 0
      ? notice('good', 'Nothing needs a person.')
      : el('ul', { class: 'matters' }, ...present.map((matter) => el('li', {}, matterCard(matter)))),
    el('ul', { class: 'resting' }, ...resting.map((matter) => el('li', {}, restingLink(matter)))),
  ]
}

function matterCard({ count, one, many, more, to }: Matter): HTMLElement {
  return el(
    'a',
    { class: 'card matter', href: to },
    el('strong', { class: 'big' }, atLeast(count)),
    el('span', { class: 'what' }, count === 1 ? one : many),
    el('span', { class: 'hint' }, more),
  )
}

function restingLink({ count, one, many, none, to }: Matter): HTMLElement {
  return el('a', { href: to }, count === 0 ? none : counted(count, one, many))
}

function goingOn(live: LiveFigures): HTMLElement[] {
  const minutes = [...live.started].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, orders]) => orders)
  const { samples, counted: told } = live
  const last = samples.at(-1)
  const slots = Math.max(30, samples.length)
  const over = `${Math.round((slots * everyMs) / 6000) / 10} min ago`
  const due = live.latest?.waiting.due_jobs ?? 0
  const whose = `Counted by ${told.processes === 1 ? 'the API process' : `${told.processes} API processes`} that answered this page, since start`
  const figures: readonly (readonly [name: string, now: string, drawn: Drawn])[] = [
    [
      'Attempts',
      `${minutes.at(-1) ?? 0} this minute`,
      {
        values: minutes,
        unit: 'minutes',
        kind: 'bars',
        slots: minutesShown,
        from: `${minutesShown} min ago`,
        note: 'Orders begun by minute',
      },
    ],
    [
      'Unknown outcomes',
      counted(last?.needsReconcile ?? 0, 'order'),
      {
        values: samples.map(({ needsReconcile }) => needsReconcile),
        kind: 'line',
        slots,
        from: over,
        note: 'Orders in need of reconciliation',
      },
    ],
    [
      'Oldest job that is due',
      due === 0 ? 'none is due' : duration(last?.dueSeconds ?? 0),
      {
        values: samples.map(({ dueSeconds }) => dueSeconds),
        unit: 'seconds',
        kind: 'line',
        slots,
        from: over,
        note: `${counted(due, 'job is', 'jobs are')} due`,
      },
    ],
    [
      'Replays',
      String(told.replays),
      {
        values: samples.map(({ replays }) => replays),
        kind: 'bars',
        slots,
        from: over,
        note: whose,
      },
    ],
    [
      'Key conflicts',
      String(told.conflicts),
      {
        values: samples.map(({ conflicts }) => conflicts),
        kind: 'bars',
        slots,
        from: over,
        note: whose,
      },
    ],
  ]
  const isEmpty = ([, , { values }]: (typeof figures)[number]) => values.every((value) => value === 0)
  const empty = figures.filter(isEmpty)
  return [
    ...figures.filter((each) => !isEmpty(each)).map(([name, now, drawn]) => figure(name, now, drawn)),
    // A plot of nothing shows nothing.
    ...(empty.length === 0
      ? []
      : [el('section', { class: 'card at-rest' }, facts(empty.map(([name, now]) => [name, now] as const)))]),
  ]
}

interface Drawn {
  values: readonly number[]
  kind: 'bars' | 'line'
  slots: number
  from: string
  note: string
  unit?: 'seconds' | 'minutes'
}

function figure(name: string, now: string, { from, note, unit, ...drawn }: Drawn): HTMLElement {
  const top = Math.max(0, ...drawn.values)
  const highest = unit === 'seconds' ? duration(top) : String(top)
  const label = `${name}: ${now}. Highest in the time shown: ${highest}.`
  return el(
    'section',
    { class: 'card figure' },
    el('h3', {}, name),
    el('p', { class: 'now' }, now),
    plot({ label, ...drawn }),
    el('p', { class: 'axis hint' }, el('span', {}, from), el('span', {}, 'now')),
    el('p', { class: 'hint' }, `${note}. Highest in a ${unit === 'minutes' ? 'minute' : 'reading'}: ${highest}.`),
  )
}

function freshness(live: LiveFigures): (Node | string)[] {
  const { latest } = live
  if (latest === null) return []
  return live.isSilent
    ? ['The service does not answer. These are the figures of ', moment(latest.at), '.']
    : ['Of this shop alone, read every 5 seconds while this page can be seen. Last at ', moment(latest.at), '.']
}
