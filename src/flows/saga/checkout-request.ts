/** What asks for an order as it arrives, and what makes two of them the same. */
import { digestRequest, type RequestDigest } from '../../domain/digest.ts'

export interface AttemptRequest {
  tenantId: string
  /** The tenant's own account at the provider. */
  connectedAccount: string | null
  key: string
  requestId: string
  /** Of the customer; null where it is the tenant's own machine that calls. */
  address: string | null
  /** Of the body's bytes: two requests with the same one are the same, those with another may be. Null where it is not known. */
  fingerprint: string | null
  /** Method and path as digested. */
  method: string
  path: string
  body: object
}

export interface CheckoutRequest extends AttemptRequest {
  body: CheckoutBody
}

/** As the API takes it; the schema beside the route has checked it. */
export interface CheckoutBody {
  items: { sku: string; quantity: number }[]
  customer: { email: string; name?: string }
  payment_method: string
  cart_id?: string
  currency?: string
  expected_total?: number
  capture?: 'automatic' | 'manual'
  shipping_address?: Record<string, string>
  metadata?: Record<string, string>
}

/** Fields that mean the same when they are left out. */
const bodyDefaults = { capture: 'automatic', metadata: {} }

/** The digest that identifies a request, with the given secret. */
export function digestWith(secret: Parameters<typeof digestRequest>[0], request: AttemptRequest): RequestDigest {
  return digestRequest(secret, request, bodyDefaults)
}
