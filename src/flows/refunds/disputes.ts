/** Disputes as the provider tells of them: the budget from the opening on, the ledger when the money moves. */
import type { Deps } from '../../deps.ts'
import { type Dispute, disputeAfter } from '../../domain/dispute.ts'
import type { Order } from '../../domain/order.ts'
import { type Transfer, transfer } from '../../domain/posting.ts'
import type { ProviderDispute } from '../../provider/port.ts'
import { checkpoint } from '../../runtime/checkpoint.ts'
import { changeDispute, type DisputeStep } from '../../store/disputes.ts'
import { recordCalls } from '../../store/orders.ts'
import { ask, deadlineFor, targetOf } from '../saga/provider-calls.ts'
import { stillConfigured } from '../saga/provider-target.ts'
import { type NewsResult, onceCaptured } from './provider-refunds.ts'

/**
 * Reads every dispute of the order's payment and applies each. A notification only says that there is news: what a dispute
 * has come to, and whether its money has moved, is asked, so neither its kind nor its age means anything. `actor`: the
 * event, request or operator.
 */
export async function readProviderDisputes(deps: Deps, before: Order, actor: string): Promise<NewsResult> {
  const order = await onceCaptured(deps, before, actor)
  const { intent_id } = order
  if (order.status !== 'paid' || intent_id === null) return order.status === 'authorized' ? 'unanswered' : 'nothing_new'
  if ((await stillConfigured(deps, order)) !== true) return 'unanswered'
  const { outcome, calls } = await ask(deps, deadlineFor(deps, performance.now()), (limits) =>
    deps.provider.listDisputes(targetOf(order), intent_id, limits),
  )
  await recordCalls(deps.db, order.tenant_id, order.order_id, calls)
  if (outcome.kind !== 'listed') return 'unanswered'
  await checkpoint('disputes.listed')
  let result: NewsResult = 'nothing_new'
  for (const dispute of outcome.items) {
    const applied = await applyDispute(deps, order, dispute)
    if (applied === 'mismatch') return 'mismatch'
    if (applied === 'applied') result = 'applied'
  }
  return result
}

/** Applies what the provider says of a dispute of a paid order, any number of times; an older word changes nothing. */
export async function applyDispute(
  deps: Deps,
  order: Order,
  dispute: ProviderDispute,
): Promise<Exclude<NewsResult, 'unanswered'>> {
  const { disputeId, amount, currency } = dispute
  if (currency !== order.currency || amount <= 0) return 'mismatch'
  await checkpoint('dispute.applying')
  const result = await changeDispute(deps.db, order, disputeId, stepFor(order, dispute))
  await checkpoint('dispute.applied')
  return result
}

function stepFor(order: Order, { disputeId, ...word }: ProviderDispute): DisputeStep {
  return (before) => {
    const state = disputeAfter(before, word)
    // An inquiry can become a dispute over another amount, but an old word must not bring back an old amount.
    const amount = before === null || state.status !== before.status ? word.amount : before.amount
    const isNew =
      before === null ||
      before.status !== state.status ||
      before.withdrawn !== state.withdrawn ||
      before.reinstated !== state.reinstated
    if (!isNew) return null
    const after = { ...state, amount, currency: order.currency }
    return { after, transfers: transfersFor(before, after, disputeId), jobs: jobsFor(order, before, after, disputeId) }
  }
}

type After = ReturnType<typeof disputeAfter> & Pick<Dispute, 'amount' | 'currency'>

function transfersFor(before: Dispute | null, after: After, disputeId: string): Transfer[] {
  const { amount, currency } = after
  return [
    ...(after.withdrawn && !before?.withdrawn ? [transfer('dispute_withdrawn', disputeId, amount, currency)] : []),
    ...(after.reinstated && !before?.reinstated ? [transfer('dispute_reinstated', disputeId, amount, currency)] : []),
  ]
}

/** The merchant has to answer it in time; told once, when it opens as more than an inquiry. */
function jobsFor({ order_id }: Order, before: Dispute | null, after: After, disputeId: string) {
  if (!after.counts || before?.counts) return []
  return [
    {
      topic: 'order_news',
      business_id: `${order_id}:disputed:${disputeId}`,
      payload: { order_id, status: 'disputed', dispute_id: disputeId },
    },
  ]
}
