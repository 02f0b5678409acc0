/** Contract of the checkout. */
import { canceledOrder, heldOrder, orderId, paidOrder, unclearOrder, waitingOrder } from './examples.ts'
import { idempotencyKeyHeader, operation } from './operation.ts'
import { OrderSchema } from './order.ts'
import { amount, currency, flag, id, named, object, text, words } from './schema.ts'

/** What any operation with a key may refuse with, because of the key. */
export const keyProblems = [
  'idempotency_key_missing',
  'idempotency_key_invalid',
  'idempotency_key_conflict',
  'idempotency_key_in_progress',
  'idempotency_key_expired',
] as const

export const createCheckout = operation({
  operationId: 'createCheckout',
  bodies: {
    minimal: {
      items: [{ sku: 'mug', quantity: 1 }],
      customer: { email: 'ada@example.com' },
      payment_method: 'pm_card_visa',
    },
    cart: {
      items: [
        { sku: 'mug', quantity: 2 },
        { sku: 'tee', quantity: 1 },
      ],
      customer: { email: 'ada@example.com', name: 'Ada' },
      payment_method: 'pm_card_visa',
      cart_id: 'cart-4711',
      currency: 'EUR',
      expected_total: 5000,
    },
    hold: {
      items: [{ sku: 'mug', quantity: 1 }],
      customer: { email: 'ada@example.com' },
      payment_method: 'pm_card_visa',
      capture: 'manual',
    },
    declined_card: {
      items: [{ sku: 'mug', quantity: 1 }],
      customer: { email: 'ada@example.com' },
      payment_method: 'pm_card_chargeDeclined',
    },
    customer_has_to_act: {
      items: [{ sku: 'mug', quantity: 1 }],
      customer: { email: 'ada@example.com' },
      payment_method: 'pm_card_threeDSecure2Required',
    },
  },
  tag: 'Checkout',
  summary: 'Pay for a cart',
  description:
    'Creates one order and charges for it at most once per Idempotency-Key, however often the request repeats. A settled attempt gives its first answer again, byte for byte, with `Idempotent-Replayed: true`; an open one tells where it stands and is driven on. After a lost answer, a 5xx or a 202: repeat the same request with the same key. Make a new key only where `new_key_safe` is true.',
  headers: idempotencyKeyHeader,
  answers: {
    201: {
      description: 'Settled: paid, or authorized where the capture is manual.',
      body: OrderSchema,
      examples: { paid: paidOrder, authorized: heldOrder },
      headers: ['Location', 'Idempotent-Replayed'],
    },
    202: {
      description:
        'Not settled yet: the customer has to act, or the provider’s word is in doubt. Repeat with the same key.',
      body: OrderSchema,
      examples: { requires_action: waitingOrder, needs_reconcile: unclearOrder },
      headers: ['Retry-After', 'Idempotent-Replayed'],
    },
  },
  problems: [
    ...keyProblems,
    'card_declined',
    'payment_method_invalid',
    'out_of_stock',
    'price_changed',
    'cart_in_progress',
    'cart_already_paid',
    'checkout_canceled',
    'unknown_sku',
    'currency_mismatch',
    'amount_not_chargeable',
    'provider_unavailable',
    'overloaded',
  ],
})

const AttemptSchema = named(
  'Attempt',
  object(
    {
      state: {
        ...words('in_progress', 'open', 'settled', 'expired'),
        description: '`expired`: only the stored answer is gone; the key stays used',
      },
      new_key_safe: { ...flag, description: 'no charge of this attempt exists or can still appear' },
    },
    { order: object({ id: id('ord'), status: text, total: amount, currency }) },
  ),
)

export const lookUpCheckout = operation({
  operationId: 'lookUpCheckout',
  tag: 'Checkout',
  summary: 'What became of an attempt',
  description:
    'Never starts or moves one. 404 does not say that nothing will happen: the first request may still be on its way.',
  answers: {
    200: {
      description: 'The attempt as it stands.',
      body: AttemptSchema,
      examples: {
        settled: {
          state: 'settled',
          new_key_safe: false,
          order: { id: orderId, status: 'paid', total: 5000, currency: 'EUR' },
        },
        in_progress: { state: 'in_progress', new_key_safe: false },
      },
    },
  },
  problems: ['not_found', 'idempotency_key_invalid'],
})

export const cancelCheckout = operation({
  operationId: 'cancelCheckout',
  tag: 'Checkout',
  summary: 'The customer gives up',
  description: 'Cancels the payment at the provider first, then the order here; cart and stock are free again.',
  answers: {
    200: { description: 'Nothing can be charged any more.', body: OrderSchema, examples: { canceled: canceledOrder } },
    202: {
      description: 'Never charged again; the provider has yet to confirm.',
      body: OrderSchema,
      examples: { needs_reconcile: unclearOrder },
      headers: ['Retry-After'],
    },
  },
  problems: [
    'not_found',
    'idempotency_key_invalid',
    'idempotency_key_in_progress',
    'checkout_already_settled',
    'provider_unavailable',
  ],
})
