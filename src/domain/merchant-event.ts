/** Events that merchants get: their types and their bodies. */
import type { Order } from './order.ts'
import { orderView } from './order-view.ts'

const types = {
  paid: 'order.paid',
  authorized: 'order.authorized',
  payment_failed: 'order.payment_failed',
  canceled: 'order.canceled',
  refunded: 'order.refunded',
  refund_failed: 'order.refund_failed',
  disputed: 'order.disputed',
} as const

type MerchantEventType = (typeof types)[keyof typeof types]

/** The type of event for a transition; null for one that is no news to a merchant. */
export function eventTypeFor(status: string): MerchantEventType | null {
  return Object.hasOwn(types, status) ? types[status as keyof typeof types] : null
}

/** What an event is about besides the order. */
interface EventSubject {
  refund?: { id: string; amount: number; currency: string }
  dispute?: { id: string }
}

/**
 * The body, as Standard Webhooks recommends it (https://www.standardwebhooks.com): type, timestamp, data. The order is
 * shown as it stood when the event was made, which may be further on than the event's type says; it holds no personal data.
 */
export function eventBody(type: MerchantEventType, at: Date, order: Order, subject: EventSubject): string {
  return JSON.stringify({ type, timestamp: at.toISOString(), data: { order: orderView(order), ...subject } })
}
