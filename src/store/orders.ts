/** Orders: read, claim for asking, settle. */
import { type Kysely, sql } from 'kysely'
import type pg from 'pg'
import type { Order, OrderStatus } from '../domain/order.ts'
import type { Transfer } from '../domain/posting.ts'
import type { ProviderCall } from '../provider/port.ts'
import { transaction } from '../runtime/database.ts'
import { type ClaimedOrder, type OrderJson, orderFromJson, withClock } from './order-json.ts'
import type { Tables } from './tables.ts'

/** Who or what brought a change. */
export type Cause = 'answer' | 'repeat' | 'recovery' | 'notification' | 'expiry' | 'customer' | 'merchant' | 'operator'

/** What is to become of an order. Applied only where it still has a status in `from`. */
export interface Settlement {
  tenantId: string
  orderId: string
  key: string
  from: readonly OrderStatus[]
  to: OrderStatus
  /** The decision was made from ignorance: apply it only while this lease holds or, without one, nobody's does. */
  guarded: boolean
  leaseToken?: string
  /** Becomes `updated_at`. */
  at: Date
  facts: OrderFacts
  /** Absent: the attempt stays as it is. */
  attemptState?: 'resumable' | 'open' | 'settled'
  answer?: { status: number; body: string }
  transition: { cause: Cause; actor: string | null; reason: string | null }
  calls: readonly IdentifiedCall[]
  transfers: readonly Transfer[]
  jobs: readonly Job[]
  /** Give back stock and cart. */
  endsUnpaid: boolean
}

/** A call with an id of its own, so that keeping it twice is keeping it once. */
type IdentifiedCall = ProviderCall & { id: string }

/** Absent facts stay as they are, but `client_secret` and `reconcile_reason`, which every settlement says anew. */
export interface OrderFacts {
  intent_id?: string
  charge_id?: string
  payment_status?: string
  decline_code?: string
  client_secret?: string
  capture_before?: Date
  captured?: number
  maybe_sent?: boolean
  send_is_pointless?: boolean
  /** Whoever held the lease sends no more: `last_send_before` becomes now, by the database's clock. */
  sends_have_ended?: true
  cancel_requested_at?: Date
  reconcile_reason?: string
  next_ask_in_ms?: number
}

/** A row for the outbox. The payload holds ids only. */
export interface Job {
  topic: string
  business_id: string
  payload: Record<string, unknown>
}

export type Settled =
  | { applied: true }
  /** The order had moved on: this is where it stands. */
  | { applied: false; order: Order; attemptState: string; answer: { status: number; body: string } | null }

interface SettledRow {
  settled_order_id: string
  applied: boolean
  order_row: OrderJson | null
  attempt: { state: string; response_status: number | null } | null
  response_body: string | null
}

/** Settles a group of one tenant's orders in one statement and one commit; answers in the items' order. Repeating it
 * after a lost answer changes nothing more. */
export async function settleOrders(pool: pg.Pool, tenantId: string, items: readonly Settlement[]): Promise<Settled[]> {
  const { rows } = await pool.query<SettledRow>('SELECT * FROM settle_orders($1, $2, $3, $4, $5)', [
    tenantId,
    JSON.stringify(items.map(settlementJson)),
    rowsOf(items, (item) => item.calls),
    rowsOf(items, (item) => item.transfers),
    rowsOf(items, (item) => item.jobs),
  ])
  const byOrder = new Map(rows.map((row) => [row.settled_order_id, row]))
  return items.map((item) => {
    const row = byOrder.get(item.orderId)
    if (row === undefined) throw new Error(`settle_orders knows no order ${item.orderId}`)
    if (row.applied) return { applied: true }
    return {
      applied: false,
      order: orderFromJson(row.order_row as OrderJson),
      attemptState: row.attempt?.state ?? 'open',
      answer:
        row.attempt?.response_status != null && row.response_body !== null
          ? { status: row.attempt.response_status, body: row.response_body }
          : null,
    }
  })
}

function settlementJson(item: Settlement): Record<string, unknown> {
  return {
    order_id: item.orderId,
    key: item.key,
    from: item.from,
    to: item.to,
    guarded: item.guarded,
    lease_token: item.leaseToken,
    at: item.at,
    facts: item.facts,
    attempt_state: item.attemptState,
    response_status: item.answer?.status,
    response_body: item.answer?.body,
    ...item.transition,
    ends_unpaid: item.endsUnpaid,
  }
}

/** What belongs to the items, each row with its order. */
function rowsOf(items: readonly Settlement[], rows: (item: Settlement) => readonly object[]): string {
  return JSON.stringify(items.flatMap((item) => rows(item).map((row) => ({ order_id: item.orderId, ...row }))))
}

export async function readOrder(db: Kysely<Tables>, tenantId: string, orderId: string): Promise<Order | null> {
  const row = await db
    .selectFrom('orders')
    .selectAll()
    .where('tenant_id', '=', tenantId)
    .where('order_id', '=', orderId)
    .executeTakeFirst()
  return row ?? null
}

/** Newest first; one more than the page's limit where there is more. Refunds are shown as a status, so they can be asked for
 * as one. */
export function listOrders(
  db: Kysely<Tables>,
  tenantId: string,
  page: { limit: number; after: string | null },
  status?: OrderStatus | 'partially_refunded' | 'refunded',
): Promise<Order[]> {
  let query = db.selectFrom('orders').selectAll().where('tenant_id', '=', tenantId)
  if (page.after !== null) query = query.where('order_id', '<', page.after)
  if (status === 'partially_refunded') {
    query = query.where('status', '=', 'paid').where('refunded', '>', 0).whereRef('refunded', '<', 'captured')
  } else if (status === 'refunded') {
    query = query.where('status', '=', 'paid').where('refunded', '>', 0).whereRef('refunded', '>=', 'captured')
  } else if (status === 'paid') {
    query = query.where('status', '=', 'paid').where('refunded', '=', 0)
  } else if (status !== undefined) {
    query = query.where('status', '=', status)
  }
  return query
    .orderBy('order_id', 'desc')
    .limit(page.limit + 1)
    .execute()
}

/** Orders that wait longest for being asked about, and are due; each is claimed for asking by moving its `next_ask_at`
 * on: from `firstMs`, doubling to 15 min, with jitter. The claim is shared by all that ask. */
export async function claimDueOrders(
  pool: pg.Pool,
  limits: { firstMs: number; atMost: number },
): Promise<ClaimedOrder[]> {
  const { rows } = await pool.query<{ order_row: OrderJson; now: Date }>(
    `UPDATE orders o SET asks = o.asks + 1, next_ask_at = ${nextAsk('$1')}
     FROM (SELECT tenant_id, order_id FROM orders
           WHERE status IN ('pending', 'requires_action', 'needs_reconcile') AND next_ask_at <= now()
           ORDER BY next_ask_at LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED) due
     WHERE o.tenant_id = due.tenant_id AND o.order_id = due.order_id
     RETURNING to_jsonb(o) AS order_row, clock_timestamp() AS now`,
    [limits.firstMs, limits.atMost],
  )
  return rows.map((row) => withClock(row.order_row, row.now))
}

/** The same claim for one order; null where it is not open, or was asked about too recently and `evenIfRecent` is not set. */
export async function claimAsk(
  pool: pg.Pool,
  tenantId: string,
  orderId: string,
  firstMs: number,
  evenIfRecent = false,
): Promise<ClaimedOrder | null> {
  const { rows } = await pool.query<{ order_row: OrderJson; now: Date }>(
    `UPDATE orders o SET asks = o.asks + 1, next_ask_at = ${nextAsk('$3')}
     WHERE o.tenant_id = $1 AND o.order_id = $2 AND o.status IN ('pending', 'requires_action', 'needs_reconcile')
       AND ($4 OR o.next_ask_at <= now())
     RETURNING to_jsonb(o) AS order_row, clock_timestamp() AS now`,
    [tenantId, orderId, firstMs, evenIfRecent],
  )
  const [row] = rows
  return row === undefined ? null : withClock(row.order_row, row.now)
}

function nextAsk(firstMs: string): string {
  // 2^20 is beyond 15 min for any first interval of a millisecond or more; the cap keeps the power in range. An order is
  // asked about when it expires, however far the pauses have grown.
  const next = `clock_timestamp() + least(${firstMs}::float8 * 2 ^ least(o.asks, 20), 900000) * (0.75 + random() / 2) * interval '1 ms'`
  return `least(${next}, CASE WHEN o.expires_at > clock_timestamp() THEN o.expires_at END)`
}

/** Keeps calls that were made for an order outside a settlement. */
export async function recordCalls(
  db: Kysely<Tables>,
  tenantId: string,
  orderId: string,
  calls: readonly ProviderCall[],
): Promise<void> {
  if (calls.length === 0) return
  await db
    .insertInto('provider_calls')
    .values(
      calls.map((call) => ({
        tenant_id: tenantId,
        order_id: orderId,
        operation: call.operation,
        request_id: call.requestId,
        outcome: call.outcome,
        http_status: call.httpStatus,
        error_code: call.errorCode,
        duration_ms: Math.round(call.durationMs),
        replayed: call.replayed,
        started_at: call.startedAt,
      })),
    )
    .execute()
}

/** Books facts about an order that has ended otherwise, in one transaction; each once, whoever repeats it. */
export async function recordFacts(
  db: Kysely<Tables>,
  order: Order,
  facts: { transfers: readonly Transfer[]; jobs: readonly Job[]; reconcileReason?: string },
): Promise<void> {
  const { tenant_id, order_id } = order
  await transaction(db, async (tx) => {
    if (facts.reconcileReason !== undefined) {
      await tx
        .updateTable('orders')
        .set({ reconcile_reason: facts.reconcileReason })
        .where('tenant_id', '=', tenant_id)
        .where('order_id', '=', order_id)
        .execute()
    }
    if (facts.transfers.length > 0) {
      await tx
        .insertInto('ledger_transfers')
        .values(facts.transfers.map((transfer) => ({ ...transfer, tenant_id, order_id })))
        .onConflict((conflict) => conflict.constraint('transfer_per_business_fact').doNothing())
        .execute()
    }
    if (facts.jobs.length > 0) {
      await tx
        .insertInto('jobs')
        .values(
          facts.jobs.map((job) => ({ ...job, tenant_id, lease_token: null, last_error: null, finished_at: null })),
        )
        .onConflict((conflict) => conflict.columns(['tenant_id', 'topic', 'business_id']).doNothing())
        .execute()
    }
  })
}

/** Somebody gives the order up: from now on nothing is sent for it. False where that was so before, or it is not open. */
export async function requestCancel(db: Kysely<Tables>, tenantId: string, orderId: string): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('orders')
    .set({ cancel_requested_at: sql`now()` })
    .where('tenant_id', '=', tenantId)
    .where('order_id', '=', orderId)
    .where('status', 'in', ['pending', 'requires_action', 'needs_reconcile'])
    .where('cancel_requested_at', 'is', null)
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}

/** Keeps which payment is an open order's, where that was not known yet. It has been sent, then. */
export async function learnPayment(
  db: Kysely<Tables>,
  tenantId: string,
  orderId: string,
  intentId: string,
): Promise<void> {
  await db
    .updateTable('orders')
    .set({ intent_id: intentId, maybe_sent: true })
    .where('tenant_id', '=', tenantId)
    .where('order_id', '=', orderId)
    .where('intent_id', 'is', null)
    .where('status', 'in', ['pending', 'requires_action', 'needs_reconcile'])
    .execute()
}
