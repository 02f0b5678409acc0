/** Events for merchants, where they go, and what became of each delivery. */
import { type Kysely, sql, type Transaction } from 'kysely'
import type pg from 'pg'
import { leaving, type TraceContext } from '../runtime/tracing.ts'
import { enqueueJobs, requeueJob } from './jobs.ts'
import type { Tables } from './tables.ts'

export interface Endpoint {
  tenant_id: string
  url: string
  secret: string
  /** Signs too until then, by the database's clock. */
  previous_secret: string | null
  last_success_at: Date | null
  disabled_at: Date | null
  disabled_reason: string | null
  created_at: Date
  updated_at: Date
}

const endpointColumns = [
  'tenant_id',
  'url',
  'secret',
  sql<string | null>`CASE WHEN previous_secret_until > clock_timestamp() THEN previous_secret END`.as(
    'previous_secret',
  ),
  'last_success_at',
  'disabled_at',
  'disabled_reason',
  'created_at',
  'updated_at',
] as const

export interface NewEvent {
  event_id: string
  order_id: string
  type: string
  transition: string
  body: string
}

export interface MerchantEvent extends NewEvent {
  tenant_id: string
  created_at: Date
}

/** Keeps events, with a job for each that is new where they are `delivered`. One per order and transition, whoever repeats it. */
export async function addEvents(
  tx: Transaction<Tables>,
  tenantId: string,
  events: readonly (NewEvent & { trace: TraceContext | undefined })[],
  delivered: boolean,
): Promise<void> {
  if (events.length === 0) return
  const added = await tx
    .insertInto('merchant_events')
    .values(events.map(({ trace: _, ...event }) => ({ ...event, tenant_id: tenantId })))
    .onConflict((conflict) => conflict.constraint('event_per_order_and_transition').doNothing())
    .returning('event_id')
    .execute()
  if (!delivered) return
  await enqueueJobs(
    tx,
    tenantId,
    added.map(({ event_id }) => ({
      topic: 'deliver_event',
      business_id: event_id,
      payload: leaving({}, events.find((event) => event.event_id === event_id)?.trace),
    })),
  )
}

export async function readEndpoint(db: Kysely<Tables>, tenantId: string): Promise<Endpoint | null> {
  const row = await db
    .selectFrom('webhook_endpoints')
    .select(endpointColumns)
    .where('tenant_id', '=', tenantId)
    .executeTakeFirst()
  return row ?? null
}

/** Sets where events go, with a new secret; the one before signs too for `overlapMs`. A disabled endpoint is enabled again. */
export function putEndpoint(
  db: Kysely<Tables>,
  tenantId: string,
  { url, secret, overlapMs }: { url: string; secret: string; overlapMs: number },
): Promise<Endpoint> {
  return db
    .insertInto('webhook_endpoints')
    .values({ tenant_id: tenantId, url, secret })
    .onConflict((conflict) =>
      conflict.column('tenant_id').doUpdateSet({
        url: sql`excluded.url`,
        secret: sql`excluded.secret`,
        previous_secret: sql`webhook_endpoints.secret`,
        previous_secret_until: sql`clock_timestamp() + ${overlapMs}::float8 * interval '1 ms'`,
        disabled_at: null,
        disabled_reason: null,
        updated_at: sql`clock_timestamp()`,
      }),
    )
    .returning(endpointColumns)
    .executeTakeFirstOrThrow()
}

/** False where there was none. */
export async function deleteEndpoint(db: Kysely<Tables>, tenantId: string): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('webhook_endpoints')
    .where('tenant_id', '=', tenantId)
    .executeTakeFirst()
  return numDeletedRows === 1n
}

/** Nothing more is delivered until the tenant sets it anew. Only where it is still the one that failed (`updated_at`) and
 * nothing has been delivered since `silentSince`. */
export async function disableEndpoint(
  db: Kysely<Tables>,
  endpoint: Endpoint,
  reason: 'gone' | 'failing',
  silentSince: Date,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('webhook_endpoints')
    .set({ disabled_at: sql`clock_timestamp()`, disabled_reason: reason })
    .where('tenant_id', '=', endpoint.tenant_id)
    .where('url', '=', endpoint.url)
    .where('secret', '=', endpoint.secret)
    .where('disabled_at', 'is', null)
    .where((where) => where.or([where('last_success_at', 'is', null), where('last_success_at', '<', silentSince)]))
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

/** To the minute, so that a busy endpoint's row does not change with each delivery. */
export async function markEndpointWorks(db: Kysely<Tables>, tenantId: string): Promise<void> {
  await db
    .updateTable('webhook_endpoints')
    .set({ last_success_at: sql`clock_timestamp()` })
    .where('tenant_id', '=', tenantId)
    .where(sql<boolean>`(last_success_at IS NULL OR last_success_at < clock_timestamp() - interval '1 minute')`)
    .execute()
}

export async function readEvent(db: Kysely<Tables>, tenantId: string, eventId: string): Promise<MerchantEvent | null> {
  const row = await db
    .selectFrom('merchant_events')
    .selectAll()
    .where('tenant_id', '=', tenantId)
    .where('event_id', '=', eventId)
    .executeTakeFirst()
  return row ?? null
}

export interface Delivery {
  delivery_id: string
  event_id: string
  /** The job's try, from 1 on; a requeued job begins anew. */
  attempt: number
  delivered: boolean
  http_status: number | null
  error: string | null
  duration_ms: number
}

export async function recordDelivery(db: Kysely<Tables>, tenantId: string, delivery: Delivery): Promise<void> {
  await db
    .insertInto('event_deliveries')
    .values({ ...delivery, tenant_id: tenantId })
    .execute()
}

/** Of deliveries `d`: no later one of the same event. Written so that no plan joins with all that was ever delivered. */
export const isLatestDelivery = sql<boolean>`d.delivery_id = (SELECT max(l.delivery_id) FROM event_deliveries l
  WHERE l.tenant_id = d.tenant_id AND l.event_id = d.event_id)`

/** Newest first; one more than the page's limit where there is more. `after` is a delivery's id. `undelivered`: the
 * failed one that is its event's latest. */
export function listDeliveries(
  db: Kysely<Tables>,
  tenantId: string,
  page: { limit: number; after: string | null },
  filter: { failed?: boolean; undelivered?: boolean; eventId?: string } = {},
): Promise<(Delivery & { type: string; order_id: string; created_at: Date })[]> {
  let query = db
    .selectFrom('event_deliveries as d')
    .innerJoin('merchant_events as e', (join) =>
      join.onRef('e.tenant_id', '=', 'd.tenant_id').onRef('e.event_id', '=', 'd.event_id'),
    )
    .selectAll('d')
    .select(['e.type', 'e.order_id'])
    .where('d.tenant_id', '=', tenantId)
  // Written out, so that the partial index answers.
  if (filter.failed || filter.undelivered) query = query.where(sql<boolean>`NOT d.delivered`)
  if (filter.undelivered) query = query.where(isLatestDelivery)
  if (filter.eventId !== undefined) query = query.where('d.event_id', '=', filter.eventId)
  if (page.after !== null) query = query.where('d.delivery_id', '<', page.after)
  return query
    .orderBy('d.delivery_id', 'desc')
    .limit(page.limit + 1)
    .execute()
}

/** Delivers an event again under its id, also one that had nowhere to go when it was made. Null where there is no such
 * event, or its delivery runs this moment. */
export async function redeliverEvent(
  tx: Transaction<Tables>,
  tenantId: string,
  eventId: string,
): Promise<MerchantEvent | null> {
  const event = await readEvent(tx, tenantId, eventId)
  if (event === null) return null
  await enqueueJobs(tx, tenantId, [{ topic: 'deliver_event', business_id: eventId, payload: {} }])
  return (await requeueJob(tx, tenantId, 'deliver_event', eventId)) === null ? null : event
}

/** Forgets signing secrets that have stopped signing; resolves with how many. */
export async function forgetOldSecrets(db: Kysely<Tables>): Promise<number> {
  const { numUpdatedRows } = await db
    .updateTable('webhook_endpoints')
    .set({ previous_secret: null, previous_secret_until: null })
    .where('previous_secret_until', '<=', sql<Date>`clock_timestamp()`)
    .executeTakeFirst()
  return Number(numUpdatedRows)
}

/** Deletes up to `limit` events made longer ago than `olderThanMs`, with their deliveries; resolves with how many. */
export async function deleteOldEvents(pool: pg.Pool, olderThanMs: number, limit: number): Promise<number> {
  const { rows } = await pool.query<{ deleted: number }>(
    `WITH old AS (
       DELETE FROM merchant_events WHERE (tenant_id, event_id) IN (
         SELECT tenant_id, event_id FROM merchant_events
         WHERE created_at < now() - $1::float8 * interval '1 ms'
         ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)
       RETURNING tenant_id, event_id
     ), their_deliveries AS (
       DELETE FROM event_deliveries d USING old WHERE d.tenant_id = old.tenant_id AND d.event_id = old.event_id
     )
     SELECT count(*) AS deleted FROM old`,
    [olderThanMs, limit],
  )
  return rows[0]?.deleted ?? 0
}
