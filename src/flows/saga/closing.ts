/**
 * Closes a payment that its order has left behind, so that it can't succeed later: one that a decline left open, or a hold
 * that came too late. Money that got through meanwhile is booked and given back.
 */
import { randomUUID } from 'node:crypto'
import type { Deps } from '../../deps.ts'
import { isOpen, type Order } from '../../domain/order.ts'
import { checkpoint } from '../../runtime/checkpoint.ts'
import { readOrder, recordCalls } from '../../store/orders.ts'
import { type JobEnd, JobFailure, type JobRun, textOf } from '../jobs/job-run.ts'
import { ask, targetOf } from './provider-calls.ts'
import { stillConfigured } from './provider-target.ts'
import { settle } from './settlement.ts'

/** Job `close_payment`; its business id is the payment. Canceling twice is harmless, so nothing is kept of it. */
export async function closePayment(deps: Deps, { job, runId, deadline }: JobRun): Promise<JobEnd> {
  const intentId = job.businessId
  const order = await orderOf(deps, job.tenantId, textOf(job, 'order_id'))
  // It may be the payment that the order lives on: whoever ends the order decides about it.
  if (order.intent_id === intentId && order.status !== 'payment_failed' && order.status !== 'canceled') return 'done'
  if (isOpen(order.status)) return 'done'
  await needConfigured(deps, order)

  // A fresh key each time: a replayed failure would be for good.
  const key = `cancel:${intentId}:${randomUUID()}`
  const { outcome, calls } = await ask(deps, deadline, (limits) =>
    deps.provider.cancel(targetOf(order), intentId, key, limits),
  )
  await checkpoint('closing.asked')
  if (outcome.kind === 'succeeded') {
    // Books what arrived, and a job that gives it back.
    await settle(deps, order, outcome, { cause: 'recovery', actor: runId, calls })
    return 'done'
  }
  await recordCalls(deps.db, order.tenant_id, order.order_id, calls)
  switch (outcome.kind) {
    case 'canceled':
    case 'absent':
      return 'done'
    case 'unknown':
      throw new JobFailure(outcome.reason)
    case 'not_sent':
      throw new JobFailure('not_reached')
    default:
      throw new JobFailure('not_closed')
  }
}

/** The job's order. Throws `JobFailure` where there is none. */
export async function orderOf(deps: Deps, tenantId: string, orderId: string): Promise<Order> {
  const order = await readOrder(deps.db, tenantId, orderId)
  if (order === null) throw new JobFailure('order_missing', { isFinal: true })
  return order
}

/** Throws `JobFailure` where other credentials are configured than the order was claimed for: they would answer from
 * somebody else's books. */
export async function needConfigured(deps: Deps, order: Order): Promise<void> {
  const configured = await stillConfigured(deps, order)
  if (configured === null) throw new JobFailure('not_reached')
  if (!configured) throw new JobFailure('provider_account_changed', { isFinal: true })
}
