/** Contract of refunds. */
import { keyProblems } from './checkouts.ts'
import { at, orderId } from './examples.ts'
import { idempotencyKeyHeader, operation } from './operation.ts'
import { amount, currency, id, moment, named, object, orNull, text, words } from './schema.ts'

const RefundSchema = named(
  'Refund',
  object(
    {
      id: id('ref'),
      object: words('refund'),
      order_id: id('ord'),
      amount,
      currency,
      status: words('succeeded', 'pending', 'failed'),
      reason: orNull(text),
      created_at: moment,
    },
    { failure_code: { ...text, description: 'of a failed one, where the provider gave one' } },
  ),
)

const refund = {
  id: 'ref_01k0f7bqj4esct8h2w9n5x3ymd',
  object: 'refund',
  order_id: orderId,
  amount: 1250,
  currency: 'EUR',
  status: 'succeeded',
  reason: 'One mug was broken',
  created_at: at,
}

export const createRefund = operation({
  operationId: 'createRefund',
  bodies: { all: {}, part: { amount: 1250, reason: 'One mug was broken' } },
  tag: 'Refunds',
  summary: 'Give money back, whole or in part',
  description:
    'At most once per Idempotency-Key, and never more than was captured, also when two refunds race: refunds in doubt and open disputes count.',
  headers: idempotencyKeyHeader,
  answers: {
    201: {
      description: 'The refund has ended: see its status.',
      body: RefundSchema,
      examples: { succeeded: refund },
      headers: ['Location', 'Idempotent-Replayed'],
    },
    202: {
      description: 'In doubt, or on its way.',
      body: RefundSchema,
      examples: { pending: { ...refund, status: 'pending' } },
      headers: ['Retry-After', 'Idempotent-Replayed'],
    },
  },
  problems: [
    ...keyProblems,
    'not_found',
    'order_state_conflict',
    'refund_exceeds_captured',
    'amount_not_chargeable',
    'provider_unavailable',
  ],
})

export const readRefund = operation({
  operationId: 'readRefund',
  tag: 'Refunds',
  summary: 'One refund',
  answers: { 200: { description: 'The refund.', body: RefundSchema, examples: { succeeded: refund } } },
  problems: ['not_found'],
})
