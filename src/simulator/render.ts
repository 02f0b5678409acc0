import type Stripe from 'stripe'
import { findPaymentMethod } from './payment-methods.ts'
import type { ChargeRecord, PaymentFailure, PaymentIntentRecord, RefundRecord } from './records.ts'

/** The API version of an account that says nothing else: of requests without `Stripe-Version`, and of events. It is the last
 * that takes `payment_method_types`. The shapes are those of the SDK's types, whichever version is asked for. */
export const accountApiVersion = '2026-08-26.dahlia'

export function renderIntent(record: PaymentIntentRecord): Stripe.PaymentIntent {
  return {
    id: record.id,
    object: 'payment_intent',
    allowed_payment_method_types: record.allowed_payment_method_types,
    amount: record.amount,
    amount_capturable: record.amount_capturable,
    amount_details: { tip: {} },
    amount_received: record.amount_received,
    application: null,
    application_fee_amount: null,
    automatic_payment_methods: record.automatic_payment_methods,
    canceled_at: record.canceled_at,
    cancellation_reason: record.cancellation_reason,
    capture_method: record.capture_method,
    client_secret: record.client_secret,
    confirmation_method: record.confirmation_method,
    created: record.created,
    currency: record.currency,
    customer: record.customer,
    customer_account: null,
    description: record.description,
    excluded_payment_method_types: null,
    last_payment_error: record.last_payment_error ? renderFailure(record.last_payment_error, record) : null,
    latest_charge: record.latest_charge,
    livemode: record.livemode,
    managed_payments: null,
    metadata: record.metadata,
    next_action: record.status === 'requires_action' ? nextAction(record) : null,
    on_behalf_of: null,
    payment_method: record.payment_method,
    payment_method_configuration_details: null,
    payment_method_options: {
      card: { installments: null, mandate_options: null, network: null, request_three_d_secure: 'automatic' },
    },
    payment_method_types: record.payment_method_types,
    payment_record: null,
    processing: record.status === 'processing' ? { type: 'card', card: {} } : null,
    receipt_email: record.receipt_email,
    review: null,
    setup_future_usage: record.setup_future_usage,
    shipping: null,
    source: null,
    statement_descriptor: record.statement_descriptor,
    statement_descriptor_suffix: record.statement_descriptor_suffix,
    status: record.status,
    transfer_data: null,
    transfer_group: null,
  }
}

function nextAction(record: PaymentIntentRecord): Stripe.PaymentIntent.NextAction {
  if (record.return_url !== null) {
    const url = `https://hooks.stripe.com/3d_secure_2/hosted?payment_intent=${record.id}`
    return { type: 'redirect_to_url', redirect_to_url: { return_url: record.return_url, url } }
  }
  return { type: 'use_stripe_sdk', use_stripe_sdk: { type: 'stripe_3ds2_fingerprint' } }
}

function renderFailure(failure: PaymentFailure, intent: PaymentIntentRecord): Stripe.PaymentIntent.LastPaymentError {
  return {
    type: failure.code === 'payment_intent_authentication_failure' ? 'invalid_request_error' : 'card_error',
    code: failure.code,
    message: failure.message,
    payment_method: renderPaymentMethod(failure.payment_method, intent),
    ...(failure.decline_code === null ? {} : { decline_code: failure.decline_code }),
    ...(failure.param === null ? {} : { param: failure.param }),
    ...(failure.advice_code === null ? {} : { advice_code: failure.advice_code }),
    ...(failure.charge === null ? {} : { charge: failure.charge }),
  }
}

export function renderCharge(record: ChargeRecord): Stripe.Charge {
  return {
    id: record.id,
    object: 'charge',
    amount: record.amount,
    amount_captured: record.amount_captured,
    amount_refunded: record.amount_refunded,
    application: null,
    application_fee: null,
    application_fee_amount: null,
    balance_transaction: record.captured ? `txn_${record.id.slice(3)}` : null,
    billing_details: { address: null, email: null, name: null, phone: null, tax_id: null },
    calculated_statement_descriptor: 'SIMULATOR',
    captured: record.captured,
    created: record.created,
    currency: record.currency,
    customer: record.customer,
    description: record.description,
    disputed: record.disputed,
    failure_balance_transaction: null,
    failure_code: record.failure?.code ?? null,
    failure_message: record.failure?.message ?? null,
    fraud_details: {},
    livemode: record.livemode,
    metadata: record.metadata,
    on_behalf_of: null,
    outcome: outcome(record),
    paid: record.status === 'succeeded',
    payment_intent: record.payment_intent,
    payment_method: record.payment_method,
    payment_method_details: { type: 'card', card: cardDetails(record) },
    receipt_email: null,
    receipt_number: null,
    receipt_url: null,
    refunded: record.status === 'succeeded' && record.amount_refunded === record.amount,
    review: null,
    shipping: null,
    source: null,
    source_transfer: null,
    statement_descriptor: null,
    statement_descriptor_suffix: null,
    status: record.status,
    transfer_data: null,
    transfer_group: null,
  }
}

function outcome(record: ChargeRecord): Stripe.Charge.Outcome | null {
  if (record.status === 'pending') return null
  const failed = record.failure
  return {
    advice_code: failed?.advice_code ?? null,
    network_advice_code: null,
    network_decline_code: null,
    network_status: failed ? 'declined_by_network' : 'approved_by_network',
    reason: failed?.decline_code ?? null,
    risk_level: 'normal',
    risk_score: 20,
    seller_message: failed ? 'The bank did not approve the payment.' : 'Payment complete.',
    type: failed ? 'issuer_declined' : 'authorized',
  }
}

function cardDetails(record: ChargeRecord): Stripe.Charge.PaymentMethodDetails.Card {
  const method = findPaymentMethod(record.payment_method)
  return {
    amount_authorized: record.status === 'succeeded' ? record.amount : null,
    authorization_code: null,
    brand: method?.brand ?? null,
    ...(record.capture_before === null ? {} : { capture_before: record.capture_before }),
    checks: { address_line1_check: null, address_postal_code_check: null, cvc_check: 'pass' },
    country: 'US',
    electronic_commerce_indicator: null,
    exp_month: 12,
    exp_year: 2034,
    extended_authorization: { status: 'disabled' },
    fingerprint: null,
    funding: method?.funding ?? null,
    incremental_authorization: { status: 'unavailable' },
    installments: null,
    last4: method?.last4 ?? null,
    mandate: null,
    multicapture: { status: 'unavailable' },
    network: method?.brand ?? null,
    network_transaction_id: null,
    overcapture: { maximum_amount_capturable: record.amount, status: 'unavailable' },
    regulated_status: 'unregulated',
    three_d_secure: record.authenticated ? authenticated : null,
    transaction_link_id: null,
    wallet: null,
  }
}

const authenticated: Stripe.Charge.PaymentMethodDetails.Card.ThreeDSecure = {
  authentication_flow: 'challenge',
  electronic_commerce_indicator: '05',
  exemption_indicator: null,
  result: 'authenticated',
  result_reason: null,
  transaction_id: null,
  version: '2.2.0',
}

export function renderRefund(record: RefundRecord): Stripe.Refund {
  return {
    id: record.id,
    object: 'refund',
    amount: record.amount,
    balance_transaction: `txn_${record.id.slice(3)}`,
    charge: record.charge,
    created: record.created,
    currency: record.currency,
    customer: null,
    customer_account: null,
    destination_details: {
      type: 'card',
      card: { type: 'refund', reference_status: 'pending', reference_type: 'acquirer_reference_number' },
    },
    ...(record.failure_reason === null ? {} : { failure_reason: record.failure_reason }),
    metadata: record.metadata,
    payment_intent: record.payment_intent,
    payment_method: record.payment_method,
    ...(record.status === 'pending' ? { pending_reason: 'processing' } : {}),
    reason: record.reason,
    receipt_number: null,
    source_transfer_reversal: null,
    status: record.status,
    transfer_reversal: null,
  }
}

/** A test payment method as an object; only what identifies the card. */
export function renderPaymentMethod(id: string, of: { created: number; livemode: boolean }): Stripe.PaymentMethod {
  const method = findPaymentMethod(id)
  return {
    id,
    object: 'payment_method',
    allow_redisplay: 'unspecified',
    billing_details: { address: null, email: null, name: null, phone: null, tax_id: null },
    card: {
      brand: method?.brand,
      last4: method?.last4,
      funding: method?.funding,
      exp_month: 12,
      exp_year: 2034,
      country: 'US',
    },
    created: of.created,
    customer: null,
    customer_account: null,
    livemode: of.livemode,
    metadata: {},
    type: 'card',
  } as unknown as Stripe.PaymentMethod
}
