/** What the baseline and the floor sell and answer: one order of one line. */
import { randomUUID } from 'node:crypto'

export interface Cart {
  items: { sku: string; quantity: number }[]
  customer: { email: string; name?: string }
  payment_method: string
}

export interface Sold {
  key: string
  cart: Cart
  orderId: string
  customerId: string
  total: number
  lines: { sku: string; name: string; quantity: number; unit_price: number; amount: number }[]
  createdAt: string
}

/** As the provider of the benchmark answers, at once. */
export interface Charged {
  intentId: string
  chargeId: string
  requestId: string
}

export function charge(): Charged {
  const id = randomUUID()
  return { intentId: `pi_${id}`, chargeId: `ch_${id}`, requestId: `req_${id}` }
}

/** The body of the answer, as long as the service's. */
export function paidBody({ orderId, total, lines, customerId, createdAt }: Sold, { intentId }: Charged): string {
  return JSON.stringify({
    id: orderId,
    object: 'order',
    status: 'paid',
    currency: 'EUR',
    total,
    captured: total,
    refunded: 0,
    disputed: false,
    lines,
    customer_id: customerId,
    payment: { provider: 'stripe', reference: intentId, status: 'succeeded' },
    created_at: createdAt,
    updated_at: new Date().toISOString(),
  })
}
