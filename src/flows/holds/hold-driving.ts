/** Asks the provider to end a hold as decided, or what has become of it. The request, its repeats and the worker use this. */
import type { Deps } from '../../deps.ts'
import type { Order } from '../../domain/order.ts'
import type { CallLimits, CallResult, PaymentOutcome, ProviderCall } from '../../provider/port.ts'
import { checkpoint } from '../../runtime/checkpoint.ts'
import { closeEnding, type HoldEnding, leaveEnding } from '../../store/holds.ts'
import { type Cause, readOrder, recordCalls, recordFacts } from '../../store/orders.ts'
import { ask, type Deadline, send, targetOf } from '../saga/provider-calls.ts'
import { stillConfigured } from '../saga/provider-target.ts'
import { settle } from '../saga/settlement.ts'

export interface HoldDrive {
  cause: Cause
  /** The request, worker run or operator. */
  actor: string
  deadline: Deadline
}

/** Those that do not go away by asking again: a person has to look. */
const forAPerson = ['provider_rejected', 'provider_account_changed']

/** One attempt at the ending; resolves with the order as it stands then. Its state at the provider allows an ending once,
 * so that asking again, also by two at once, is harmless. */
export async function driveEnding(deps: Deps, order: Order, ending: HoldEnding, by: HoldDrive): Promise<Order> {
  if (order.status !== 'authorized') {
    await closeEnding(deps.db, ending)
    return order
  }
  const configured = await stillConfigured(deps, order)
  if (configured === null) return stay(deps, order, ending, 'not_reached', [])
  if (!configured) return stay(deps, order, ending, 'provider_account_changed', [])
  await checkpoint('hold.ending')
  const { outcome, calls } = await send(deps, by.deadline, callFor(deps, order, ending))
  await checkpoint('hold.asked')
  const reason = doubtIn(outcome)
  if (reason !== null) return stay(deps, order, ending, reason, calls)
  const now = await settleEnded(deps, order, outcome, calls, by)
  if (now.status === 'authorized') return stay(deps, now, ending, 'payment_mismatch', [])
  await checkpoint('hold.ended')
  await closeEnding(deps.db, ending)
  return now
}

/** Asks what has become of a hold and settles its end, if it has ended. Resolves with the order as it stands then. */
export async function lookAtHold(deps: Deps, order: Order, by: HoldDrive): Promise<Order> {
  const { intent_id } = order
  if (order.status !== 'authorized' || intent_id === null) return order
  if ((await stillConfigured(deps, order)) !== true) return order
  const { outcome, calls } = await ask(deps, by.deadline, (limits) =>
    deps.provider.retrieve(targetOf(order), intent_id, limits),
  )
  if (doubtIn(outcome) === null) return settleEnded(deps, order, outcome, calls, by)
  await recordCalls(deps.db, order.tenant_id, order.order_id, calls)
  return order
}

function callFor(
  deps: Deps,
  order: Order,
  ending: HoldEnding,
): (limits: CallLimits) => Promise<CallResult<PaymentOutcome>> {
  const { intent_id: intentId, currency, order_id } = order
  if (intentId === null) throw new Error(`authorized order ${order_id} without a payment`)
  const target = targetOf(order)
  // Another key for each ask: a failure that the provider keeps under one would be replayed for good, while the hold
  // itself ends once.
  const providerKey = `${ending.action}:${order_id}:${ending.asks}`
  if (ending.action === 'cancel') return (limits) => deps.provider.cancel(target, intentId, providerKey, limits)
  const request = { target, intentId, amount: ending.amount, currency, providerKey }
  return (limits) => deps.provider.capture(request, limits)
}

/** Why the hold has not surely ended; null where it has. */
function doubtIn(outcome: PaymentOutcome): string | null {
  switch (outcome.kind) {
    case 'succeeded':
    case 'canceled':
      return null
    case 'unknown':
      return outcome.reason
    case 'not_sent':
      return 'not_reached'
    case 'absent':
      return 'payment_not_found'
    default:
      return 'hold_not_ended'
  }
}

async function settleEnded(
  deps: Deps,
  order: Order,
  outcome: PaymentOutcome,
  calls: readonly ProviderCall[],
  { cause, actor }: HoldDrive,
): Promise<Order> {
  if (outcome.kind !== 'succeeded' && outcome.kind !== 'canceled') return order
  return (await settle(deps, order, outcome, { cause, actor, calls })).order
}

async function stay(
  deps: Deps,
  order: Order,
  ending: HoldEnding,
  reason: string,
  calls: readonly ProviderCall[],
): Promise<Order> {
  await recordCalls(deps.db, order.tenant_id, order.order_id, calls)
  await leaveEnding(deps.db, ending, reason, deps.config.reconcileAfterMs)
  await checkpoint('hold.left_in_doubt')
  if (forAPerson.includes(reason)) {
    await recordFacts(deps.db, order, { transfers: [], jobs: [], reconcileReason: reason })
  }
  return (await readOrder(deps.db, order.tenant_id, order.order_id)) ?? order
}
