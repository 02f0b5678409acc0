/** Disputes as the provider tells of them. */
import type { Deps } from '../deps.ts'
import type { Order } from '../domain/order.ts'
import type { ProviderEvent } from '../provider/port.ts'
import type { NewsResult } from './provider-refunds.ts'

/** What a notification about a dispute says. */
export type DisputeNews = Pick<ProviderEvent, 'id' | 'type' | 'disputeId' | 'status' | 'amount' | 'currency'>

/** Applies news of a dispute (`charge.dispute.created`, `.updated`, `.funds_withdrawn`, `.funds_reinstated`, `.closed`), in
 * any order and any number of times. */
export async function applyDispute(_deps: Deps, _order: Order, _news: DisputeNews): Promise<NewsResult> {
  throw new Error('disputes cannot be applied yet')
}
