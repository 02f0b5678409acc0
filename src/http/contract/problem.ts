/** Problem details (RFC 9457) as the contract shows them. */
import { type ProblemCode, problemCodes } from '../../domain/problem.ts'
import { OrderSchema } from './order.ts'
import { amount, count, currency, flag, id, listOf, named, object, orNull, type Schema, text, words } from './schema.ts'

const members = {
  type: { type: 'string', format: 'uri', description: '`urn:checkout:problem:` and the code' },
  title: text,
  status: { type: 'integer', minimum: 400, maximum: 599 },
  detail: { type: 'string', description: 'for people; may change' },
  code: { type: 'string', enum: problemCodes, description: 'for programs; stays' },
  request_id: text,
}

const newKeySafe: Schema = {
  type: 'boolean',
  description: 'true only where no charge of this attempt exists or can still appear: then a new key may be made',
}

const limit: Schema = {
  ...orNull(count),
  description: 'of the currency, minor units; null where it cannot be charged at all',
}

/** Which of them come depends on the code. */
const maybe: Record<string, Schema> = {
  errors: {
    ...listOf(object({ pointer: text, detail: text })),
    description: 'what is wrong with the request, by JSON pointer',
  },
  order_id: id('ord'),
  run_id: id('run'),
  refund_id: id('ref'),
  order: OrderSchema,
  order_status: text,
  run_status: text,
  state: { type: 'string', description: 'of the attempt, job or email that stands in the way' },
  running: flag,
  decline_code: { type: 'string', description: 'the provider’s reason for a decline, where it gave one' },
  differing: {
    ...listOf(text),
    description: 'top-level fields of the request, or `method` or `path`, that differ from the first',
  },
  items: { ...listOf(object({ sku: text }, { requested: count, available: count })), description: 'what is short' },
  skus: { ...listOf(text), description: 'what is unknown' },
  total: amount,
  expected_total: amount,
  currency,
  minimum: limit,
  maximum: limit,
  step: limit,
  capturable: amount,
  captured: amount,
  refundable: amount,
  ending: object({ action: words('capture', 'cancel'), amount }),
  meter_type: text,
  recorded_quantity: count,
  provider_status: { type: 'string', description: 'as the provider has the payment' },
  mismatch: text,
}

export const ProblemSchema = named('Problem', object(members, { ...maybe, new_key_safe: newKeySafe }))

/** Of the routes whose clients must know whether a new key may be made. */
export const CheckoutProblemSchema = named('CheckoutProblem', object({ ...members, new_key_safe: newKeySafe }, maybe))

/** Members that show in examples what a code brings along. */
export const exampleMembers: Partial<Record<ProblemCode, Record<string, unknown>>> = {
  invalid_request: { errors: [{ pointer: '/items', detail: 'must not have fewer than 1 items' }] },
  card_declined: { decline_code: 'insufficient_funds', order_id: 'ord_01k0f5x2v8e7wts3z9q4m6c1ab', new_key_safe: true },
  payment_method_invalid: { order_id: 'ord_01k0f5x2v8e7wts3z9q4m6c1ab', new_key_safe: true },
  out_of_stock: { items: [{ sku: 'rare', requested: 2, available: 1 }], new_key_safe: true },
  price_changed: { expected_total: 1200, total: 1250, currency: 'EUR', new_key_safe: true },
  unknown_sku: { skus: ['muug'], new_key_safe: true },
  idempotency_key_conflict: { differing: ['items'], new_key_safe: false },
  idempotency_key_in_progress: { new_key_safe: false },
  idempotency_key_expired: { order_id: 'ord_01k0f5x2v8e7wts3z9q4m6c1ab', new_key_safe: false },
  cart_in_progress: {
    order_id: 'ord_01k0f5x2v8e7wts3z9q4m6c1ab',
    state: 'open',
    order_status: 'requires_action',
    new_key_safe: false,
  },
  cart_already_paid: {
    order_id: 'ord_01k0f5x2v8e7wts3z9q4m6c1ab',
    state: 'settled',
    order_status: 'paid',
    new_key_safe: false,
  },
  checkout_canceled: { order_id: 'ord_01k0f5x2v8e7wts3z9q4m6c1ab', new_key_safe: true },
  refund_exceeds_captured: { refundable: 350 },
  usage_conflict: { meter_type: 'input_tokens', recorded_quantity: 1200 },
}
