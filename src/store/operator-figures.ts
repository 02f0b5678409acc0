/** What waits for a person or a worker in one tenant, and how much has been begun lately. */
import { type Kysely, sql } from 'kysely'
import { firstIdFrom } from '../domain/ids.ts'
import { type EventViewer, isNobodysFor } from './jobs.ts'
import { isLatestDelivery } from './merchant-events.ts'
import type { Tables } from './tables.ts'

/** Counts stop here: whoever has more to look at needs no exact number, and counting stays cheap. */
export const countedMax = 1000
/** Likewise, of a minute. */
export const startedMax = 10_000

interface Waiting {
  needs_reconcile: number
  /** When the oldest of them was made. */
  oldest_needs_reconcile_at: Date | null
  /** Ended or holding their money, and flagged. */
  flagged: number
  dead_jobs: number
  /** Likewise, for events that name no tenant. */
  unnamed_dead_jobs: number
  due_jobs: number
  /** For how long the longest waiting job has been due: since then. */
  oldest_due_at: Date | null
  uncertain_emails: number
  failed_emails: number
  /** Events to the merchant whose latest delivery failed. */
  undelivered: number
  /** Received in the last 7 days. */
  foreign_events: number
  mismatched_events: number
  /** Likewise, those of the tenant's account that name no tenant. */
  unnamed_events: number
}

/** Every count reads an index that holds what is unfinished alone, and stops at `countedMax`. */
export async function readWaiting(db: Kysely<Tables>, viewer: EventViewer): Promise<Waiting> {
  const { tenantId, account } = viewer
  const countUpTo = (rows: ReturnType<typeof sql>) =>
    sql<number>`(SELECT count(*) FROM (${rows} LIMIT ${sql.lit(countedMax)}) counted)`
  const toDecide = sql`orders WHERE tenant_id = ${tenantId} AND (status = 'needs_reconcile' OR reconcile_reason IS NOT NULL)`
  const emails = sql`emails WHERE tenant_id = ${tenantId} AND state IN ('uncertain', 'failed')`
  const strange = sql`provider_events WHERE state IN ('foreign', 'mismatched') AND received_at > now() - interval '7 days'`
  const own = sql`${strange} AND tenant_id = ${tenantId}`
  const { rows } = await sql<Waiting>`SELECT
    ${countUpTo(sql`SELECT FROM ${toDecide} AND status = 'needs_reconcile'`)} AS needs_reconcile,
    (SELECT created_at FROM ${toDecide} AND status = 'needs_reconcile' ORDER BY order_id LIMIT 1)
      AS oldest_needs_reconcile_at,
    ${countUpTo(sql`SELECT FROM ${toDecide} AND status IN ('authorized', 'paid', 'payment_failed', 'canceled')`)}
      AS flagged,
    ${countUpTo(sql`SELECT FROM jobs WHERE tenant_id = ${tenantId} AND state = 'dead' AND state IN ('dead', 'discarded')`)}
      AS dead_jobs,
    ${countUpTo(sql`SELECT FROM jobs WHERE ${isNobodysFor(viewer)} AND state = 'dead' AND state IN ('dead', 'discarded')`)}
      AS unnamed_dead_jobs,
    due.jobs AS due_jobs,
    due.oldest AS oldest_due_at,
    ${countUpTo(sql`SELECT FROM ${emails} AND state = 'uncertain'`)} AS uncertain_emails,
    ${countUpTo(sql`SELECT FROM ${emails} AND state = 'failed'`)} AS failed_emails,
    ${countUpTo(sql`SELECT FROM event_deliveries d WHERE d.tenant_id = ${tenantId} AND NOT d.delivered
      AND ${isLatestDelivery}`)} AS undelivered,
    ${countUpTo(sql`SELECT FROM ${own} AND state = 'foreign'`)} AS foreign_events,
    ${countUpTo(sql`SELECT FROM ${own} AND state = 'mismatched'`)} AS mismatched_events,
    ${countUpTo(sql`SELECT FROM ${strange} AND tenant_id IS NULL AND account IS NOT DISTINCT FROM ${account}`)}
      AS unnamed_events
  FROM (${dueJobs(tenantId)}) due`.execute(db)
  return rows[0] as Waiting
}

/** The tenant's due jobs, topic by topic: the index of what is ready begins with the topic. */
function dueJobs(tenantId: string) {
  return sql`WITH RECURSIVE topics AS (
      (SELECT topic FROM jobs WHERE state = 'ready' ORDER BY topic LIMIT 1)
      UNION ALL
      SELECT (SELECT j.topic FROM jobs j WHERE j.state = 'ready' AND j.topic > t.topic ORDER BY j.topic LIMIT 1)
      FROM topics t WHERE t.topic IS NOT NULL)
    SELECT least(count(*), ${sql.lit(countedMax)}) AS jobs, min(job.run_at) AS oldest
    FROM topics CROSS JOIN LATERAL (
      SELECT j.run_at FROM jobs j WHERE j.state = 'ready' AND j.topic = topics.topic AND j.tenant_id = ${tenantId}
        AND j.run_at <= now() ORDER BY j.run_at LIMIT ${sql.lit(countedMax)}) job`
}

/** How many orders were begun in each of the last minutes, the present one included, the oldest first. Ids sort by time,
 * so each minute is a part of the primary key. */
export async function readStarted(
  db: Kysely<Tables>,
  tenantId: string,
  minutes: number,
  now: Date,
): Promise<{ at: Date; orders: number }[]> {
  const present = Math.floor(now.getTime() / 60_000)
  const starts = Array.from({ length: minutes }, (_, index) => new Date((present - minutes + 1 + index) * 60_000))
  const from = starts.map((start) => firstIdFrom('ord', start))
  const { rows } = await sql<{ orders: number }>`
    SELECT (SELECT count(*) FROM (SELECT FROM orders WHERE tenant_id = ${tenantId}
      AND order_id >= minute.from_id AND order_id < minute.to_id LIMIT ${sql.lit(startedMax)}) begun) AS orders
    FROM unnest(${from}::text[], ${[...from.slice(1), 'ord_z']}::text[]) WITH ORDINALITY AS minute (from_id, to_id, n)
    ORDER BY minute.n`.execute(db)
  return starts.map((at, index) => ({ at, orders: rows[index]?.orders ?? 0 }))
}
