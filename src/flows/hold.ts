/** The end of a hold: captured or canceled, once per order. */
import type { Deps } from '../deps.ts'
import type { Order } from '../domain/order.ts'

export interface HoldEnding {
  tenantId: string
  orderId: string
  action: 'capture' | 'cancel'
  /** Minor units to capture; the whole hold where it is not given, and 0 cancels. */
  amount?: number
}

export interface EndedBy {
  cause: 'merchant' | 'expiry' | 'operator'
  /** The request, worker run or operator. */
  actor: string
  traceparent?: string
  /** Yields to customers' calls. */
  background: boolean
}

/**
 * Ends the hold, or goes on with the same ending. Resolves with the order: `paid` or `canceled` as asked, or still
 * `authorized` where the provider's word is in doubt; then a worker goes on asking. Throws a `Problem`: `not_found`,
 * `invalid_request`, `order_state_conflict` (no hold), `hold_already_ending` (ended or ending otherwise, also at the provider).
 */
export async function endHold(_deps: Deps, _ending: HoldEnding, _by: EndedBy): Promise<Order> {
  throw new Error('holds cannot be ended yet')
}
