/**
 * What notifications do. They are news, not orders:
 *
 *   find      the order that the event is about; account, mode, metadata and payment must be the order's, otherwise the
 *             event is foreign: kept, visible, without effect
 *   settle    a terminal fact (succeeded, canceled) that matches our payment and amount, directly
 *   ask       everything else makes recovery ask the provider now, whose word counts and not the event's
 *   end       what has come of the event, with the end of its job
 *
 * So arrival order, duplicates and staleness mean nothing, and what dies in between is simply done again. An event that
 * cannot be true of its order settles nothing and is shown, on the order too.
 */
import type { Deps } from '../../deps.ts'
import { mismatchOf } from '../../domain/judgement.ts'
import { isOpen, type Order } from '../../domain/order.ts'
import { Problem } from '../../domain/problem.ts'
import type { ProviderCall, ProviderPayment } from '../../provider/port.ts'
import { checkpoint } from '../../runtime/checkpoint.ts'
import { transaction } from '../../runtime/database.ts'
import { type EventEnd, endEvent, readEvent, type StoredEvent } from '../../store/inbox.ts'
import { lookAtLateRefund } from '../../store/late-money.ts'
import { claimAsk, learnPayment, readOrder, recordCalls, recordFacts } from '../../store/orders.ts'
import { type JobEnd, JobFailure, type JobRun } from '../jobs/job-run.ts'
import { readProviderDisputes } from '../refunds/disputes.ts'
import { applyProviderRefund, type NewsResult, readProviderRefunds } from '../refunds/provider-refunds.ts'
import { type Deadline, deadlineFor } from '../saga/provider-calls.ts'
import { drive } from '../saga/recovery.ts'
import { settle } from '../saga/settlement.ts'
import { askAboutPayment, type Found, findOrder, type Told } from './event-order.ts'

type Subject = 'payment' | 'refund' | 'dispute'

/** The events that we use, and what each is about. Any other is kept without effect. */
const used: Readonly<Record<string, Subject>> = {
  'payment_intent.succeeded': 'payment',
  'payment_intent.canceled': 'payment',
  'payment_intent.payment_failed': 'payment',
  'payment_intent.requires_action': 'payment',
  'payment_intent.processing': 'payment',
  'payment_intent.amount_capturable_updated': 'payment',
  'charge.refunded': 'refund',
  'charge.refund.updated': 'refund',
  'refund.created': 'refund',
  'refund.updated': 'refund',
  'refund.failed': 'refund',
  'charge.dispute.created': 'dispute',
  'charge.dispute.updated': 'dispute',
  'charge.dispute.funds_withdrawn': 'dispute',
  'charge.dispute.funds_reinstated': 'dispute',
  'charge.dispute.closed': 'dispute',
}

export function isUsed(type: string): boolean {
  return Object.hasOwn(used, type)
}

/** Job `provider_event`; its business id is the event. */
export async function handleProviderEvent(deps: Deps, run: JobRun): Promise<JobEnd> {
  const event = await readEvent(deps.db, deps.notifications.provider, run.job.businessId)
  // Past its retention, or an operator's replay was faster.
  if (event === null || event.state !== 'waiting') return 'done'
  await checkpoint('events.read')
  const end = await apply(deps, event, run.deadline)
  await checkpoint('events.applied')
  await transaction(deps.db, async (tx) => {
    await endEvent(tx, event, end)
    await run.finish(tx)
  })
  await checkpoint('events.ended')
  return 'finished'
}

/** An operator has an event applied again, whatever came of it before. Resolves with the event as it stands then. Throws a
 * `Problem`: `not_found`, or `provider_unavailable` where the provider had to be asked and did not answer. */
export async function replayEvent(deps: Deps, eventId: string): Promise<StoredEvent> {
  const { provider } = deps.notifications
  const event = await readEvent(deps.db, provider, eventId)
  if (event === null) throw new Problem('not_found')
  try {
    const end = await apply(deps, event, deadlineFor(deps, performance.now()))
    await checkpoint('events.replayed')
    await endEvent(deps.db, event, end)
  } catch (error) {
    if (!(error instanceof JobFailure)) throw error
    throw new Problem('provider_unavailable', {
      detail: `The event could not be applied now: ${error.reason}.`,
      retryAfterSeconds: 2,
    })
  }
  return (await readEvent(deps.db, provider, eventId)) ?? event
}

/** Throws `JobFailure` for what has to be tried again later. */
async function apply(deps: Deps, event: StoredEvent, deadline: Deadline): Promise<EventEnd> {
  const subject = used[event.type]
  if (subject === undefined) return { state: 'ignored', reason: 'type_not_used', order: null }
  const found = await findOrder(deps, event, deadline)
  await checkpoint('events.found')
  switch (found.kind) {
    case 'foreign':
      deps.log.warn({ event: event.event_id, type: event.type, reason: found.reason }, 'an event is not about an order')
      return { state: 'foreign', reason: found.reason, order: null }
    case 'mismatched':
      return mismatched(deps, event, found.order, found.reason, { flag: true })
    case 'ours':
      return subject === 'payment'
        ? applyPayment(deps, event, found, deadline)
        : applyMovement(deps, event, found, deadline, subject)
  }
}

type Ours = Extract<Found, { kind: 'ours' }>

async function applyPayment(deps: Deps, event: StoredEvent, { order, told }: Ours, deadline: Deadline) {
  const fact = terminalFact(event)
  if (fact === null) {
    return told === null ? askNow(deps, event, order, deadline) : follow(deps, event, order, told, deadline)
  }
  const wrong = contradiction(event, order, fact)
  if (wrong === null && told === null) return settleBy(deps, event, order, fact, [])

  // A payment that the order does not know yet, or a fact that cannot be: the provider tells.
  const word = told ?? (await askAboutPayment(deps, event, deadline))
  const end = await follow(deps, event, order, word, deadline)
  if (wrong === null) return end
  const { payment } = word.outcome
  const isTrue =
    word.outcome.kind === fact.kind &&
    payment.amount === event.amount &&
    payment.currency === event.currency &&
    payment.amountCaptured === event.amount_captured
  return mismatched(deps, event, order, wrong, { flag: !isTrue })
}

/** What the event itself says of a payment that has ended; null where it is no such news. */
function terminalFact(event: StoredEvent): { kind: 'succeeded' | 'canceled'; payment: ProviderPayment } | null {
  const kind =
    event.type === 'payment_intent.succeeded'
      ? 'succeeded'
      : event.type === 'payment_intent.canceled'
        ? 'canceled'
        : null
  if (kind === null || event.intent_id === null) return null
  const payment: ProviderPayment = {
    intentId: event.intent_id,
    chargeId: event.charge_id,
    status: event.status ?? '',
    amount: event.amount ?? 0,
    amountCaptured: event.amount_captured ?? 0,
    amountCapturable: 0,
    amountRefunded: 0,
    currency: event.currency ?? '',
    livemode: event.livemode,
    createdAt: event.created_at,
    captureBefore: null,
    clientSecret: null,
    declineCode: event.decline_code,
    metadata: { tenant: event.tenant_id ?? '', order: event.order_id ?? '' },
  }
  return { kind, payment }
}

/** Why an event of that type cannot be true of the order; null where it can. */
function contradiction(
  event: StoredEvent,
  order: Order,
  { kind, payment }: NonNullable<ReturnType<typeof terminalFact>>,
) {
  if (event.object !== 'payment_intent' || !event.readable) return 'unreadable'
  if (payment.status !== kind) return 'status_mismatch'
  const mismatch = mismatchOf(order, payment)
  if (mismatch !== null) return mismatch
  if (order.status !== 'paid') return null
  return kind === 'succeeded' && payment.amountCaptured === order.captured ? null : 'status_mismatch'
}

/** Settles, where that can still change something. Money for an order that has ended is booked and given back there. */
async function settleBy(
  deps: Deps,
  event: StoredEvent,
  order: Order,
  outcome: Extract<Told['outcome'], { kind: 'succeeded' | 'authorized' | 'canceled' }>,
  calls: readonly ProviderCall[],
): Promise<EventEnd> {
  const known = outcome.kind === 'succeeded' ? order.status === 'paid' : endedUnpaid(order)
  if (known && order.intent_id === outcome.payment.intentId) return done(order, 'nothing_new')
  const { applied } = await settle(deps, order, outcome, contextOf(event, calls))
  return done(order, applied ? 'settled' : 'came_late')
}

/** Acts on the provider's own word about a payment that was made for this order. */
async function follow(deps: Deps, event: StoredEvent, order: Order, told: Told, deadline: Deadline): Promise<EventEnd> {
  const { outcome, calls } = told
  const { payment } = outcome
  const mismatch = mismatchOf(order, payment)
  if (mismatch === 'order_mismatch') return mismatched(deps, event, order, mismatch, { flag: true })
  const waitedFor = mismatch === null && isOpen(order.status)

  if (outcome.kind === 'succeeded' || (outcome.kind === 'authorized' && !waitedFor)) {
    return settleBy(deps, event, order, outcome, calls)
  }
  if (outcome.kind === 'canceled') {
    if (mismatch === null) return settleBy(deps, event, order, outcome, calls)
    await recordCalls(deps.db, order.tenant_id, order.order_id, calls)
    return done(order, 'nothing_new')
  }
  await recordCalls(deps.db, order.tenant_id, order.order_id, calls)
  if (waitedFor) {
    await learnPayment(deps.db, order.tenant_id, order.order_id, payment.intentId)
    return askNow(deps, event, order, deadline)
  }
  if (mismatch === null && !endedUnpaid(order)) return done(order, 'nothing_new')
  // Nobody waits for it any more, and it could still succeed.
  await recordFacts(deps.db, order, {
    transfers: [],
    jobs: [{ topic: 'close_payment', business_id: payment.intentId, payload: { order_id: order.order_id } }],
  })
  return done(order, 'left_over')
}

/** Recovery's question, put at once. Whoever holds an order's lease is asking already. */
async function askNow(deps: Deps, event: StoredEvent, order: Order, deadline: Deadline): Promise<EventEnd> {
  if (!isOpen(order.status)) {
    // A hold that may have ended, or comes for an order that has ended; other news of a settled order moves no money.
    const isAboutHold =
      order.status === 'authorized' || (endedUnpaid(order) && event.type === 'payment_intent.amount_capturable_updated')
    if (!isAboutHold) return done(order, 'nothing_new')
    return follow(deps, event, order, await askAboutPayment(deps, event, deadline), deadline)
  }
  const { tenant_id, order_id } = order
  const asked = await claimAsk(deps.pool, tenant_id, order_id, deps.config.reconcileAfterMs, true)
  if (asked === null) return done(order, 'nothing_new')
  const { order: now } = await drive(deps, asked, {
    cause: 'notification',
    actor: event.event_id,
    sendUntil: new Date(0),
    maySendUnsent: false,
    deadline,
  })
  return done(order, isOpen(now.status) ? 'asked' : 'settled')
}

/** Refunds and disputes: money that goes back, of an order that has been paid. */
async function applyMovement(
  deps: Deps,
  event: StoredEvent,
  { order: before, told }: Ours,
  deadline: Deadline,
  subject: 'refund' | 'dispute',
): Promise<EventEnd> {
  let order = before
  if (order.status !== 'paid' && !endedUnpaid(order)) {
    // The news that it has been paid, or that its hold has ended, is still on its way or was lost.
    if (told === null && isOpen(order.status)) await askNow(deps, event, order, deadline)
    else await follow(deps, event, order, told ?? (await askAboutPayment(deps, event, deadline)), deadline)
    order = (await readOrder(deps.db, order.tenant_id, order.order_id)) ?? order
    if (isOpen(order.status)) throw new JobFailure('order_open')
  } else if (told !== null) {
    // It names a payment that the order does not live on, and there the news is that it has brought money.
    await follow(deps, event, order, told, deadline)
  }
  if (subject === 'refund' && event.status === 'failed' && event.intent_id !== null) {
    // Late money that was given back and has come back.
    const looked = await lookAtLateRefund(deps.db, order, event.intent_id)
    if (looked === 'running') throw new JobFailure('late_refund_running')
    if (looked === 'queued') return done(order, 'late_refund_failed')
  }
  // Of a payment that the order does not live on; whoever gives it back keeps the books of that.
  if (event.intent_id !== order.intent_id) return done(order, 'other_payment')
  const { event_id: id, refund_id: refundId, status, amount, currency } = event
  const result: NewsResult =
    subject === 'dispute'
      ? await readProviderDisputes(deps, order, id)
      : event.object === 'refund'
        ? await applyProviderRefund(deps, order, { id, refundId, status, amount, currency })
        : await readProviderRefunds(deps, order, id)
  switch (result) {
    case 'unanswered':
      throw new JobFailure('not_answered')
    case 'mismatch':
      return mismatched(deps, event, order, `${subject}_mismatch`, { flag: true })
    default:
      return done(order, result)
  }
}

async function mismatched(
  deps: Deps,
  event: StoredEvent,
  order: Order,
  reason: string,
  { flag }: { flag: boolean },
): Promise<EventEnd> {
  const { tenant_id, order_id, reconcile_reason } = order
  deps.log.warn(
    { event: event.event_id, type: event.type, tenant_id, order_id, reason },
    'an event does not fit its order',
  )
  if (flag && reconcile_reason === null) {
    await recordFacts(deps.db, order, { transfers: [], jobs: [], reconcileReason: 'notification_mismatch' })
  }
  return { state: 'mismatched', reason, order }
}

function done(order: Order, reason: string): EventEnd {
  return { state: 'done', reason, order }
}

function endedUnpaid(order: Order): boolean {
  return order.status === 'payment_failed' || order.status === 'canceled'
}

function contextOf(event: StoredEvent, calls: readonly ProviderCall[]) {
  return { cause: 'notification' as const, actor: event.event_id, calls }
}
