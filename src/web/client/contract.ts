/** Written by `npm run openapi` from openapi.yaml; not by hand. Amounts are in minor units of the currency. */

export type CheckoutBody = {
  items: {
    sku: string
    quantity: number
  }[]
  customer: {
    email: string
    name?: string
  }
  /** The provider's id of a payment method that its browser library made; card data never comes here */
  payment_method: string
  cart_id?: string
  /** ISO 4217, upper case */
  currency?: string
  /** minor units of the currency */
  expected_total?: number
  capture?: 'automatic' | 'manual'
  shipping_address?: {
    name?: string
    line1: string
    line2?: string
    city: string
    postal_code?: string
    state?: string
    /** ISO 3166-1 alpha-2 */
    country: string
  }
  metadata?: Record<string, string>
}

export type Attempt = {
  /** `expired`: only the stored answer is gone; the key stays used */
  state: 'in_progress' | 'open' | 'settled' | 'expired'
  /** no charge of this attempt exists or can still appear */
  new_key_safe: boolean
  order?: {
    id: string
    status: string
    /** minor units of the currency */
    total: number
    /** ISO 4217 */
    currency: string
  }
}

export type CheckoutProblem = {
  /** `urn:checkout:problem:` and the code */
  type: string
  title: string
  status: number
  /** for people; may change */
  detail: string
  /** for programs; stays */
  code:
    | 'invalid_request'
    | 'idempotency_key_missing'
    | 'idempotency_key_invalid'
    | 'unauthorized'
    | 'webhook_signature_invalid'
    | 'card_declined'
    | 'payment_method_invalid'
    | 'forbidden'
    | 'not_found'
    | 'method_not_allowed'
    | 'out_of_stock'
    | 'price_changed'
    | 'idempotency_key_conflict'
    | 'idempotency_key_in_progress'
    | 'idempotency_key_expired'
    | 'cart_in_progress'
    | 'cart_already_paid'
    | 'checkout_canceled'
    | 'checkout_already_settled'
    | 'hold_already_ending'
    | 'order_state_conflict'
    | 'refund_exceeds_captured'
    | 'usage_conflict'
    | 'run_closed'
    | 'job_state_conflict'
    | 'email_state_conflict'
    | 'provider_disagrees'
    | 'request_timeout'
    | 'payload_too_large'
    | 'unsupported_media_type'
    | 'unknown_sku'
    | 'unknown_meter'
    | 'currency_mismatch'
    | 'amount_not_chargeable'
    | 'rate_limited'
    | 'headers_too_large'
    | 'internal'
    | 'overloaded'
    | 'database_unavailable'
    | 'provider_unavailable'
  request_id: string
  /** true only where no charge of this attempt exists or can still appear: then a new key may be made */
  new_key_safe: boolean
  /** what is wrong with the request, by JSON pointer */
  errors?: {
    pointer: string
    detail: string
  }[]
  order_id?: string
  run_id?: string
  refund_id?: string
  order?: Order
  order_status?: string
  run_status?: string
  /** of the attempt, job or email that stands in the way */
  state?: string
  running?: boolean
  /** the provider’s reason for a decline, where it gave one */
  decline_code?: string
  /** top-level fields of the request, or `method` or `path`, that differ from the first */
  differing?: string[]
  /** what is short */
  items?: {
    sku: string
    requested?: number
    available?: number
  }[]
  /** what is unknown */
  skus?: string[]
  /** minor units of the currency */
  total?: number
  /** minor units of the currency */
  expected_total?: number
  /** ISO 4217 */
  currency?: string
  /** of the currency, minor units; null where it cannot be charged at all */
  minimum?: number | null
  /** of the currency, minor units; null where it cannot be charged at all */
  maximum?: number | null
  /** of the currency, minor units; null where it cannot be charged at all */
  step?: number | null
  /** minor units of the currency */
  capturable?: number
  /** minor units of the currency */
  captured?: number
  /** minor units of the currency */
  refundable?: number
  ending?: {
    action: 'capture' | 'cancel'
    /** minor units of the currency */
    amount: number
  }
  meter_type?: string
  recorded_quantity?: number
  /** as the provider has the payment */
  provider_status?: string
  mismatch?: string
}

export type Order = {
  id: string
  object: 'order'
  status:
    | 'pending'
    | 'requires_action'
    | 'needs_reconcile'
    | 'authorized'
    | 'paid'
    | 'partially_refunded'
    | 'refunded'
    | 'payment_failed'
    | 'canceled'
  /** ISO 4217 */
  currency: string
  /** minor units of the currency */
  total: number
  /** minor units of the currency */
  captured: number
  /** minor units; refunds that have not failed */
  refunded: number
  disputed: boolean
  lines: OrderLine[]
  customer_id: string
  payment: {
    provider: 'stripe'
    /** the provider’s id of the payment */
    reference: string | null
    /** in the provider’s words */
    status: string | null
    /** only in the answer of the POST, while the order waits for the customer */
    client_secret?: string
    decline_code?: string
    /** when a hold ends by itself */
    capture_before?: string
  }
  created_at: string
  updated_at: string
  /** why a person or the service still has to look at it */
  reconcile_reason?: string
}

export type OrderLine = {
  sku: string
  name: string
  quantity: number
  /** minor units of the currency */
  unit_price: number
  /** minor units of the currency */
  amount: number
}

export type ProductList = {
  object: 'list'
  data: Product[]
  has_more: boolean
  /** for `cursor` of the next page; null on the last one */
  next_cursor: string | null
}

export type Product = {
  object: 'product'
  sku: string
  name: string
  /** minor units of the currency */
  unit_price: number
  /** ISO 4217 */
  currency: string
  /** what can be sold now */
  available: number
}
