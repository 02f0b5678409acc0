/**
 * Refunds as the provider tells of them, by notification or in its list: ours, whose answer may have been lost, and those
 * made in its dashboard. Each real refund is one row here, bound to the provider's id.
 */
import type { Deps } from '../../deps.ts'
import { newId } from '../../domain/ids.ts'
import type { Order } from '../../domain/order.ts'
import { couldBeRelease, type Refund, withoutRelease } from '../../domain/refund.ts'
import type { ProviderEvent, ProviderRefund } from '../../provider/port.ts'
import { checkpoint } from '../../runtime/checkpoint.ts'
import { recordCalls } from '../../store/orders.ts'
import { adoptRefund } from '../../store/refund-changes.ts'
import { readBoundRefund, readRefund } from '../../store/refunds.ts'
import { lookAtHold } from '../holds/hold-driving.ts'
import { ask, deadlineFor, targetOf } from '../saga/provider-calls.ts'
import { stillConfigured } from '../saga/provider-target.ts'
import { followAdopted, settleRefund } from './refund-settlement.ts'

/** What a notification about one refund says. */
type RefundNews = Pick<ProviderEvent, 'id' | 'refundId' | 'status' | 'amount' | 'currency'>

/**
 * What news came to. `nothing_new`: known, stale, or of no effect. `mismatch`: cannot be about this order; nothing was
 * done. `unanswered`: the provider had to be asked and did not answer; try again later.
 */
export type NewsResult = 'applied' | 'nothing_new' | 'mismatch' | 'unanswered'

/**
 * Applies news of one refund (`refund.created`, `.updated`, `.failed`, `charge.refund.updated`), in any order and any
 * number of times. That a refund which we know has failed is taken at its word, for it stays so. One that had succeeded
 * may have failed since, so for everything else the payment's refunds are read.
 */
export async function applyProviderRefund(deps: Deps, order: Order, news: RefundNews): Promise<NewsResult> {
  if (wasNeverPaid(order)) return 'nothing_new'
  const known = news.refundId === null ? null : await readBoundRefund(deps.db, order.tenant_id, news.refundId)
  if (known === null || news.status !== 'failed') return readProviderRefunds(deps, order, news.id)
  const fits = known.order_id === order.order_id && known.amount === news.amount && known.currency === news.currency
  if (!fits) return 'mismatch'
  return (await settleKnown(deps, known, { ...boundTo(known), status: 'failed' })) ? 'applied' : 'nothing_new'
}

/** Reads every refund of the order's payment and applies each: for `charge.refunded`, which does not name them. `actor`:
 * the event, request or operator. */
export async function readProviderRefunds(deps: Deps, before: Order, actor: string): Promise<NewsResult> {
  const order = await onceCaptured(deps, before, actor)
  if (wasNeverPaid(order)) return 'nothing_new'
  const { intent_id } = order
  if (order.status !== 'paid' || intent_id === null) return 'unanswered'
  if ((await stillConfigured(deps, order)) !== true) return 'unanswered'
  const { outcome, calls } = await ask(deps, deadlineFor(deps, performance.now()), (limits) =>
    deps.provider.listRefunds(targetOf(order), intent_id, limits),
  )
  await recordCalls(deps.db, order.tenant_id, order.order_id, calls)
  const refunds = outcome.kind === 'listed' ? await realRefunds(deps, order, intent_id, outcome.items) : null
  if (refunds === null) return 'unanswered'
  await checkpoint('provider_refunds.listed')
  let result: NewsResult = 'nothing_new'
  for (const refund of refunds) {
    if (refund.currency !== order.currency) {
      deps.log.error({ tenant_id: order.tenant_id, order_id: order.order_id, actor }, 'a refund has another currency')
      return 'mismatch'
    }
    if (await applyListed(deps, order, refund)) result = 'applied'
  }
  return result
}

/** Money only goes back of what was captured: news of it tells that a hold has ended, where nobody has told us yet. */
export async function onceCaptured(deps: Deps, order: Order, actor: string): Promise<Order> {
  if (order.status !== 'authorized') return order
  return lookAtHold(deps, order, { cause: 'notification', actor, deadline: deadlineFor(deps, performance.now()) })
}

/** Without what a capture in part let go of the hold, which Stripe lists as a refund too. Null where the provider did not
 * answer. */
async function realRefunds(
  deps: Deps,
  order: Order,
  intentId: string,
  items: readonly ProviderRefund[],
): Promise<readonly ProviderRefund[] | null> {
  const released = order.total - order.captured
  if (released === 0 || !items.some((item) => couldBeRelease(item, released))) return items
  const { outcome, calls } = await ask(deps, deadlineFor(deps, performance.now()), (limits) =>
    deps.provider.retrieve(targetOf(order), intentId, limits),
  )
  await recordCalls(deps.db, order.tenant_id, order.order_id, calls)
  return outcome.kind === 'succeeded' ? withoutRelease(items, released, outcome.payment.amountRefunded) : null
}

/** Whether it was news. */
async function applyListed(deps: Deps, order: Order, refund: ProviderRefund): Promise<boolean> {
  const known = (await readBoundRefund(deps.db, order.tenant_id, refund.refundId)) ?? (await ours(deps, order, refund))
  if (known !== null) return settleKnown(deps, known, refund)
  const found = {
    refund_id: newId('ref'),
    provider_refund_id: refund.refundId,
    amount: refund.amount,
    currency: refund.currency,
    status: refund.status,
    created_at: refund.createdAt,
  }
  const adopted = await adoptRefund(deps.db, order, found, deps.config.reconcileAfterMs, followAdopted)
  await checkpoint('provider_refunds.adopted')
  return adopted !== null
}

/** The row of ours that the refund names and that does not know yet which one it is. */
async function ours(deps: Deps, order: Order, { metadata }: ProviderRefund): Promise<Refund | null> {
  if (metadata.refund === undefined || metadata.tenant !== order.tenant_id) return null
  const row = await readRefund(deps.db, order.tenant_id, metadata.refund)
  return row?.order_id === order.order_id && row.provider_refund_id === null ? row : null
}

async function settleKnown(deps: Deps, known: Refund, refund: ProviderRefund): Promise<boolean> {
  const isNew = known.provider_refund_id === null || known.status !== refund.status
  if (!isNew) return false
  return (await settleRefund(deps, known, { kind: refund.status, refund }, { calls: [] })).applied
}

/** A bound row, as the provider would list it. */
function boundTo(row: Refund): Omit<ProviderRefund, 'status'> {
  return {
    refundId: row.provider_refund_id ?? '',
    intentId: null,
    amount: row.amount,
    currency: row.currency,
    createdAt: row.created_at,
    metadata: {},
  }
}

/** Late money that goes back is kept apart: it never was this order's. */
function wasNeverPaid({ status }: Order): boolean {
  return status === 'payment_failed' || status === 'canceled'
}
