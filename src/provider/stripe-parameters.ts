import type Stripe from 'stripe'
import { toProviderAmount } from '../domain/money.ts'
import type { ChargeRequest } from './port.ts'

/**
 * The API version that new payments are made under: the last one that takes `payment_method_types`. From
 * `2026-09-30.endive` on, the SDK's own default, Stripe answers a charge that names them with a 400.
 * https://docs.stripe.com/changelog/endive/2026-09-30/removes-the-payment-method-types-parameter-from-payment-intents-and-setup-intents
 */
export const STRIPE_API_VERSION = '2026-08-26.dahlia'

/** The way of building parameters that new payments use. */
export const PARAMETER_VERSION = 1

/** The SDK's types are those of its own API version, which no longer knows this parameter. */
type ChargeParameters = Stripe.PaymentIntentCreateParams & { payment_method_types: ['card'] }

/**
 * The parameters that create and confirm a payment. Stripe refuses a repeated key whose parameters differ, so what a
 * version once meant never changes: a change is a new version, and the old one stays for as long as attempts made with
 * it are open. Throws where the version is unknown, before anything is sent.
 */
export function chargeParameters(request: ChargeRequest): ChargeParameters {
  if (request.parameterVersion !== 1) {
    throw new Error(
      `Charge parameters have no version ${request.parameterVersion}; this process is older than the claim`,
    )
  }
  return {
    amount: toProviderAmount(request.amount, request.currency),
    currency: request.currency.toLowerCase(),
    payment_method: request.paymentMethod,
    payment_method_types: ['card'],
    confirm: true,
    capture_method: request.capture,
    ...(request.offSession ? { off_session: true, error_on_requires_action: true } : {}),
    metadata: { tenant: request.metadata.tenant, order: request.metadata.order, key: request.metadata.key },
    expand: ['latest_charge'],
  }
}
