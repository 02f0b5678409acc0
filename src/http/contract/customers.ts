/** Contract of what people may wish for their data. */
import { customerId, orderId } from './examples.ts'
import { operation } from './operation.ts'
import { id, listOf, named, object, words } from './schema.ts'

const ErasureSchema = named(
  'Erasure',
  object({
    object: words('erasure'),
    customer_id: id('cus'),
    status: words('completed', 'waiting'),
    open_orders: { ...listOf(id('ord')), description: 'the first of those whose data is still needed' },
  }),
)

export const erasePersonalData = operation({
  operationId: 'erasePersonalData',
  tag: 'Customers',
  summary: 'Forget a person',
  description:
    'Names, emails, addresses, metadata, free-text reasons and digests of requests go; orders and ledger lines stay. Data of an order that is still open follows when it has settled. Doing it again is safe.',
  answers: {
    200: {
      description: 'All of it is gone.',
      body: ErasureSchema,
      examples: { completed: { object: 'erasure', customer_id: customerId, status: 'completed', open_orders: [] } },
    },
    202: {
      description: 'What open orders need follows by itself.',
      body: ErasureSchema,
      examples: { waiting: { object: 'erasure', customer_id: customerId, status: 'waiting', open_orders: [orderId] } },
    },
  },
  problems: ['not_found'],
})
