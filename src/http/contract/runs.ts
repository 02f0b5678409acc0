/** Contract of meters and metered runs. */
import { keyProblems } from './checkouts.ts'
import { activeRun, at, pageOf, runId } from './examples.ts'
import { idempotencyKeyHeader, operation } from './operation.ts'
import { amount, count, currency, flag, id, listOf, moment, named, object, page, text, words } from './schema.ts'

const MeterSchema = named(
  'Meter',
  object({
    object: words('meter'),
    type: text,
    price: amount,
    per: { type: 'integer', minimum: 1, description: 'so many units cost `price`' },
    currency,
  }),
)

const meter = { object: 'meter', type: 'input_tokens', price: 300, per: 1000000, currency: 'EUR' }

export const listMeters = operation({
  operationId: 'listMeters',
  tag: 'Runs',
  summary: 'Meters, by type',
  answers: {
    200: { description: 'A page of meters.', body: page('MeterList', MeterSchema), examples: { page: pageOf(meter) } },
  },
})

export const putMeter = operation({
  operationId: 'putMeter',
  bodies: { meter: { price: 300, per: 1000000, currency: 'EUR' } },
  tag: 'Runs',
  summary: 'Create or replace a meter',
  description: 'Usage that is recorded already keeps the price that it was recorded at.',
  answers: { 200: { description: 'The meter as it is now.', body: MeterSchema, examples: { meter } } },
  problems: ['currency_mismatch'],
})

const RunSchema = named(
  'Run',
  object({
    id: id('run'),
    object: words('run'),
    status: words('pending', 'active', 'finalizing', 'finalized', 'expired', 'failed', 'canceled'),
    order_id: id('ord'),
    currency,
    hold_amount: amount,
    used_amount: amount,
    captured: amount,
    usage: listOf(object({ meter_type: text, quantity: count, amount })),
    created_at: moment,
  }),
)

const UsageSchema = named(
  'Usage',
  object({
    object: words('usage'),
    run_id: id('run'),
    meter_type: text,
    quantity: count,
    amount,
    currency,
    used_amount: { ...amount, description: 'of the run, when this line was recorded' },
    over_hold: flag,
    created_at: moment,
  }),
)

const usage = {
  object: 'usage',
  run_id: runId,
  meter_type: 'input_tokens',
  quantity: 120000,
  amount: 36,
  currency: 'EUR',
  used_amount: 36,
  over_hold: false,
  created_at: at,
}
const fresh = { ...activeRun, used_amount: 0, usage: [] }
const ended = { ...activeRun, status: 'finalized', captured: 36 }

export const startRun = operation({
  operationId: 'startRun',
  bodies: {
    run: {
      customer: { email: 'ada@example.com' },
      payment_method: 'pm_card_visa',
      currency: 'EUR',
      hold_amount: 500,
    },
  },
  tag: 'Runs',
  summary: 'Place the hold of a metered run',
  description: 'At most one hold per Idempotency-Key. The card is charged off-session: 3-D Secure is a decline here.',
  headers: idempotencyKeyHeader,
  answers: {
    201: {
      description: 'The hold is placed; usage is taken.',
      body: RunSchema,
      examples: { active: fresh },
      headers: ['Location', 'Idempotent-Replayed'],
    },
    202: {
      description: 'The provider’s word is in doubt. Repeat with the same key.',
      body: RunSchema,
      examples: { pending: { ...fresh, status: 'pending' } },
      headers: ['Retry-After', 'Idempotent-Replayed'],
    },
  },
  problems: [
    ...keyProblems,
    'card_declined',
    'payment_method_invalid',
    'run_closed',
    'currency_mismatch',
    'amount_not_chargeable',
    'provider_unavailable',
    'overloaded',
  ],
})

export const readRun = operation({
  operationId: 'readRun',
  tag: 'Runs',
  summary: 'One run',
  answers: { 200: { description: 'The run.', body: RunSchema, examples: { active: activeRun } } },
  problems: ['not_found'],
})

export const recordUsage = operation({
  operationId: 'recordUsage',
  bodies: { usage: { meter_type: 'input_tokens', quantity: 120000 } },
  tag: 'Runs',
  summary: 'Record usage',
  description: 'One line per run and meter. The same again is a replay; another quantity is refused.',
  answers: {
    200: {
      description: 'It had been recorded before; this is what was recorded then.',
      body: UsageSchema,
      examples: { replayed: usage },
      headers: ['Idempotent-Replayed'],
    },
    201: { description: 'Recorded.', body: UsageSchema, examples: { recorded: usage } },
  },
  problems: [
    'not_found',
    'usage_conflict',
    'run_closed',
    'order_state_conflict',
    'unknown_meter',
    'currency_mismatch',
    'amount_not_chargeable',
  ],
})

export const finalizeRun = operation({
  operationId: 'finalizeRun',
  tag: 'Runs',
  summary: 'End a run and capture what was used',
  description: 'Captures the smaller of usage and hold, once; nothing used lets the hold go. The same again is safe.',
  answers: {
    200: { description: 'The run has ended.', body: RunSchema, examples: { finalized: ended } },
    202: {
      description: 'Usage is no longer taken; the provider’s word is in doubt and it is asked again.',
      body: RunSchema,
      examples: { finalizing: { ...activeRun, status: 'finalizing' } },
      headers: ['Retry-After'],
    },
  },
  problems: ['not_found', 'provider_unavailable'],
})
