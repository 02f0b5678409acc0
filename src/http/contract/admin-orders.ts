/** Contract of orders as operators see them. */
import { AuditEntrySchema } from './admin.ts'
import { at, heldOrder, pageOf, unclearOrder } from './examples.ts'
import { deliveryProperties } from './notifications.ts'
import { operation } from './operation.ts'
import { metadata, orderMaybe, orderMaybeFull, orderProperties } from './order.ts'
import {
  amount,
  count,
  currency,
  flag,
  id,
  listOf,
  moment,
  named,
  object,
  orNull,
  page,
  type Schema,
  text,
  words,
} from './schema.ts'

const own = {
  attempt_key: text,
  kind: words('checkout', 'run'),
  capture: words('automatic', 'manual'),
  maybe_sent: { ...flag, description: 'false: the provider surely has not been asked to charge' },
  asks: { ...count, description: 'how often the provider was asked about it' },
  next_ask_at: orNull(moment),
  expires_at: orNull(moment),
  cancel_requested_at: orNull(moment),
}

const OrderSchema = named('AdminOrder', object({ ...orderProperties, ...own }, orderMaybe))

const OrderInListSchema = named(
  'AdminOrderInList',
  object({ ...orderProperties, ...own, status_since: moment, status_age_seconds: count }, orderMaybe),
)

function rows(properties: Record<string, Schema>): Schema {
  return listOf(object(properties))
}

function orMissing(schema: Schema): Schema {
  return { anyOf: [schema, { type: 'null' }] }
}

const times = { created_at: moment, updated_at: moment }
const { object: _object, id: _id, type: _type, order_id: _order, ...delivery } = deliveryProperties

const story = {
  customer: orMissing(object({ customer_id: id('cus'), email: orNull(text), name: orNull(text) })),
  attempt: orMissing(
    object({
      key: text,
      kind: text,
      state: words('running', 'resumable', 'open', 'settled'),
      lease_expires_at: orNull(moment),
      response_status: orNull(count),
      created_at: moment,
      settled_at: orNull(moment),
      swept_at: orNull(moment),
    }),
  ),
  provider_calls: rows({
    operation: text,
    request_id: orNull(text),
    outcome: text,
    http_status: orNull(count),
    error_code: orNull(text),
    duration_ms: count,
    replayed: flag,
    started_at: moment,
  }),
  provider_events: rows({
    provider: text,
    event_id: text,
    type: text,
    account: orNull(text),
    livemode: flag,
    created_at: moment,
    object: text,
    readable: flag,
    intent_id: orNull(text),
    charge_id: orNull(text),
    refund_id: orNull(text),
    dispute_id: orNull(text),
    status: orNull(text),
    amount: orNull(count),
    amount_captured: orNull(count),
    currency: orNull(text),
    decline_code: orNull(text),
    state: text,
    reason: orNull(text),
    received_at: moment,
    handled_at: orNull(moment),
  }),
  transitions: rows({
    at: moment,
    from_status: text,
    to_status: text,
    cause: text,
    actor: orNull(text),
    reason: orNull(text),
  }),
  ledger: rows({
    transfer_id: id('tra'),
    kind: text,
    business_id: text,
    debit_account: text,
    credit_account: text,
    amount,
    currency,
    created_at: moment,
  }),
  stock_movements: rows({
    line: count,
    kind: words('reserve', 'release'),
    sku: text,
    quantity: count,
    created_at: moment,
  }),
  hold_ending: orMissing(
    object({
      action: words('capture', 'cancel'),
      amount,
      ended_at: orNull(moment),
      next_ask_at: moment,
      asks: count,
      created_at: moment,
    }),
  ),
  run: orMissing(
    object({
      closed_at: orNull(moment),
      closed_by: orNull(words('finalize', 'expiry')),
      next_look_at: moment,
      looks: count,
      finished_at: orNull(moment),
    }),
  ),
  refunds: rows({
    refund_id: id('ref'),
    attempt_key: orNull(text),
    amount,
    currency,
    reason: orNull(text),
    status: words('unsent', 'pending', 'succeeded', 'failed'),
    provider_refund_id: orNull(text),
    failure_code: orNull(text),
    maybe_sent: flag,
    send_is_pointless: flag,
    last_send_before: moment,
    doubt: orNull(text),
    next_ask_at: moment,
    asks: count,
    ...times,
  }),
  disputes: rows({
    dispute_id: text,
    amount,
    currency,
    status: text,
    withdrawn: flag,
    reinstated: flag,
    counts: flag,
    ...times,
  }),
  jobs: rows({
    topic: text,
    business_id: text,
    state: words('ready', 'done', 'dead', 'discarded'),
    run_at: moment,
    attempts: count,
    last_error: orNull(text),
    created_at: moment,
    finished_at: orNull(moment),
  }),
  emails: rows({ kind: text, state: text, reason: orNull(text), amount: orNull(count), ...times }),
  merchant_events: rows({ event_id: id('evt'), type: text, transition: text, created_at: moment }),
  deliveries: rows({ delivery_id: id('dlv'), ...delivery }),
  audit: listOf(AuditEntrySchema),
}

const OrderStorySchema = named(
  'AdminOrderStory',
  object({ ...orderProperties, ...own, metadata, ...story }, orderMaybeFull),
)

const unclear = {
  ...unclearOrder,
  attempt_key: '7f9c24e8-3b12-4fef-91e0-9a3f6b0d2c11',
  kind: 'checkout',
  capture: 'automatic',
  maybe_sent: true,
  asks: 3,
  next_ask_at: at,
  expires_at: at,
  cancel_requested_at: null,
}
const none: unknown[] = []
const nothingYet = Object.fromEntries(
  Object.entries(story).map(([name, { type }]) => [name, type === 'array' ? none : null]),
)
const held = { ...unclear, ...heldOrder, next_ask_at: null, expires_at: null }
const { reconcile_reason: _reason, ...decided } = held

export const listAdminOrders = operation({
  operationId: 'listOrdersForOperators',
  tag: 'Operators',
  summary: 'Orders by status, flag, reason, key, provider reference or email; newest first',
  description:
    'A reference is the provider’s id of a payment, refund or dispute. Of a payment that is not in our own books the provider is asked.',
  answers: {
    200: {
      description: 'A page of orders, with how long each has had its status.',
      body: page('AdminOrderList', OrderInListSchema),
      examples: { page: pageOf({ ...unclear, status_since: at, status_age_seconds: 73 }) },
    },
  },
  problems: ['provider_unavailable'],
})

export const readAdminOrder = operation({
  operationId: 'readOrderStory',
  tag: 'Operators',
  summary: 'An order’s whole story',
  description: 'Of each kind of line the newest 200.',
  answers: {
    200: {
      description: 'Everything that is kept about it.',
      body: OrderStorySchema,
      examples: {
        needs_reconcile: {
          ...unclear,
          metadata: {},
          ...nothingYet,
          transitions: [
            {
              at,
              from_status: 'pending',
              to_status: 'needs_reconcile',
              cause: 'answer',
              actor: null,
              reason: 'timeout',
            },
          ],
        },
      },
    },
  },
  problems: ['not_found'],
})

export const reconcileOrder = operation({
  operationId: 'reconcileOrder',
  tag: 'Operators',
  summary: 'Reconcile now',
  description: 'Asks the provider, as the workers would when the order’s turn comes.',
  answers: {
    200: { description: 'The order has ended, or holds its money.', body: OrderSchema, examples: { decided } },
    202: {
      description: 'It is still open.',
      body: OrderSchema,
      examples: { unclear },
      headers: ['Retry-After'],
    },
  },
  problems: [
    'not_found',
    'hold_already_ending',
    'order_state_conflict',
    'provider_unavailable',
    'amount_not_chargeable',
  ],
})

export const decideOrder = operation({
  operationId: 'decideOrder',
  bodies: { canceled: { outcome: 'canceled', reason: 'The customer called; no payment is in the dashboard' } },
  tag: 'Operators',
  summary: 'A person decides',
  description: 'Refused where the provider says otherwise.',
  answers: { 200: { description: 'The order as it stands then.', body: OrderSchema, examples: { decided } } },
  problems: ['not_found', 'provider_disagrees', 'order_state_conflict', 'provider_unavailable'],
})
