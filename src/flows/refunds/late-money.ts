/**
 * Gives back money that arrived for an order which does not wait for it: once, keyed by the payment.
 *
 *   list      the payment's refunds at the provider: ours, and those made in its dashboard
 *   unbook    what was booked as given back and has come back since
 *   refund    the rest, under a key made from the payment's id
 *   book      with the job's end, once the provider says that it has succeeded
 *
 * However often it runs, more than was paid can never go back: what is asked for is all that is left, and the provider
 * refuses more.
 */
import type { Deps } from '../../deps.ts'
import type { Order } from '../../domain/order.ts'
import { transfer } from '../../domain/posting.ts'
import type { ProviderCall, ProviderRefund, RefundOutcome } from '../../provider/port.ts'
import { checkpoint } from '../../runtime/checkpoint.ts'
import { transaction } from '../../runtime/database.ts'
import { bookLate, flagOrder, lateBalance } from '../../store/late-money.ts'
import { recordCalls } from '../../store/orders.ts'
import { amountOf, type JobEnd, JobFailure, type JobRun, textOf } from '../jobs/job-run.ts'
import { needConfigured, orderOf } from '../saga/closing.ts'
import { ask, targetOf } from '../saga/provider-calls.ts'

/** Banks take hours or days over a pending refund. */
const lookAgainMs = 10 * 60_000

/** What marks a refund at the provider as ours for this payment. */
function lateRefundMark(intentId: string): string {
  return `late:${intentId}`
}

/** Job `refund_late_payment`; its business id is the payment, its payload what arrived. */
export async function refundLatePayment(deps: Deps, run: JobRun): Promise<JobEnd> {
  const { job } = run
  const payment = { intentId: job.businessId, amount: amountOf(job, 'amount'), currency: textOf(job, 'currency') }
  const order = await orderOf(deps, job.tenantId, textOf(job, 'order_id'))
  await needConfigured(deps, order)
  const calls: ProviderCall[] = []
  try {
    const status = await refundAll(deps, run, order, payment, calls)
    await checkpoint('late_money.asked')
    if (status === 'pending') return { later: 'refund_pending', inMs: lookAgainMs }
  } catch (error) {
    if (error instanceof JobFailure && error.isFinal) await flagOrder(deps.db, order, `late_${error.reason}`)
    throw error
  } finally {
    await recordCalls(deps.db, order.tenant_id, order.order_id, calls)
  }
  const { returned, reversals } = await lateBalance(deps.db, order, payment.intentId)
  const missing = payment.amount - returned
  if (missing <= 0) return 'done'
  await transaction(deps.db, async (tx) => {
    await bookLate(tx, order, transfer('late_refund', numbered(payment.intentId, reversals), missing, payment.currency))
    await run.finish(tx)
  })
  return 'finished'
}

/** What was booked as given back and did not stay away. */
async function unbook(
  deps: Deps,
  order: Order,
  payment: LatePayment,
  refunds: readonly ProviderRefund[],
): Promise<void> {
  const { intentId, currency } = payment
  const { returned, reversals } = await lateBalance(deps.db, order, intentId)
  const cameBack = returned - sumOf(refunds.filter(({ status }) => status !== 'failed'))
  if (cameBack <= 0) return
  await bookLate(deps.db, order, transfer('late_refund_reversal', numbered(intentId, reversals), cameBack, currency))
  await checkpoint('late_money.unbooked')
}

/** One business fact for each time: the payment's own name for the first. */
function numbered(intentId: string, before: number): string {
  return before === 0 ? intentId : `${intentId}:${before + 1}`
}

interface LatePayment {
  intentId: string
  /** Minor units. */
  amount: number
  currency: string
}

/** `succeeded` where all of it has gone back. */
async function refundAll(
  deps: Deps,
  { job, deadline }: JobRun,
  order: Order,
  payment: LatePayment,
  calls: ProviderCall[],
): Promise<'succeeded' | 'pending'> {
  const { intentId, amount, currency } = payment
  const listed = await ask(deps, deadline, (limits) => deps.provider.listRefunds(targetOf(order), intentId, limits))
  calls.push(...listed.calls)
  if (listed.outcome.kind !== 'listed') throw failureOf(listed.outcome)
  const mark = lateRefundMark(intentId)
  const { items } = listed.outcome
  const rest = amount - sumOf(items.filter((refund) => refund.status !== 'failed'))
  await unbook(deps, order, payment, items)
  if (rest <= 0) return items.some((refund) => refund.status === 'pending') ? 'pending' : 'succeeded'
  // The bank has sent it back. Another try would end like that, so a person finds another way.
  if (items.some((refund) => refund.metadata.refund === mark && refund.status === 'failed')) throw refundFailed()

  await checkpoint('late_money.refunding')
  const send = async (providerKey: string) => {
    const { outcome, calls: sent } = await ask(deps, deadline, (limits) =>
      deps.provider.refund(
        {
          target: targetOf(order),
          intentId,
          amount: rest,
          currency,
          providerKey,
          metadata: { tenant: order.tenant_id, order: order.order_id, refund: mark },
        },
        limits,
      ),
    )
    calls.push(...sent)
    return outcome
  }
  // One key never stands for two amounts.
  const key = rest === amount ? mark : `${mark}:${rest}`
  let outcome = await send(key)
  // A stored failure, whose call made no refund, or the list would have shown it: this key is of no more use.
  if (outcome.kind === 'unknown' && outcome.replayedFailure) outcome = await send(`${key}:${job.attempts}`)
  switch (outcome.kind) {
    case 'succeeded':
      return items.some((refund) => refund.status === 'pending') ? 'pending' : 'succeeded'
    case 'pending':
      return 'pending'
    case 'failed':
      throw refundFailed()
    default:
      throw failureOf(outcome)
  }
}

function refundFailed(): JobFailure {
  return new JobFailure('refund_failed', { isFinal: true })
}

function failureOf(outcome: Exclude<RefundOutcome, { refund: ProviderRefund }>): JobFailure {
  switch (outcome.kind) {
    case 'unknown':
      return new JobFailure(outcome.reason)
    case 'not_sent':
      return new JobFailure('not_reached')
    case 'rejected':
      // Perhaps refunded meanwhile by somebody else: the next run's list tells.
      return new JobFailure('refund_rejected')
    case 'absent':
      return new JobFailure('refund_missing')
  }
}

function sumOf(refunds: readonly ProviderRefund[]): number {
  return refunds.reduce((sum, refund) => sum + refund.amount, 0)
}
