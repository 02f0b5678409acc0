/** The order as the API shows it. */
import type { Order } from './order.ts'

export const shownStatuses = [
  'pending',
  'requires_action',
  'needs_reconcile',
  'authorized',
  'paid',
  'partially_refunded',
  'refunded',
  'payment_failed',
  'canceled',
] as const
type ShownStatus = (typeof shownStatuses)[number]

/** Refunds are shown as a status but are no state: the sum of the refunds that have not failed decides. */
function shownStatus(order: Order): ShownStatus {
  if (order.status !== 'paid' || order.refunded === 0) return order.status
  return order.refunded >= order.captured ? 'refunded' : 'partially_refunded'
}

interface OrderView {
  id: string
  object: 'order'
  status: ShownStatus
  currency: string
  total: number
  captured: number
  refunded: number
  disputed: boolean
  lines: Order['lines']
  customer_id: string
  payment: {
    provider: 'stripe'
    reference: string | null
    status: string | null
    client_secret?: string
    decline_code?: string
    capture_before?: string
  }
  reconcile_reason?: string
  created_at: string
  updated_at: string
  shipping_address?: Record<string, string>
  metadata?: Record<string, string>
}

/** Holds no personal data, but `withMetadata`: then with what the storefront gave, the address to send it to included.
 * `client_secret` is shown only where asked for: it lets its holder complete the payment. */
export function orderView(
  order: Order,
  options: { withClientSecret?: boolean; withMetadata?: boolean } = {},
): OrderView {
  return {
    id: order.order_id,
    object: 'order',
    status: shownStatus(order),
    currency: order.currency,
    total: order.total,
    captured: order.captured,
    refunded: order.refunded,
    disputed: order.disputed,
    lines: order.lines.map(({ sku, name, quantity, unit_price, amount }) => ({
      sku,
      name,
      quantity,
      unit_price,
      amount,
    })),
    customer_id: order.customer_id,
    payment: {
      provider: 'stripe',
      reference: order.intent_id,
      status: order.payment_status,
      ...(options.withClientSecret && order.status === 'requires_action' && order.client_secret !== null
        ? { client_secret: order.client_secret }
        : {}),
      ...(order.decline_code !== null ? { decline_code: order.decline_code } : {}),
      ...(order.capture_before !== null ? { capture_before: order.capture_before.toISOString() } : {}),
    },
    ...(order.reconcile_reason !== null ? { reconcile_reason: order.reconcile_reason } : {}),
    created_at: order.created_at.toISOString(),
    updated_at: order.updated_at.toISOString(),
    ...(options.withMetadata && order.shipping_address !== null ? { shipping_address: order.shipping_address } : {}),
    ...(options.withMetadata ? { metadata: order.metadata ?? {} } : {}),
  }
}
