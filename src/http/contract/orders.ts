/** Contract of orders and of the end of a hold. */
import { canceledOrder, heldOrder, pageOf, paidOrder } from './examples.ts'
import { operation } from './operation.ts'
import { OrderSchema, OrderWithMetadataSchema } from './order.ts'
import { page } from './schema.ts'

const withMetadata = {
  ...paidOrder,
  shipping_address: { name: 'Ada Lovelace', line1: '12 St James Square', city: 'London', country: 'GB' },
  metadata: { source: 'newsletter' },
}

export const listOrders = operation({
  operationId: 'listOrders',
  tag: 'Orders',
  summary: 'Orders, newest first',
  answers: {
    200: {
      description: 'A page of orders.',
      body: page('OrderList', OrderWithMetadataSchema),
      examples: { page: pageOf(withMetadata) },
    },
  },
})

export const readOrder = operation({
  operationId: 'readOrder',
  tag: 'Orders',
  summary: 'One order',
  answers: { 200: { description: 'The order.', body: OrderWithMetadataSchema, examples: { paid: withMetadata } } },
  problems: ['not_found'],
})

const inDoubt = {
  description: 'The provider’s word is in doubt: it is asked again, and the same request may be repeated.',
  body: OrderSchema,
  examples: { authorized: heldOrder },
  headers: ['Retry-After'],
} as const

const problems = ['not_found', 'hold_already_ending', 'order_state_conflict', 'provider_unavailable'] as const

export const captureHold = operation({
  operationId: 'captureHold',
  bodies: { all: {}, part: { amount: 2500 } },
  tag: 'Orders',
  summary: 'Capture a hold, whole or in part',
  description: 'Once per order: the same again is safe, another ending is refused. Capturing 0 cancels.',
  answers: {
    200: {
      description: 'The hold has ended.',
      body: OrderSchema,
      examples: { paid: paidOrder, canceled: canceledOrder },
    },
    202: inDoubt,
  },
  problems: [...problems, 'amount_not_chargeable'],
})

export const cancelHold = operation({
  operationId: 'cancelHold',
  tag: 'Orders',
  summary: 'Let a hold go',
  description: 'Once per order: the same again is safe, another ending is refused.',
  answers: {
    200: { description: 'The hold has ended.', body: OrderSchema, examples: { canceled: canceledOrder } },
    202: inDoubt,
  },
  problems,
})
