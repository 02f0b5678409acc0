/**
 * The end of a metered run, once per run, whoever asks for it and however often.
 *
 *   close      from here on no usage is taken: what was used is known       one transaction
 *   end        capture it, at most the hold; let go where nothing was used   the ending of the order's hold
 *   finish     book what was used and not captured as unbilled               one transaction
 *
 * What dies in between is driven on by a repeat or by the worker that also ends runs which nobody finalizes in time.
 */
import type { Deps } from '../../deps.ts'
import { currency } from '../../domain/currencies.ts'
import { isOpen, type Order } from '../../domain/order.ts'
import { transfer } from '../../domain/posting.ts'
import { Problem } from '../../domain/problem.ts'
import { amountToCapture, orderIdOf, type RunClosing, runIdOf, usedAmount } from '../../domain/run.ts'
import { checkpoint } from '../../runtime/checkpoint.ts'
import { claimAsk, readOrder } from '../../store/orders.ts'
import { closeRun, finishRun, type Run, readRun } from '../../store/runs.ts'
import { deadlineFor } from '../saga/provider-calls.ts'
import { drive } from '../saga/recovery.ts'
import { endHold } from './hold.ts'

interface FinalizeRequest {
  tenantId: string
  runId: string
  requestId: string
}

/** Resolves with the run, finished unless the provider's word is in doubt; then a worker goes on. Throws `not_found`. */
export function finalizeRun(deps: Deps, request: FinalizeRequest): Promise<Run> {
  return endRun(deps, request.tenantId, orderIdOf(request.runId), {
    closing: 'finalize',
    actor: request.requestId,
    background: false,
  })
}

interface RunEndedBy {
  /** Why it ends, where nobody has ended it before. */
  closing: RunClosing
  /** The request or worker run. */
  actor: string
  /** Yields to customers' calls. */
  background: boolean
}

/** Ends the run, or goes on with its end. */
export async function endRun(deps: Deps, tenantId: string, orderId: string, by: RunEndedBy): Promise<Run> {
  if ((await readRun(deps.db, tenantId, orderId)) === null) throw new Problem('not_found')
  const isFirst = await closeRun(deps.db, tenantId, orderId, by.closing, deps.config.reconcileAfterMs)
  await checkpoint('run.closed')

  const run = (await readRun(deps.db, tenantId, orderId)) as Run
  const order = isOpen(run.order.status)
    ? await giveUpHold(deps, run.order, by, isFirst)
    : run.order.status === 'authorized'
      ? await endItsHold(deps, run, by)
      : run.order
  await checkpoint('run.hold_ended')
  if (isOpen(order.status) || order.status === 'authorized') return { ...run, order }

  const missing = usedAmount(run.usage) - order.captured
  const unbilled = missing > 0 ? [transfer('unbilled', runIdOf(orderId), missing, order.currency)] : []
  await finishRun(deps.db, order, unbilled)
  await checkpoint('run.finished')
  return { ...run, order, finished: true }
}

async function endItsHold(deps: Deps, { order, usage, closedBy }: Run, by: RunEndedBy): Promise<Order> {
  const { tenant_id: tenantId, order_id: orderId } = order
  const amount = amountToCapture(usedAmount(usage), order.total, currency(order.currency)?.step ?? 1)
  try {
    return await endHold(
      deps,
      { tenantId, orderId, ...(amount > 0 ? { action: 'capture', amount } : { action: 'cancel' }) },
      {
        cause: closedBy === 'expiry' ? 'expiry' : 'merchant',
        actor: by.actor,
        background: by.background,
      },
    )
  } catch (error) {
    // It has ended otherwise: lapsed, or captured or canceled by hand at the provider. That stands.
    const otherwise =
      error instanceof Problem && (error.code === 'hold_already_ending' || error.code === 'order_state_conflict')
    if (!otherwise) throw error
    return (await readOrder(deps.db, tenantId, orderId)) as Order
  }
}

/** The hold is not placed yet, and nothing can have been used: close its payment before it is. */
async function giveUpHold(deps: Deps, order: Order, by: RunEndedBy, isFirst: boolean): Promise<Order> {
  const asked = await claimAsk(deps.pool, order.tenant_id, order.order_id, deps.config.reconcileAfterMs, isFirst)
  if (asked === null) return (await readOrder(deps.db, order.tenant_id, order.order_id)) as Order
  const { order: now } = await drive(deps, asked, {
    cause: by.closing === 'expiry' ? 'expiry' : 'merchant',
    actor: by.actor,
    sendUntil: new Date(0),
    maySendUnsent: false,
    deadline: { ...deadlineFor(deps, performance.now()), background: by.background },
  })
  return now
}
