/** How holds end: decided once per order under its row lock, and claimed for asking the provider. */
import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { Order } from '../domain/order.ts'
import { transaction } from '../runtime/database.ts'
import { lockOrder } from './budget.ts'
import type { Tables } from './tables.ts'

/** A row of `hold_endings`; the migration says what each column means. */
export interface HoldEnding {
  tenant_id: string
  order_id: string
  action: 'capture' | 'cancel'
  /** Minor units; 0 where the hold is let go. */
  amount: number
  doubt: string | null
  ended_at: Date | null
  next_ask_at: Date
  asks: number
  created_at: Date
}

type EndingDecided =
  /** Now, by this call: the caller has the first `leaseMs` to itself. */
  | { kind: 'decided'; order: Order; ending: HoldEnding }
  /** Before; perhaps otherwise. */
  | { kind: 'known'; order: Order; ending: HoldEnding }
  | { kind: 'no_hold'; order: Order }

/** Decides how the order's hold ends, unless that is decided. */
export async function decideEnding(
  db: Kysely<Tables>,
  order: Order,
  wanted: Pick<HoldEnding, 'action' | 'amount'>,
  leaseMs: number,
): Promise<EndingDecided> {
  const { tenant_id, order_id } = order
  return transaction(db, async (tx) => {
    const now = (await lockOrder(tx, tenant_id, order_id)) ?? order
    const known = await readEnding(tx, tenant_id, order_id)
    if (known !== null) return { kind: 'known', order: now, ending: known }
    if (now.status !== 'authorized') return { kind: 'no_hold', order: now }
    const ending = await tx
      .insertInto('hold_endings')
      .values({ ...wanted, tenant_id, order_id, next_ask_at: later(leaseMs) })
      .returningAll()
      .executeTakeFirstOrThrow()
    return { kind: 'decided', order: now, ending }
  })
}

export async function readEnding(db: Kysely<Tables>, tenantId: string, orderId: string): Promise<HoldEnding | null> {
  const row = await db
    .selectFrom('hold_endings')
    .selectAll()
    .where('tenant_id', '=', tenantId)
    .where('order_id', '=', orderId)
    .executeTakeFirst()
  return row ?? null
}

/** It has not ended yet, for this reason; asked again from `firstMs` on, or as claimed. */
export async function leaveEnding(
  db: Kysely<Tables>,
  { tenant_id, order_id, asks }: HoldEnding,
  doubt: string,
  firstMs: number,
): Promise<void> {
  await db
    .updateTable('hold_endings')
    .set({ doubt, ...(asks === 0 ? { next_ask_at: later(firstMs) } : {}) })
    .where('tenant_id', '=', tenant_id)
    .where('order_id', '=', order_id)
    .where('ended_at', 'is', null)
    .execute()
}

/** The order has ended: nothing is asked any more. */
export async function closeEnding(db: Kysely<Tables>, { tenant_id, order_id }: HoldEnding): Promise<void> {
  await db
    .updateTable('hold_endings')
    .set({ doubt: null, ended_at: sql<Date>`coalesce(ended_at, clock_timestamp())` })
    .where('tenant_id', '=', tenant_id)
    .where('order_id', '=', order_id)
    .execute()
}

/** Endings that are due to be asked for, those that wait longest first; each is claimed by moving its `next_ask_at` on. */
export async function claimDueEndings(
  db: Kysely<Tables>,
  limits: { firstMs: number; atMost: number },
): Promise<HoldEnding[]> {
  const { rows } = await sql<HoldEnding>`
    UPDATE hold_endings h SET asks = h.asks + 1, next_ask_at = ${nextAsk('h', limits.firstMs)}
    FROM (SELECT tenant_id, order_id FROM hold_endings
          WHERE ended_at IS NULL AND next_ask_at <= now()
          ORDER BY next_ask_at LIMIT ${limits.atMost} FOR NO KEY UPDATE SKIP LOCKED) due
    WHERE h.tenant_id = due.tenant_id AND h.order_id = due.order_id
    RETURNING h.*`.execute(db)
  return rows
}

/** The same claim for one; null where it has ended or was asked for just now. */
export async function claimEndingAsk(
  db: Kysely<Tables>,
  { tenant_id, order_id }: HoldEnding,
  firstMs: number,
): Promise<HoldEnding | null> {
  const { rows } = await sql<HoldEnding>`
    UPDATE hold_endings h SET asks = h.asks + 1, next_ask_at = ${nextAsk('h', firstMs)}
    WHERE h.tenant_id = ${tenant_id} AND h.order_id = ${order_id}
      AND h.ended_at IS NULL AND h.next_ask_at <= now()
    RETURNING h.*`.execute(db)
  return rows[0] ?? null
}

/** Holds past the time until which they could be captured: the provider has let them go, and perhaps nobody has told us.
 * Claimed by moving the order's `next_ask_at` on. */
export async function claimLapsedHolds(
  db: Kysely<Tables>,
  limits: { firstMs: number; atMost: number },
): Promise<Order[]> {
  const { rows } = await sql<Order>`
    UPDATE orders o SET asks = o.asks + 1, next_ask_at = ${nextAsk('o', limits.firstMs)}
    FROM (SELECT tenant_id, order_id FROM orders
          WHERE status = 'authorized' AND capture_before <= now() AND next_ask_at <= now()
          ORDER BY capture_before LIMIT ${limits.atMost} FOR NO KEY UPDATE SKIP LOCKED) due
    WHERE o.tenant_id = due.tenant_id AND o.order_id = due.order_id
    RETURNING o.*`.execute(db)
  return rows
}

/** From `firstMs`, doubling to 15 min, with jitter. 2^20 is beyond that for any first pause of a millisecond or more. */
function nextAsk(row: 'h' | 'o', firstMs: number): RawBuilder<Date> {
  return sql`clock_timestamp() + least(${firstMs}::float8 * 2 ^ least(${sql.ref(`${row}.asks`)}, 20), 900000)
    * (0.75 + random() / 2) * interval '1 ms'`
}

function later(ms: number): RawBuilder<Date> {
  return sql`clock_timestamp() + ${ms}::float8 * interval '1 ms'`
}
