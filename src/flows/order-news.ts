/**
 * Spreads the news of an order's transition: the email that the customer expects and the event for the merchant, each
 * with the job that sends it. One transaction for all news of a tenant that are taken together.
 *
 * Payload: {order_id, status}, and of a refund {refund_id, amount} or of a dispute {dispute_id}. The business id is
 * `<order>:<status>`, with the refund's or dispute's id behind it, so that no transition takes another's place.
 */
import type { Deps } from '../deps.ts'
import { newId } from '../domain/ids.ts'
import { mailKindFor } from '../domain/mail.ts'
import { eventBody, eventTypeFor } from '../domain/merchant-event.ts'
import type { Order } from '../domain/order.ts'
import { checkpoint } from '../runtime/checkpoint.ts'
import { transaction } from '../runtime/database.ts'
import { addEmails, type NewEmail } from '../store/emails.ts'
import type { TakenJob } from '../store/jobs.ts'
import { addEvents, endpointIsActive, type NewEvent } from '../store/merchant-events.ts'
import { readOrders, transitionsInto } from '../store/order-news.ts'
import { amountOf, type GroupRun, JobFailure, textOf } from './job-run.ts'

interface News {
  orderId: string
  status: string
  /** The status, with the refund's or dispute's id behind it: what makes it one of its kind. */
  transition: string
  refund: { id: string; amount: number } | null
  disputeId: string | null
}

/** Job `order_news`. */
export async function spreadOrderNews(deps: Deps, { tenantId, jobs, finish }: GroupRun): Promise<void> {
  const news = jobs.map(newsOf)
  const orders = await readOrders(
    deps.db,
    tenantId,
    news.map(({ orderId }) => orderId),
  )
  const ended = news.filter(({ status }) => status === 'payment_failed' || status === 'canceled')
  const cameFrom = await transitionsInto(deps.db, tenantId, ended)
  const emails: NewEmail[] = []
  const events: NewEvent[] = []
  for (const each of news) {
    const order = orders.get(each.orderId)
    if (order === undefined) throw new JobFailure('order_missing', { isFinal: true })
    const from = cameFrom.get(`${each.orderId}:${each.status}`) ?? null
    if (mailKindFor(order, each.status, from) !== null) emails.push(emailOf(deps, each))
    events.push(eventOf(each, order))
  }
  await checkpoint('order_news.read')
  await transaction(deps.db, async (tx) => {
    await addEmails(tx, tenantId, emails)
    // An event is kept in any case, but without an endpoint there is nowhere to deliver it to.
    await addEvents(tx, tenantId, events, await endpointIsActive(tx, tenantId))
    await checkpoint('order_news.written')
    await finish(tx)
  })
  await checkpoint('order_news.spread')
}

function newsOf(job: TakenJob): News {
  const { refund_id, dispute_id } = job.payload
  const status = textOf(job, 'status')
  const about = refund_id ?? dispute_id
  return {
    orderId: textOf(job, 'order_id'),
    status,
    transition: typeof about === 'string' ? `${status}:${about}` : status,
    refund: typeof refund_id === 'string' ? { id: refund_id, amount: amountOf(job, 'amount') } : null,
    disputeId: typeof dispute_id === 'string' ? dispute_id : null,
  }
}

function emailOf(deps: Deps, { orderId, transition, refund }: News): NewEmail {
  return {
    order_id: orderId,
    kind: transition,
    amount: refund?.amount ?? null,
    skippedBecause: deps.mailer === undefined ? 'no_smtp' : null,
  }
}

function eventOf({ orderId, status, transition, refund, disputeId }: News, order: Order): NewEvent {
  const type = eventTypeFor(status)
  if (type === null) throw new JobFailure('status_unknown', { isFinal: true })
  return {
    event_id: newId('evt'),
    order_id: orderId,
    type,
    transition,
    body: eventBody(type, new Date(), order, {
      ...(refund === null ? {} : { refund: { ...refund, currency: order.currency } }),
      ...(disputeId === null ? {} : { dispute: { id: disputeId } }),
    }),
  }
}
