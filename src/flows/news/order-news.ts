/**
 * Spreads the news of an order's transition: the email that the customer expects and the event for the merchant, each
 * with the job that sends it. One transaction for all news of a tenant that are taken together.
 *
 * Payload: {order_id, status}, and of a refund {refund_id} or of a dispute {dispute_id}. The business id is
 * `<order>:<status>`, with the refund's or dispute's id behind it, so that no transition takes another's place.
 */
import type { Deps } from '../../deps.ts'
import { newId } from '../../domain/ids.ts'
import { mailKindFor } from '../../domain/mail.ts'
import { eventBody, eventTypeFor } from '../../domain/merchant-event.ts'
import type { Order } from '../../domain/order.ts'
import { checkpoint } from '../../runtime/checkpoint.ts'
import { transaction } from '../../runtime/database.ts'
import type { TraceContext } from '../../runtime/tracing.ts'
import { addEmails, type NewEmail } from '../../store/emails.ts'
import type { TakenJob } from '../../store/jobs.ts'
import { addEvents, type NewEvent, readEndpoint } from '../../store/merchant-events.ts'
import { readOrders, refundAmounts, transitionsInto } from '../../store/order-news.ts'
import { type GroupRun, JobFailure, textOf, traceOf } from '../jobs/job-run.ts'

interface News {
  trace: TraceContext | undefined
  orderId: string
  status: string
  /** The status, with the refund's or dispute's id behind it: what makes it one of its kind. */
  transition: string
  refundId: string | null
  disputeId: string | null
  since: Date
}

/** Job `order_news`. */
export async function spreadOrderNews(deps: Deps, { tenantId, jobs, finish }: GroupRun): Promise<void> {
  const news = jobs.map(newsOf)
  const [endpoint, orders, cameFrom, amounts] = await Promise.all([
    readEndpoint(deps.db, tenantId),
    readOrders(deps.db, tenantId, unique(news.map(({ orderId }) => orderId))),
    transitionsInto(deps.db, tenantId, news.filter(endsUnpaid)),
    refundAmounts(deps.db, tenantId, unique(news.flatMap(({ refundId }) => refundId ?? []))),
  ])
  const emails: NewEmail[] = []
  const events: ReturnType<typeof eventOf>[] = []
  for (const each of news) {
    const order = needed(orders.get(each.orderId), 'order_missing')
    const amount = each.refundId === null ? null : needed(amounts.get(each.refundId), 'refund_missing')
    const from = cameFrom.get(`${each.orderId}:${each.status}`) ?? null
    if (mailKindFor(order, each.status, from) !== null) emails.push(emailOf(deps, each, amount))
    // Who wanted no events then gets none later either, whenever this runs; those that come while an endpoint is disabled
    // are kept.
    if (endpoint !== null && endpoint.created_at <= each.since) events.push(eventOf(each, order, amount))
  }
  await checkpoint('order_news.read')
  await transaction(deps.db, async (tx) => {
    await addEmails(tx, tenantId, emails)
    await addEvents(tx, tenantId, events, endpoint?.disabled_at === null)
    await checkpoint('order_news.written')
    await finish(tx)
  })
  await checkpoint('order_news.spread')
}

function newsOf(job: TakenJob): News {
  const status = textOf(job, 'status')
  const refundId = 'refund_id' in job.payload ? textOf(job, 'refund_id') : null
  const disputeId = 'dispute_id' in job.payload ? textOf(job, 'dispute_id') : null
  const about = refundId ?? disputeId
  return {
    trace: traceOf(job),
    orderId: textOf(job, 'order_id'),
    status,
    transition: about === null ? status : `${status}:${about}`,
    refundId,
    disputeId,
    since: job.createdAt,
  }
}

function endsUnpaid({ status }: News): boolean {
  return status === 'payment_failed' || status === 'canceled'
}

function emailOf(deps: Deps, { trace, orderId, transition }: News, amount: number | null): NewEmail {
  return {
    trace,
    order_id: orderId,
    kind: transition,
    amount,
    skippedBecause: deps.mailer === undefined ? 'no_smtp' : null,
  }
}

function eventOf(
  { trace, orderId, status, transition, refundId, disputeId }: News,
  order: Order,
  amount: number | null,
): NewEvent & { trace: TraceContext | undefined } {
  const type = needed(eventTypeFor(status), 'status_unknown')
  return {
    trace,
    event_id: newId('evt'),
    order_id: orderId,
    type,
    transition,
    body: eventBody(type, new Date(), order, {
      ...(refundId === null || amount === null ? {} : { refund: { id: refundId, amount, currency: order.currency } }),
      ...(disputeId === null ? {} : { dispute: { id: disputeId } }),
    }),
  }
}

/** What a fact of ours names exists, unless a fault of ours wrote it: trying again cannot help. */
function needed<Value>(value: Value | null | undefined, reason: string): Value {
  if (value === null || value === undefined) throw new JobFailure(reason, { isFinal: true })
  return value
}

function unique(texts: readonly string[]): string[] {
  return [...new Set(texts)]
}
