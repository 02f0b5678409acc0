import type Stripe from 'stripe'
import type { DisputeRecord } from './records.ts'

const evidenceFields = [
  'access_activity_log',
  'billing_address',
  'cancellation_policy',
  'cancellation_policy_disclosure',
  'cancellation_rebuttal',
  'customer_communication',
  'customer_email_address',
  'customer_name',
  'customer_purchase_ip',
  'customer_signature',
  'duplicate_charge_documentation',
  'duplicate_charge_explanation',
  'duplicate_charge_id',
  'product_description',
  'receipt',
  'refund_policy',
  'refund_policy_disclosure',
  'refund_refusal_explanation',
  'service_date',
  'service_documentation',
  'shipping_address',
  'shipping_carrier',
  'shipping_date',
  'shipping_documentation',
  'shipping_tracking_number',
  'uncategorized_file',
  'uncategorized_text',
]
const noEvidence = {
  ...Object.fromEntries(evidenceFields.map((field) => [field, null])),
  enhanced_evidence: {},
} as unknown as Stripe.Dispute.Evidence

export function renderDispute(record: DisputeRecord): Stripe.Dispute {
  return {
    id: record.id,
    object: 'dispute',
    amount: record.amount,
    balance_transactions: record.movements.map((movement) => renderMovement(record, movement)),
    charge: record.charge,
    created: record.created,
    currency: record.currency,
    enhanced_eligibility_types: [],
    evidence: noEvidence,
    evidence_details: {
      due_by: record.due_by,
      enhanced_eligibility: {},
      has_evidence: false,
      past_due: false,
      submission_count: 0,
      submission_method: 'not_submitted',
    },
    intended_submission_method: null,
    is_charge_refundable: record.status.startsWith('warning'),
    livemode: record.livemode,
    metadata: record.metadata,
    payment_intent: record.payment_intent,
    reason: record.reason,
    status: record.status,
  }
}

function renderMovement(
  dispute: DisputeRecord,
  movement: DisputeRecord['movements'][number],
): Stripe.BalanceTransaction {
  return {
    id: movement.id,
    object: 'balance_transaction',
    amount: movement.amount,
    available_on: movement.created,
    balance_type: 'payments',
    created: movement.created,
    currency: dispute.currency,
    description: movement.amount < 0 ? 'Chargeback withdrawal' : 'Chargeback reversal',
    exchange_rate: null,
    fee: 0,
    fee_details: [],
    net: movement.amount,
    reporting_category: movement.amount < 0 ? 'dispute' : 'dispute_reversal',
    source: dispute.id,
    status: 'available',
    type: 'adjustment',
  }
}
