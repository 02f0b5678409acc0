/** Disputes as the provider tells of them: the budget from the opening on, the ledger when the money moves. */
import type { Deps } from '../deps.ts'
import { type Dispute, disputeAfter } from '../domain/dispute.ts'
import type { Order } from '../domain/order.ts'
import { type Transfer, transfer } from '../domain/posting.ts'
import type { ProviderEvent } from '../provider/port.ts'
import { checkpoint } from '../runtime/checkpoint.ts'
import { changeDispute, type DisputeStep } from '../store/disputes.ts'
import { type NewsResult, onceCaptured } from './provider-refunds.ts'

/** What a notification about a dispute says. */
export type DisputeNews = Pick<ProviderEvent, 'id' | 'type' | 'disputeId' | 'status' | 'amount' | 'currency'>

/**
 * Applies news of a dispute (`charge.dispute.created`, `.updated`, `.funds_withdrawn`, `.funds_reinstated`, `.closed`), in
 * any order and any number of times. It is taken at its word: the provider tells of disputes in no other way that we use.
 */
export async function applyDispute(deps: Deps, before: Order, news: DisputeNews): Promise<NewsResult> {
  const { disputeId, status, amount, currency } = news
  if (disputeId === null || status === null || amount === null || amount <= 0) return 'mismatch'
  if (currency !== before.currency) return 'mismatch'
  const order = await onceCaptured(deps, before, news.id)
  if (order.status === 'authorized') return 'unanswered'
  await checkpoint('dispute.applying')
  const result = await changeDispute(deps.db, order, disputeId, stepFor(order, disputeId, { ...news, status, amount }))
  await checkpoint('dispute.applied')
  return result
}

function stepFor(order: Order, disputeId: string, news: DisputeNews & { status: string; amount: number }): DisputeStep {
  return (before) => {
    const state = disputeAfter(before, { status: news.status, moved: movedBy(news.type) })
    // An inquiry can become a dispute over another amount, but old news must not bring back an old amount.
    const amount = before === null || state.status !== before.status ? news.amount : before.amount
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

function movedBy(type: string): 'withdrawn' | 'reinstated' | null {
  switch (type) {
    case 'charge.dispute.funds_withdrawn':
      return 'withdrawn'
    case 'charge.dispute.funds_reinstated':
      return 'reinstated'
    default:
      return null
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
