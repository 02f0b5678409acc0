/** An order's life: its states, the legal transitions between them, and the order as kept. */

export type OrderStatus =
  | 'pending'
  | 'requires_action'
  | 'needs_reconcile'
  | 'authorized'
  | 'paid'
  | 'payment_failed'
  | 'canceled'

/** The one table of legal transitions. An order that waits may be told to go on waiting, for another reason. */
const transitions: Record<OrderStatus, readonly OrderStatus[]> = {
  pending: ['paid', 'authorized', 'requires_action', 'payment_failed', 'needs_reconcile', 'canceled'],
  requires_action: ['paid', 'authorized', 'payment_failed', 'needs_reconcile', 'canceled'],
  needs_reconcile: ['paid', 'authorized', 'requires_action', 'payment_failed', 'canceled'],
  authorized: ['paid', 'canceled'],
  paid: [],
  payment_failed: [],
  canceled: [],
}

const statuses = Object.keys(transitions) as OrderStatus[]
const sources = Object.fromEntries(
  statuses.map((to) => [to, statuses.filter((from) => transitions[from].includes(to))]),
) as Record<OrderStatus, OrderStatus[]>

/** The statuses from which an order may become `to`. */
export function sourcesOf(to: OrderStatus): readonly OrderStatus[] {
  return sources[to]
}

/** Not ended yet: the customer or the provider still has the word. */
export function isOpen(status: OrderStatus): boolean {
  return status === 'pending' || status === 'requires_action' || status === 'needs_reconcile'
}

export interface OrderLine {
  sku: string
  name: string
  quantity: number
  /** Minor units. */
  unit_price: number
  /** Minor units. */
  amount: number
}

/** A row of `orders`; the migration says what each column means. Amounts in minor units. */
export interface Order {
  tenant_id: string
  order_id: string
  attempt_key: string
  kind: 'checkout' | 'run'
  status: OrderStatus
  currency: string
  total: number
  capture: 'automatic' | 'manual'
  lines: OrderLine[]
  customer_id: string
  cart_id: string | null
  shipping_address: Record<string, string> | null
  metadata: Record<string, string> | null
  payment_method: string
  provider_account: string
  connected_account: string | null
  livemode: boolean
  api_version: string
  parameter_version: number
  intent_id: string | null
  charge_id: string | null
  payment_status: string | null
  decline_code: string | null
  client_secret: string | null
  capture_before: Date | null
  captured: number
  refunded: number
  disputed_amount: number
  disputed: boolean
  maybe_sent: boolean
  send_is_pointless: boolean
  last_send_before: Date
  cancel_requested_at: Date | null
  reconcile_reason: string | null
  next_ask_at: Date
  asks: number
  expires_at: Date
  created_at: Date
  updated_at: Date
}
