/** Money given back: a refund's states, and how the API shows it. */

/** `unsent`: surely never reached the provider. `pending`: in doubt, or on its way. */
export type RefundStatus = 'unsent' | 'pending' | 'succeeded' | 'failed'

/** A row of `refunds`; the migration says what each column means. Amounts in minor units. */
export interface Refund {
  tenant_id: string
  refund_id: string
  order_id: string
  attempt_key: string | null
  amount: number
  currency: string
  reason: string | null
  status: RefundStatus
  provider_refund_id: string | null
  failure_code: string | null
  maybe_sent: boolean
  send_is_pointless: boolean
  last_send_before: Date
  doubt: string | null
  next_ask_at: Date
  asks: number
  created_at: Date
  updated_at: Date
}

/**
 * Whether news can move a refund. A refund that has succeeded can still fail at the bank, never the other way round
 * (https://docs.stripe.com/refunds#failed-refunds); so the order in which news arrives does not matter. One that was given
 * up without a trace at the provider may turn up there after all.
 */
export function mayBecome(refund: Pick<Refund, 'status' | 'provider_refund_id'>, to: RefundStatus): boolean {
  switch (refund.status) {
    case 'pending':
      return true
    case 'succeeded':
      return to === 'failed'
    case 'failed':
    case 'unsent':
      return refund.provider_refund_id === null && (to === 'pending' || to === 'succeeded')
  }
}

/** What can still be given back of an order, minor units. */
export function refundable(order: { captured: number; refunded: number; disputed_amount: number }): number {
  return order.captured - order.refunded - order.disputed_amount
}

/**
 * A payment's refunds at the provider, without the entry that stands for what a capture in part let go of a hold: no money
 * went back with that. It can be told by its amount and by being the oldest, where the list says more than the payment.
 * Null where the two were read at different times and do not fit.
 *
 * `released`: what was held and not captured. `refunded`: what went back of the payment, in minor units both.
 */
export function withoutRelease<
  Item extends { amount: number; status: string; createdAt: Date; metadata: { refund?: string } },
>(items: readonly Item[], released: number, refunded: number): Item[] | null {
  const listed = items.reduce((sum, { amount, status }) => (status === 'failed' ? sum : sum + amount), 0)
  if (listed === refunded) return [...items]
  if (listed - refunded !== released) return null
  const [release] = items.filter((item) => couldBeRelease(item, released)).sort((a, b) => +a.createdAt - +b.createdAt)
  return items.filter((item) => item !== release)
}

/** Whether it could stand for what was let go of a hold. */
export function couldBeRelease(
  { amount, status, metadata }: { amount: number; status: string; metadata: { refund?: string } },
  released: number,
): boolean {
  return amount === released && status !== 'failed' && metadata.refund === undefined
}

interface RefundView {
  id: string
  object: 'refund'
  order_id: string
  amount: number
  currency: string
  status: 'succeeded' | 'pending' | 'failed'
  reason: string | null
  /** Of a failed one: the provider's code, where it gave one. */
  failure_code?: string
  created_at: string
}

export function refundView(refund: Refund): RefundView {
  return {
    id: refund.refund_id,
    object: 'refund',
    order_id: refund.order_id,
    amount: refund.amount,
    currency: refund.currency,
    status: refund.status === 'unsent' ? 'pending' : refund.status,
    reason: refund.reason,
    ...(refund.status === 'failed' && refund.failure_code !== null ? { failure_code: refund.failure_code } : {}),
    created_at: refund.created_at.toISOString(),
  }
}
