/** The inbox: every notification of the provider once, and what has come of it. */
import { type Kysely, type Selectable, sql } from 'kysely'
import { isId } from '../domain/ids.ts'
import type { ProviderEvent } from '../provider/port.ts'
import { carryingTrace } from '../runtime/tracing.ts'
import { nobody } from './jobs.ts'
import type { Tables } from './tables.ts'

export type StoredEvent = Selectable<Tables['provider_events']>

/** The topic of the job that handles an event; its business id is the event's. */
const eventTopic = 'provider_event'

/**
 * Keeps an event and its job in one statement and one commit; false where it has been kept before. One that is not
 * `wanted` is kept as ignored, without a job. One that names a tenant which is not here names none: it would be shown to
 * nobody.
 */
export async function acceptEvent(
  db: Kysely<Tables>,
  provider: string,
  event: ProviderEvent,
  wanted: boolean,
): Promise<boolean> {
  const row = rowOf(provider, event, wanted)
  const { payload } = carryingTrace({ payload: {} })
  const accepted = await db
    .with('accepted', (query) =>
      query
        .insertInto('provider_events')
        .values({ ...row, tenant_id: tenantThatIsHere(row.tenant_id) })
        .onConflict((conflict) => conflict.columns(['provider', 'event_id']).doNothing())
        .returning(['event_id', 'state', 'tenant_id']),
    )
    .with('job', (query) =>
      query
        .insertInto('jobs')
        .columns(['tenant_id', 'topic', 'business_id', 'payload'])
        .expression((expression) =>
          expression
            .selectFrom('accepted')
            .select([
              sql<string>`coalesce(accepted.tenant_id, ${nobody})`.as('tenant_id'),
              sql<string>`${eventTopic}`.as('topic'),
              'accepted.event_id as business_id',
              sql<object>`${JSON.stringify(payload)}::jsonb`.as('payload'),
            ])
            .where('accepted.state', '=', 'waiting'),
        )
        .onConflict((conflict) => conflict.columns(['tenant_id', 'topic', 'business_id']).doNothing()),
    )
    .selectFrom('accepted')
    .select('event_id')
    .executeTakeFirst()
  return accepted !== undefined
}

/** Whose order an event says that it is about; null where it names none of the form of ours. */
export function orderSaid({
  metadata: { tenant, order },
}: ProviderEvent): { tenantId: string; orderId: string } | null {
  // Payments that are not ours may carry anything in fields of these names.
  const isOurs = tenant !== undefined && order !== undefined && shortText.test(tenant) && isId('ord', order)
  return isOurs ? { tenantId: tenant, orderId: order } : null
}

function rowOf(provider: string, event: ProviderEvent, wanted: boolean) {
  const said = orderSaid(event)
  return {
    provider,
    event_id: event.id,
    type: event.type,
    account: word(event.account),
    livemode: event.livemode,
    created_at: event.createdAt,
    object: event.object,
    readable: event.readable,
    intent_id: word(event.intentId),
    charge_id: word(event.chargeId),
    refund_id: word(event.refundId),
    dispute_id: word(event.disputeId),
    status: word(event.status),
    amount: event.amount,
    amount_captured: event.amountCaptured,
    currency: word(event.currency),
    decline_code: word(event.declineCode),
    tenant_id: said?.tenantId ?? null,
    order_id: said?.orderId ?? null,
    state: wanted ? ('waiting' as const) : ('ignored' as const),
    handled_at: null,
  }
}

function tenantThatIsHere(named: string | null) {
  return sql<string | null>`(SELECT t.tenant_id FROM tenants t WHERE t.tenant_id = ${named})`
}

const shortText = /^[\w.:-]{1,255}$/

/** Ids and words of a vocabulary look like this; anything else is none of them and may be about a person. */
export function isWord(text: string): boolean {
  return shortText.test(text)
}

function word(text: string | null): string | null {
  return text !== null && isWord(text) ? text : null
}

export async function readEvent(db: Kysely<Tables>, provider: string, eventId: string): Promise<StoredEvent | null> {
  const row = await db
    .selectFrom('provider_events')
    .selectAll()
    .where('provider', '=', provider)
    .where('event_id', '=', eventId)
    .executeTakeFirst()
  return row ?? null
}

/** What has come of an event. */
export interface EventEnd {
  state: 'done' | 'ignored' | 'foreign' | 'mismatched'
  /** A word of a closed vocabulary. */
  reason: string
  /** The order that it is about, where that is certain. */
  order: { tenant_id: string; order_id: string } | null
}

/** Says what has come of an event. */
export async function endEvent(db: Kysely<Tables>, event: StoredEvent, end: EventEnd): Promise<void> {
  await db
    .updateTable('provider_events')
    .set({
      state: end.state,
      reason: end.reason,
      handled_at: sql`clock_timestamp()`,
      ...(end.order === null ? {} : { tenant_id: end.order.tenant_id, order_id: end.order.order_id }),
    })
    .where('provider', '=', event.provider)
    .where('event_id', '=', event.event_id)
    .execute()
}

interface EventFilter {
  state?: StoredEvent['state']
  type?: string
  order?: { tenantId: string; orderId: string }
  /** Those about this tenant. */
  tenantId?: string
  /** Those that name no tenant, of this account (null for the credentials' own). */
  unnamedOf?: { account: string | null }
}

/** Newest first; one more than the page's limit where there is more. `after`: the `eventCursor` of the last one seen;
 * one that no event has given starts at the newest. */
export function listEvents(
  db: Kysely<Tables>,
  page: { limit: number; after: string | null },
  filter: EventFilter = {},
): Promise<StoredEvent[]> {
  let query = db.selectFrom('provider_events').selectAll()
  // Written out, so that the partial index answers: what fits is far more than what does not.
  if (filter.state !== undefined) query = query.where(sql<boolean>`state = ${sql.lit(filter.state)}`)
  if (filter.type !== undefined) query = query.where('type', '=', filter.type)
  if (filter.order !== undefined) {
    query = query.where('tenant_id', '=', filter.order.tenantId).where('order_id', '=', filter.order.orderId)
  }
  if (filter.tenantId !== undefined) query = query.where('tenant_id', '=', filter.tenantId)
  if (filter.unnamedOf !== undefined) {
    query = query.where('tenant_id', 'is', null).where('account', 'is not distinct from', filter.unnamedOf.account)
  }
  const [, receivedMs, eventId] = /^(\d{1,15}) (.+)$/.exec(page.after ?? '') ?? []
  if (receivedMs !== undefined && eventId !== undefined) {
    query = query.where(sql<boolean>`(received_at, event_id) < (${new Date(Number(receivedMs))}, ${eventId})`)
  }
  return query
    .orderBy('received_at', 'desc')
    .orderBy('event_id', 'desc')
    .limit(page.limit + 1)
    .execute()
}

export function eventCursor(event: StoredEvent): string {
  return `${event.received_at.getTime()} ${event.event_id}`
}

/** Forgets events that were received longer ago, the oldest first; resolves with how many. */
export async function deleteEvents(
  db: Kysely<Tables>,
  { olderThanDays, atMost }: { olderThanDays: number; atMost: number },
): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('provider_events')
    .where((where) =>
      where(
        where.refTuple('provider', 'event_id'),
        'in',
        where
          .selectFrom('provider_events')
          .select(['provider', 'event_id'])
          .where('received_at', '<', sql<Date>`now() - ${olderThanDays}::float8 * interval '1 day'`)
          .orderBy('received_at')
          .limit(atMost)
          .forUpdate()
          .skipLocked()
          .$asTuple('provider', 'event_id'),
      ),
    )
    .executeTakeFirst()
  return Number(numDeletedRows)
}
