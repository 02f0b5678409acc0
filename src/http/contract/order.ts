/** The order in the contract. */
import { shownStatuses } from '../../domain/order-view.ts'
import {
  amount,
  count,
  currency,
  flag,
  id,
  listOf,
  mapOf,
  moment,
  named,
  object,
  orNull,
  text,
  words,
} from './schema.ts'

const status = words(...shownStatuses)

const payment = object(
  {
    provider: words('stripe'),
    reference: orNull({ ...text, description: 'the provider’s id of the payment' }),
    status: orNull({ ...text, description: 'in the provider’s words' }),
  },
  {
    client_secret: { ...text, description: 'only in the answer of the POST, while the order waits for the customer' },
    decline_code: text,
    capture_before: { ...moment, description: 'when a hold ends by itself' },
  },
)

export const orderProperties = {
  id: id('ord'),
  object: words('order'),
  status,
  currency,
  total: amount,
  captured: amount,
  refunded: { ...amount, description: 'minor units; refunds that have not failed' },
  disputed: flag,
  lines: listOf(named('OrderLine', object({ sku: text, name: text, quantity: count, unit_price: amount, amount }))),
  customer_id: id('cus'),
  payment,
  created_at: moment,
  updated_at: moment,
}

export const orderMaybe = {
  reconcile_reason: { ...text, description: 'why a person or the service still has to look at it' },
}

export const metadata = { ...mapOf(text), description: 'as the storefront gave it' }

const shipping_address = {
  ...object({ line1: text, city: text, country: text }, { name: text, line2: text, postal_code: text, state: text }),
  description: 'as the storefront gave it, where it did; gone once the customer is erased',
}

/** What those may see of an order who may see whom it is for. */
export const orderMaybeFull = { ...orderMaybe, shipping_address }

/** As answers of checkouts show it, which hold no personal data. */
export const OrderSchema = named('Order', object(orderProperties, orderMaybe))

/** As `GET /orders` shows it. */
export const OrderWithMetadataSchema = named(
  'OrderWithMetadata',
  object({ ...orderProperties, metadata }, orderMaybeFull),
)
