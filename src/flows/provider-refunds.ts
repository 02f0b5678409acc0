/** Refunds as the provider tells of them: by notification, or read from its list. */
import type { Deps } from '../deps.ts'
import type { Order } from '../domain/order.ts'
import type { ProviderEvent } from '../provider/port.ts'

/** What a notification about one refund says. */
export type RefundNews = Pick<ProviderEvent, 'id' | 'refundId' | 'status' | 'amount' | 'currency'>

/**
 * What news came to. `nothing_new`: known, stale, or of no effect. `mismatch`: cannot be about this order; nothing was
 * done. `unanswered`: the provider had to be asked and did not answer; try again later.
 */
export type NewsResult = 'applied' | 'nothing_new' | 'mismatch' | 'unanswered'

/**
 * Applies news of one refund (`refund.created`, `.updated`, `.failed`, `charge.refund.updated`), in any order and any
 * number of times. News about a refund that we cannot tell for sure makes us read the payment's refunds.
 */
export async function applyProviderRefund(deps: Deps, order: Order, news: RefundNews): Promise<NewsResult> {
  return readProviderRefunds(deps, order, news.id)
}

/** Reads every refund of the order's payment and applies each: for `charge.refunded`, which does not name them. */
export async function readProviderRefunds(_deps: Deps, _order: Order, _actor: string): Promise<NewsResult> {
  throw new Error('refunds cannot be read yet')
}
