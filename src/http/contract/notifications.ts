/** Contract of events to the merchant, and of the provider's to us. */
import { at, orderId, pageOf } from './examples.ts'
import { operation } from './operation.ts'
import { count, flag, id, moment, named, object, orNull, page, text, words } from './schema.ts'

const endpoint = {
  object: words('webhook_endpoint'),
  url: text,
  status: words('enabled', 'disabled'),
  disabled_reason: orNull(text),
  disabled_at: orNull(moment),
  last_success_at: orNull(moment),
  created_at: moment,
  updated_at: moment,
}
const secret = { ...text, description: 'signs events as Standard Webhooks has it; shown this once' }

const EndpointSchema = named('WebhookEndpoint', object(endpoint))
const NewEndpointSchema = named('WebhookEndpointWithSecret', object({ ...endpoint, secret }))

const anEndpoint = {
  object: 'webhook_endpoint',
  url: 'https://shop.example/hooks',
  status: 'enabled',
  disabled_reason: null,
  disabled_at: null,
  last_success_at: at,
  created_at: at,
  updated_at: at,
}

export const deliveryProperties = {
  id: id('dlv'),
  object: words('webhook_delivery'),
  event_id: id('evt'),
  type: text,
  order_id: id('ord'),
  attempt: count,
  delivered: flag,
  http_status: orNull(count),
  error: orNull(text),
  duration_ms: count,
  created_at: moment,
}

const DeliverySchema = named('WebhookDelivery', object(deliveryProperties))
export const DeliveryList = page('WebhookDeliveryList', DeliverySchema)

export const deliveries = pageOf({
  id: 'dlv_01k0f5x6c9gq2b4s8nw0ty5mev',
  object: 'webhook_delivery',
  event_id: 'evt_01k0f5x5t3hkz7r1d9p6v2x8qa',
  type: 'order.paid',
  order_id: orderId,
  attempt: 1,
  delivered: true,
  http_status: 200,
  error: null,
  duration_ms: 87,
  created_at: at,
})

export const putEndpoint = operation({
  operationId: 'putWebhookEndpoint',
  bodies: { endpoint: { url: 'https://shop.example/hooks' } },
  tag: 'Notifications',
  summary: 'Set where events go',
  description:
    'Makes a new secret; the one before signs too for 24 hours. An endpoint that was disabled is enabled again.',
  answers: {
    200: {
      description: 'The endpoint, with its new secret.',
      body: NewEndpointSchema,
      examples: { endpoint: { ...anEndpoint, secret: 'whsec_ZXhhbXBsZSBvZiBhIHNlY3JldCwgMzIgYnl0ZXMhISE=' } },
    },
  },
})

export const readEndpoint = operation({
  operationId: 'readWebhookEndpoint',
  tag: 'Notifications',
  summary: 'Where events go',
  answers: { 200: { description: 'The endpoint.', body: EndpointSchema, examples: { endpoint: anEndpoint } } },
  problems: ['not_found'],
})

export const deleteEndpoint = operation({
  operationId: 'deleteWebhookEndpoint',
  tag: 'Notifications',
  summary: 'Deliver no more events',
  answers: { 204: { description: 'There is no endpoint any more.' } },
  problems: ['not_found'],
})

export const listDeliveries = operation({
  operationId: 'listWebhookDeliveries',
  tag: 'Notifications',
  summary: 'What became of deliveries, newest first',
  answers: { 200: { description: 'A page of deliveries.', body: DeliveryList, examples: { page: deliveries } } },
})

/** `signatureHeader` is the provider's. */
export function receiveEvent(signatureHeader: string) {
  return operation({
    operationId: 'receiveProviderEvent',
    tag: 'Notifications',
    summary: 'The inbox for the payment provider’s events',
    description: 'The signature is over the raw bytes. A duplicate is answered alike and has no effect.',
    headers: { [signatureHeader]: text },
    answers: {
      200: {
        description: 'Kept; workers do the rest.',
        body: object({ received: { const: true } }),
        examples: { received: { received: true } },
      },
    },
    problems: ['webhook_signature_invalid'],
  })
}
