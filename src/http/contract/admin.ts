/** Contract of the operator's other pages: events, jobs, news, reports, audit. */
import { at, orderId, pageOf } from './examples.ts'
import { DeliveryList, deliveries } from './notifications.ts'
import { type AnswerInContract, operation } from './operation.ts'
import {
  amount,
  count,
  currency,
  flag,
  id,
  mapOf,
  moment,
  named,
  object,
  orNull,
  page,
  type Schema,
  text,
  words,
} from './schema.ts'

function one(body: Schema, example: unknown): Record<200, AnswerInContract> {
  return { 200: { description: 'As it is now.', body, examples: { one: example } } }
}

function many(title: string, items: Schema, example: unknown): Record<200, AnswerInContract> {
  return { 200: { description: 'A page of them.', body: page(title, items), examples: { page: pageOf(example) } } }
}

const tag = 'Operators'

export const AuditEntrySchema = named(
  'AuditEntry',
  object({
    id: id('aud'),
    object: words('audit_entry'),
    actor: text,
    key_id: orNull(text),
    request_id: text,
    action: text,
    target: object({ type: text, id: text }),
    order_id: orNull(id('ord')),
    reason: orNull({ ...text, description: 'a person’s own words' }),
    outcome: { ...text, description: '`started` while it runs' },
    created_at: moment,
    ended_at: orNull(moment),
  }),
)

export const listAudit = operation({
  operationId: 'listAuditEntries',
  tag,
  summary: 'Who did what, newest first',
  answers: many('AuditEntryList', AuditEntrySchema, {
    id: 'aud_01k0f8a1r6d3vx9m2q5w7s4hzn',
    object: 'audit_entry',
    actor: 'ops',
    key_id: '3f6b0d2c',
    request_id: 'req_2b7e6d64-54f5-4d5a-8a39-0c6f1a1f7d10',
    action: 'reconcile',
    target: { type: 'order', id: orderId },
    order_id: orderId,
    reason: null,
    outcome: 'paid',
    created_at: at,
    ended_at: at,
  }),
})

const EventSchema = named(
  'ProviderEvent',
  object({
    id: text,
    object: words('provider_event'),
    about: { ...text, description: 'the kind of object that it is about' },
    provider: text,
    type: text,
    account: orNull(text),
    livemode: flag,
    readable: flag,
    intent_id: orNull(text),
    charge_id: orNull(text),
    refund_id: orNull(text),
    dispute_id: orNull(text),
    status: orNull(text),
    amount: orNull(amount),
    amount_captured: orNull(amount),
    currency: orNull(text),
    decline_code: orNull(text),
    order_id: orNull(id('ord')),
    state: words('waiting', 'done', 'ignored', 'foreign', 'mismatched'),
    reason: orNull(text),
    created_at: moment,
    received_at: moment,
    handled_at: orNull(moment),
  }),
)

const event = {
  id: 'evt_3QxYk2',
  object: 'provider_event',
  about: 'payment_intent',
  provider: 'stripe',
  type: 'payment_intent.succeeded',
  account: null,
  livemode: false,
  readable: true,
  intent_id: 'pi_3QxYk2',
  charge_id: null,
  refund_id: null,
  dispute_id: null,
  status: 'succeeded',
  amount: 5000,
  amount_captured: 5000,
  currency: 'EUR',
  decline_code: null,
  order_id: orderId,
  state: 'done',
  reason: 'settled',
  created_at: at,
  received_at: at,
  handled_at: at,
}

export const listEvents = operation({
  operationId: 'listProviderEvents',
  tag,
  summary: 'The provider’s events, newest first',
  description: 'Those about the tenant; with `unnamed=true` those of its account that name no tenant of ours.',
  answers: many('ProviderEventList', EventSchema, event),
})

export const readEvent = operation({
  operationId: 'readProviderEvent',
  tag,
  summary: 'One event of the provider',
  answers: one(EventSchema, event),
  problems: ['not_found'],
})

export const replayEvent = operation({
  operationId: 'replayProviderEvent',
  tag,
  summary: 'Handle an event again',
  description: 'As the worker did, with the same id: what it brought before has no second effect.',
  answers: one(EventSchema, event),
  problems: ['not_found', 'provider_unavailable'],
})

const JobSchema = named(
  'Job',
  object({
    id: text,
    object: words('job'),
    topic: text,
    business_id: text,
    payload: mapOf({}),
    state: words('ready', 'done', 'dead', 'discarded'),
    running: flag,
    attempts: count,
    last_error: orNull(text),
    run_at: moment,
    created_at: moment,
    finished_at: orNull(moment),
  }),
)

const job = {
  id: `send_email:${orderId}:paid`,
  object: 'job',
  topic: 'send_email',
  business_id: `${orderId}:paid`,
  payload: {},
  state: 'dead',
  running: false,
  attempts: 12,
  last_error: 'not_reached',
  run_at: at,
  created_at: at,
  finished_at: null,
}

export const listJobs = operation({
  operationId: 'listJobs',
  tag,
  summary: 'Jobs by state',
  description:
    'The tenant’s; with `unnamed=true` those for events of the provider that the same word lists there. Either are read, requeued and discarded by their ids.',
  answers: many('JobList', JobSchema, job),
})

export const readJob = operation({
  operationId: 'readJob',
  tag,
  summary: 'One job',
  answers: one(JobSchema, job),
  problems: ['not_found'],
})

export const requeueJob = operation({
  operationId: 'requeueJob',
  tag,
  summary: 'Run a job again',
  description: 'With its business id: an effect that it has had is not had twice.',
  answers: one(JobSchema, { ...job, state: 'ready' }),
  problems: ['not_found', 'job_state_conflict'],
})

export const discardJob = operation({
  operationId: 'discardJob',
  tag,
  summary: 'Give a job up',
  answers: one(JobSchema, { ...job, state: 'discarded' }),
  problems: ['not_found', 'job_state_conflict'],
})

const EmailSchema = named(
  'Email',
  object({
    id: text,
    object: words('email'),
    order_id: id('ord'),
    kind: text,
    state: words('waiting', 'sending', 'sent', 'uncertain', 'skipped', 'failed'),
    reason: orNull(text),
    amount: orNull(amount),
    created_at: moment,
    updated_at: moment,
  }),
)

const email = {
  id: `${orderId}:paid`,
  object: 'email',
  order_id: orderId,
  kind: 'paid',
  state: 'uncertain',
  reason: 'worker_died',
  amount: null,
  created_at: at,
  updated_at: at,
}

export const listEmails = operation({
  operationId: 'listEmailsToDecide',
  tag,
  summary: 'Emails that may or may not have been sent',
  answers: many('EmailList', EmailSchema, email),
})

export const emailWasSent = operation({
  operationId: 'emailWasSent',
  tag,
  summary: 'An email has arrived',
  answers: one(EmailSchema, { ...email, state: 'sent', reason: 'decided_by_hand' }),
  problems: ['not_found', 'email_state_conflict'],
})

export const sendEmailAgain = operation({
  operationId: 'sendEmailAgain',
  tag,
  summary: 'Send an email, though it may arrive twice',
  answers: one(EmailSchema, { ...email, state: 'waiting', reason: 'decided_by_hand' }),
  problems: ['not_found', 'email_state_conflict'],
})

export const listAllDeliveries = operation({
  operationId: 'listDeliveriesForOperators',
  tag,
  summary: 'Deliveries to the merchant, newest first',
  description: '`failed` shows every one that failed, `undelivered` of each event the latest, where that one failed.',
  answers: { 200: { description: 'A page of them.', body: DeliveryList, examples: { page: deliveries } } },
})

export const redeliverEvent = operation({
  operationId: 'redeliverMerchantEvent',
  tag,
  summary: 'Deliver an event to the merchant again',
  description: 'Under its id, by which the receiver knows a repeat.',
  answers: one(object({ id: id('evt'), object: words('merchant_event'), type: text, order_id: id('ord') }), {
    id: 'evt_01k0f5x5t3hkz7r1d9p6v2x8qa',
    object: 'merchant_event',
    type: 'order.paid',
    order_id: orderId,
  }),
  problems: ['not_found', 'job_state_conflict'],
})

const ReportSchema = named(
  'Report',
  object({
    id: id('rep'),
    object: words('report'),
    state: words('running', 'done', 'failed'),
    reason: orNull(text),
    from: moment,
    to: moment,
    compared_to: { ...moment, description: 'how far it has come' },
    matched: count,
    missing_here: count,
    missing_there: count,
    amount_differs: count,
    created_at: moment,
    finished_at: orNull(moment),
  }),
)

const report = {
  id: 'rep_01k0f9c4m8y2jtd6q1v5x3nzrw',
  object: 'report',
  state: 'running',
  reason: null,
  from: '2026-11-01T00:00:00.000Z',
  to: '2026-11-30T00:00:00.000Z',
  compared_to: '2026-11-12T00:00:00.000Z',
  matched: 1204,
  missing_here: 0,
  missing_there: 1,
  amount_differs: 0,
  created_at: at,
  finished_at: null,
}

export const startReport = operation({
  operationId: 'startReport',
  bodies: { november: { from: '2026-11-01T00:00:00Z', to: '2026-11-30T00:00:00Z' } },
  tag,
  summary: 'Compare the provider’s books of a period with ours',
  answers: {
    202: {
      description: 'A worker compares.',
      body: ReportSchema,
      examples: { running: report },
      headers: ['Location'],
    },
  },
})

export const listReports = operation({
  operationId: 'listReports',
  tag,
  summary: 'Reports, newest first',
  answers: many('ReportList', ReportSchema, report),
})

export const readReport = operation({
  operationId: 'readReport',
  tag,
  summary: 'One report',
  answers: one(ReportSchema, report),
  problems: ['not_found'],
})

const FindingSchema = named(
  'Finding',
  object({
    object: words('finding'),
    kind: words('missing_here', 'missing_there', 'amount_differs'),
    order_id: orNull(id('ord')),
    reference: orNull(text),
    ours: orNull({ type: 'integer', description: 'minor units' }),
    theirs: orNull({ type: 'integer', description: 'minor units' }),
    currency: orNull(currency),
  }),
)

export const listFindings = operation({
  operationId: 'listFindings',
  tag,
  summary: 'What differs',
  answers: many('FindingList', FindingSchema, {
    object: 'finding',
    kind: 'missing_there',
    order_id: orderId,
    reference: 'pi_3QxYk2',
    ours: 5000,
    theirs: 0,
    currency: 'EUR',
  }),
  problems: ['not_found'],
})
