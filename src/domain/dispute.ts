/** Money that a customer's bank takes back: what is known of a dispute, put together from news in any order. */

/** A row of `disputes`; the migration says what each column means. Amounts in minor units. */
export interface Dispute {
  tenant_id: string
  dispute_id: string
  order_id: string
  amount: number
  currency: string
  status: string
  withdrawn: boolean
  reinstated: boolean
  counts: boolean
  created_at: Date
  updated_at: Date
}

export type DisputeState = Pick<Dispute, 'status' | 'withdrawn' | 'reinstated' | 'counts'>

/** https://docs.stripe.com/api/disputes/object, in the order in which a dispute passes through them: an inquiry
 * (`warning_…`) can become a dispute, and one that was lost can still be won. */
const course = [
  'prevented',
  'warning_needs_response',
  'warning_under_review',
  'warning_closed',
  'needs_response',
  'under_review',
  'lost',
  'won',
]

/** The state after one more piece of news; `before` is null for the first. News that is old or known changes nothing. */
export function disputeAfter(
  before: DisputeState | null,
  news: { status: string; moved: 'withdrawn' | 'reinstated' | null },
): DisputeState {
  const status = before !== null && rank(before.status) > rank(news.status) ? before.status : news.status
  // What comes back was taken before, and a dispute is lost with the money; the news of it may be late or lost.
  const withdrawn = before?.withdrawn === true || news.moved !== null || status === 'lost'
  const reinstated = before?.reinstated === true || news.moved === 'reinstated' || (withdrawn && status === 'won')
  const opened = withdrawn || rank(status) >= rank('needs_response')
  const counts = opened && status !== 'won' && !reinstated
  return { status, withdrawn, reinstated, counts }
}

/** A word that the provider has added since counts as an open dispute. */
function rank(status: string): number {
  const place = course.indexOf(status)
  return place === -1 ? course.indexOf('needs_response') : place
}
