/**
 * Delivers events to merchants, signed as Standard Webhooks says (https://www.standardwebhooks.com). At least once: the
 * id is the same on every delivery, and the receiver drops what it knows.
 */
import { Webhook } from 'standardwebhooks'
import type { Deps } from '../../deps.ts'
import { newId } from '../../domain/ids.ts'
import { checkpoint } from '../../runtime/checkpoint.ts'
import { type PostOutcome, postOutside } from '../../runtime/post-outside.ts'
import {
  disableEndpoint,
  type Endpoint,
  type MerchantEvent,
  markEndpointWorks,
  readEndpoint,
  readEvent,
  recordDelivery,
} from '../../store/merchant-events.ts'
import { type JobEnd, JobFailure, type JobRun } from '../jobs/job-run.ts'

/** A receiver has to keep the event and answer, nothing more. */
const timeLimitMs = 10_000

const second = 1000
const minute = 60 * second
const hour = 60 * minute
/** Over three days, which outlasts a weekend: the schedule that Standard Webhooks recommends. */
const redeliveryPauses = [
  5 * second,
  5 * minute,
  30 * minute,
  2 * hour,
  5 * hour,
  10 * hour,
  14 * hour,
  20 * hour,
  24 * hour,
]

/** The pause after the n-th failure, from 1 on, ms; null gives up. */
export function redeliveryPauseMs(failures: number): number | null {
  return failures < 1 ? 0 : (redeliveryPauses[failures - 1] ?? null)
}

/** Job `deliver_event`; its business id is the event. */
export async function deliverEvent(deps: Deps, { job, deadline }: JobRun): Promise<JobEnd> {
  const { tenantId, businessId, attempts } = job
  const event = await readEvent(deps.db, tenantId, businessId)
  if (event === null) throw new JobFailure('event_missing', { isFinal: true })
  const endpoint = await readEndpoint(deps.db, tenantId)
  if (endpoint === null) throw new JobFailure('endpoint_missing', { isFinal: true })
  if (endpoint.disabled_at !== null) throw new JobFailure('endpoint_disabled', { isFinal: true })

  await checkpoint('merchant_events.delivering')
  const startedMs = performance.now()
  const outcome = await postOutside({
    url: endpoint.url,
    headers: signedHeaders(endpoint, event, new Date()),
    body: event.body,
    timeoutMs: Math.min(timeLimitMs, deadline.atMs - startedMs),
    allowPrivate: deps.config.merchantWebhookAllowPrivate,
  })
  await checkpoint('merchant_events.delivered')
  const error = errorOf(outcome)
  await recordDelivery(deps.db, tenantId, {
    delivery_id: newId('dlv'),
    event_id: event.event_id,
    attempt: attempts,
    delivered: error === null,
    http_status: outcome.kind === 'answered' ? outcome.status : null,
    error,
    duration_ms: Math.round(performance.now() - startedMs),
  })
  await checkpoint('merchant_events.recorded')
  if (error === null) {
    await markEndpointWorks(deps.db, tenantId)
    return 'done'
  }
  const gone = outcome.kind === 'answered' && outcome.status === 410
  // It has failed for three days: an event's fault only where others came through meanwhile.
  if (gone || redeliveryPauseMs(attempts) === null) {
    const disabled = await disableEndpoint(
      deps.db,
      endpoint,
      gone ? 'gone' : 'failing',
      gone ? new Date(startOfNever) : event.created_at,
    )
    if (disabled) deps.log.warn({ tenant_id: tenantId, reason: error }, 'the endpoint of a merchant was disabled')
  }
  throw new JobFailure(error, { isFinal: gone })
}

/** Later than anything that has happened. */
const startOfNever = '9999-01-01'

function signedHeaders(endpoint: Endpoint, event: MerchantEvent, at: Date): Record<string, string> {
  const secrets = endpoint.previous_secret === null ? [endpoint.secret] : [endpoint.secret, endpoint.previous_secret]
  return {
    'content-type': 'application/json; charset=utf-8',
    'user-agent': 'Checkout',
    'webhook-id': event.event_id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': secrets.map((secret) => new Webhook(secret).sign(event.event_id, at, event.body)).join(' '),
  }
}

/** Null where the receiver has taken it. A redirect is a refusal: following it would lead wherever it says. */
function errorOf(outcome: PostOutcome): string | null {
  if (outcome.kind === 'failed') return outcome.reason
  return outcome.status >= 200 && outcome.status < 300 ? null : `http_${outcome.status}`
}
