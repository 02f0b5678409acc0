/** Metered work: usage is recorded against a hold, which is captured once at the end. */
import type { Order } from './order.ts'

/** A run is an order of the kind `run`: their ids differ in the prefix only, so that either names the other. */
export function runIdOf(orderId: string): string {
  return orderId.replace(/^ord_/, 'run_')
}

/** The order of a run; of anything else, an id that no order has. */
export function orderIdOf(runId: string): string {
  return runId.startsWith('run_') ? `ord_${runId.slice('run_'.length)}` : ''
}

/** Who said that no more usage comes. */
export type RunClosing = 'finalize' | 'expiry'

export interface UsageLine {
  meter_type: string
  quantity: number
  /** Minor units, rounded half up once, when it was recorded. */
  amount: number
}

/** A run's state in one word: what has become of its order, and whether it still takes usage. */
type RunStatus =
  /** The hold is not placed yet: the provider has the word. */
  | 'pending'
  /** The hold is placed, usage is taken. */
  | 'active'
  /** Usage is no longer taken; the provider has not yet captured or let go. */
  | 'finalizing'
  /** Captured, or let go where nothing was used. */
  | 'finalized'
  /** The same, as nobody finalized it in time. */
  | 'expired'
  /** The hold was declined. */
  | 'failed'
  /** The hold ended without the run: it never arrived, lapsed at the provider, or was canceled there. */
  | 'canceled'

export function runStatus(order: Order, closedBy: RunClosing | null): RunStatus {
  switch (order.status) {
    case 'payment_failed':
      return 'failed'
    case 'paid':
      return closedBy === 'expiry' ? 'expired' : 'finalized'
    case 'canceled':
      return closedBy === null ? 'canceled' : closedBy === 'expiry' ? 'expired' : 'finalized'
    case 'authorized':
      return closedBy === null ? 'active' : 'finalizing'
    default:
      return closedBy === null ? 'pending' : 'finalizing'
  }
}

interface RunView {
  id: string
  object: 'run'
  status: RunStatus
  order_id: string
  currency: string
  /** Minor units, like all amounts. */
  hold_amount: number
  used_amount: number
  captured: number
  usage: { meter_type: string; quantity: number; amount: number }[]
  created_at: string
}

/** The run as the API shows it. Without `recorded`, as it is when its hold has just been placed or refused. */
export function runView(
  order: Order,
  recorded: { closedBy: RunClosing | null; usage: readonly UsageLine[] } = { closedBy: null, usage: [] },
): RunView {
  return {
    id: runIdOf(order.order_id),
    object: 'run',
    status: runStatus(order, recorded.closedBy),
    order_id: order.order_id,
    currency: order.currency,
    hold_amount: order.total,
    used_amount: usedAmount(recorded.usage),
    captured: order.captured,
    usage: recorded.usage.map(({ meter_type, quantity, amount }) => ({ meter_type, quantity, amount })),
    created_at: order.created_at.toISOString(),
  }
}

/** Minor units. Each line was rounded by itself when it was recorded; nothing is rounded here. */
export function usedAmount(usage: readonly UsageLine[]): number {
  return usage.reduce((sum, line) => sum + line.amount, 0)
}

/**
 * What is captured of a hold, minor units: what was used, at most the hold. Where the provider takes only multiples of
 * a step (`step` of the currency), the part below it is left to the customer.
 */
export function amountToCapture(used: number, hold: number, step: number): number {
  const most = Math.min(used, hold)
  return most - (most % step)
}
