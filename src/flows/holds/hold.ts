/**
 * The end of a hold: captured or canceled, once per order.
 *
 *   decide   how it ends, under the order's row lock; a second, different ending is refused
 *   ask      the provider, which allows one ending of a hold
 *   settle   the order, as every provider's word does
 *
 * What dies in between, or stays in doubt, is gone on with by a repeat or by the worker.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Deps } from '../../deps.ts'
import type { Order } from '../../domain/order.ts'
import { Problem } from '../../domain/problem.ts'
import { checkpoint } from '../../runtime/checkpoint.ts'
import { claimEndingAsk, decideEnding, type HoldEnding as Ending, readEnding } from '../../store/holds.ts'
import { readOrder } from '../../store/orders.ts'
import { deadlineFor } from '../saga/provider-calls.ts'
import { refuseOffStep } from '../saga/refusals.ts'
import { driveEnding, type HoldDrive } from './hold-driving.ts'

export interface HoldEnding {
  tenantId: string
  orderId: string
  action: 'capture' | 'cancel'
  /** Minor units to capture; the whole hold where it is not given, and 0 cancels. */
  amount?: number
}

interface EndedBy {
  cause: 'merchant' | 'expiry' | 'operator'
  /** The request, worker run or operator. */
  actor: string
  /** Yields to customers' calls. */
  background: boolean
}

type Wanted = Pick<Ending, 'action' | 'amount'>

/** How often a repeat looks whether the first request has ended the hold: seldom enough for a crowd of them. */
const lookAgainMs = 100

/**
 * Ends the hold, or goes on with the same ending. Resolves with the order: `paid` or `canceled` as asked, or still
 * `authorized` where the provider's word is in doubt; then a worker goes on asking. Throws a `Problem`: `not_found`,
 * `invalid_request` (more than is held), `amount_not_chargeable` (off the currency's step), `order_state_conflict` (no
 * hold), `hold_already_ending` (ended or ending otherwise, also at the provider).
 */
export async function endHold(deps: Deps, asked: HoldEnding, by: EndedBy): Promise<Order> {
  const startedMs = performance.now()
  const before = await readOrder(deps.db, asked.tenantId, asked.orderId)
  if (before === null) throw new Problem('not_found')
  const wanted = wantedEnding(asked, before)
  const decided = await decideEnding(deps.db, before, wanted, deps.config.leaseMs)
  if (decided.kind === 'no_hold') return endedAlready(decided.order, wanted)
  if (!isSame(decided.ending, wanted)) throw endingOtherwise(decided.order, decided.ending)
  await checkpoint('hold.decided')
  const drive: HoldDrive = {
    cause: by.cause,
    actor: by.actor,
    deadline: { ...deadlineFor(deps, startedMs), background: by.background },
  }
  const order =
    decided.kind === 'decided'
      ? await driveEnding(deps, decided.order, decided.ending, drive)
      : await goOn(deps, decided.order, decided.ending, drive)
  if (order.status === 'authorized') return order
  return endedAs(order, wanted) ? order : refuseEnded(order)
}

function wantedEnding({ action, amount }: HoldEnding, order: Order): Wanted {
  if (action === 'cancel' || amount === 0) return { action: 'cancel', amount: 0 }
  const capture = amount ?? order.total
  if (capture > order.total) {
    throw new Problem('invalid_request', {
      detail: `At most the ${order.total} ${order.currency} (in minor units) on hold can be captured.`,
      members: { capturable: order.total },
    })
  }
  refuseOffStep(order.currency, capture, 'captured')
  return { action: 'capture', amount: capture }
}

/** The same ending was asked for before: wait for whoever is at it, or ask the provider again when it is time for that. */
async function goOn(deps: Deps, order: Order, ending: Ending, drive: HoldDrive): Promise<Order> {
  if (order.status !== 'authorized') return order
  const asked = await claimEndingAsk(deps.db, ending, deps.config.reconcileAfterMs)
  if (asked !== null) return driveEnding(deps, order, asked, drive)
  const untilMs = performance.now() + deps.config.idempotencyWaitMs
  let isRunning = ending.doubt === null && !drive.deadline.background
  while (isRunning && performance.now() < untilMs) {
    await delay(lookAgainMs)
    const now = await readEnding(deps.db, order.tenant_id, order.order_id)
    isRunning = now !== null && now.doubt === null && now.ended_at === null && now.next_ask_at > new Date()
  }
  return (await readOrder(deps.db, order.tenant_id, order.order_id)) ?? order
}

function isSame(one: Wanted, other: Wanted): boolean {
  return one.action === other.action && one.amount === other.amount
}

/** Whether the order has ended as wanted, whoever brought that about. */
function endedAs(order: Order, wanted: Wanted): boolean {
  return wanted.action === 'capture'
    ? order.status === 'paid' && order.captured === wanted.amount
    : order.status === 'canceled'
}

/** Nobody here has ended a hold of this order: there was none, or it has ended at the provider. */
function endedAlready(order: Order, wanted: Wanted): Order {
  if (order.capture === 'manual' && (order.status === 'paid' || order.status === 'canceled')) {
    return endedAs(order, wanted) ? order : refuseEnded(order)
  }
  throw new Problem('order_state_conflict', {
    detail: `The order is ${order.status}: there is no hold to end.`,
    members: { order_status: order.status },
  })
}

function refuseEnded(order: Order): never {
  throw new Problem('hold_already_ending', {
    detail: `The hold has ended otherwise: the order is ${order.status}.`,
    members: { order_status: order.status, captured: order.captured },
  })
}

function endingOtherwise(order: Order, { action, amount }: Ending): Problem {
  return new Problem('hold_already_ending', {
    detail:
      action === 'capture'
        ? `The hold is being ended or has ended by capturing ${amount} ${order.currency} (in minor units).`
        : 'The hold is being ended or has ended by canceling it.',
    members: { ending: { action, amount }, order_status: order.status },
  })
}
