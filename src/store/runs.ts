/** Metered runs. Whatever decides about one does so under the row lock of its order. */
import { type Kysely, sql } from 'kysely'
import { jsonArrayFrom } from 'kysely/helpers/postgres'
import type pg from 'pg'
import { isOpen, type Order } from '../domain/order.ts'
import type { Transfer } from '../domain/posting.ts'
import type { RunClosing, UsageLine } from '../domain/run.ts'
import { transaction } from '../runtime/database.ts'
import { lockOrder } from './budget.ts'
import { requestCancel } from './orders.ts'
import type { Tables } from './tables.ts'

export interface Run {
  order: Order
  /** Null while it takes usage, or where its order ended without it. */
  closedBy: RunClosing | null
  /** The order has ended, and what could not be captured is booked. */
  finished: boolean
  /** In the order of recording. */
  usage: UsageLine[]
}

export async function readRun(db: Kysely<Tables>, tenantId: string, orderId: string): Promise<Run | null> {
  const row = await db
    .selectFrom('runs')
    .innerJoin('orders', (join) =>
      join.onRef('orders.tenant_id', '=', 'runs.tenant_id').onRef('orders.order_id', '=', 'runs.order_id'),
    )
    .where('runs.tenant_id', '=', tenantId)
    .where('runs.order_id', '=', orderId)
    .selectAll('orders')
    .select((eb) => [
      'runs.closed_by',
      'runs.finished_at',
      jsonArrayFrom(
        eb
          .selectFrom('usage_lines as line')
          .select(['line.meter_type', 'line.quantity', 'line.amount'])
          .whereRef('line.tenant_id', '=', 'runs.tenant_id')
          .whereRef('line.order_id', '=', 'runs.order_id')
          .orderBy('line.created_at')
          .orderBy('line.meter_type'),
      ).as('usage'),
    ])
    .executeTakeFirst()
  if (row === undefined) return null
  const { closed_by, finished_at, usage, ...order } = row
  return { order, closedBy: closed_by, finished: finished_at !== null, usage }
}

/** A line of usage as it was first recorded. */
export interface RecordedUsage extends UsageLine {
  /** The run's usage up to and with this line, minor units. */
  used_after: number
  created_at: Date
}

export async function readUsage(
  db: Kysely<Tables>,
  tenantId: string,
  orderId: string,
  meterType: string,
): Promise<RecordedUsage | null> {
  const line = await db
    .selectFrom('usage_lines')
    .select(['meter_type', 'quantity', 'amount', 'used_after', 'created_at'])
    .where('tenant_id', '=', tenantId)
    .where('order_id', '=', orderId)
    .where('meter_type', '=', meterType)
    .executeTakeFirst()
  return line ?? null
}

type UsageAdded =
  | { kind: 'recorded'; line: RecordedUsage }
  /** The run has a line of this meter, whatever its quantity. */
  | { kind: 'known'; line: RecordedUsage }
  /** The run takes no usage: not yet, or not any more. */
  | { kind: 'refused' }
  /** The run's usage would come to more than `usedMax`. */
  | { kind: 'too_much' }

/** Records a line while the run takes usage. Whoever ends the run waits for it, or it finds the run ended. */
export function addUsage(
  db: Kysely<Tables>,
  tenantId: string,
  orderId: string,
  line: UsageLine & { price: number; per: number },
  usedMax: number,
): Promise<UsageAdded> {
  return transaction(db, async (tx) => {
    const order = await lockOrder(tx, tenantId, orderId)
    const known = await readUsage(tx, tenantId, orderId, line.meter_type)
    if (known !== null) return { kind: 'known', line: known }
    const run = await tx
      .selectFrom('runs')
      .select((eb) => [
        'closed_at',
        eb
          .selectFrom('usage_lines as line')
          .select(sql<number>`coalesce(sum(line.amount), 0)::bigint`.as('used'))
          .whereRef('line.tenant_id', '=', 'runs.tenant_id')
          .whereRef('line.order_id', '=', 'runs.order_id')
          .as('used'),
      ])
      .where('tenant_id', '=', tenantId)
      .where('order_id', '=', orderId)
      .executeTakeFirstOrThrow()
    if (order?.status !== 'authorized' || run.closed_at !== null) return { kind: 'refused' }
    const usedAfter = (run.used ?? 0) + line.amount
    if (usedAfter > usedMax) return { kind: 'too_much' }
    const recorded = await tx
      .insertInto('usage_lines')
      .values({ ...line, tenant_id: tenantId, order_id: orderId, used_after: usedAfter })
      .returning(['meter_type', 'quantity', 'amount', 'used_after', 'created_at'])
      .executeTakeFirstOrThrow()
    return { kind: 'recorded', line: recorded }
  })
}

/**
 * From here on the run takes no usage. A hold that is not placed yet is given up with it: recovery closes its payment.
 * False where it had been closed before, or its order has ended without it. `nextLookMs`: when a worker looks whether it
 * has been finished.
 */
export function closeRun(
  db: Kysely<Tables>,
  tenantId: string,
  orderId: string,
  closedBy: RunClosing,
  nextLookMs: number,
): Promise<boolean> {
  return transaction(db, async (tx) => {
    const order = await lockOrder(tx, tenantId, orderId)
    if (order === null || (order.status !== 'authorized' && !isOpen(order.status))) return false
    const closed = await tx
      .updateTable('runs')
      .set({
        closed_at: sql`clock_timestamp()`,
        closed_by: closedBy,
        looks: 0,
        next_look_at: sql`clock_timestamp() + ${nextLookMs}::float8 * interval '1 ms'`,
      })
      .where('tenant_id', '=', tenantId)
      .where('order_id', '=', orderId)
      .where('closed_at', 'is', null)
      .executeTakeFirst()
    if (closed.numUpdatedRows === 0n) return false
    if (isOpen(order.status)) await requestCancel(tx, tenantId, orderId)
    return true
  })
}

/** The run needs no more looks. Repeating it changes nothing. */
export function finishRun(db: Kysely<Tables>, order: Order, transfers: readonly Transfer[]): Promise<void> {
  const { tenant_id, order_id } = order
  return transaction(db, async (tx) => {
    if (transfers.length > 0) {
      await tx
        .insertInto('ledger_transfers')
        .values(transfers.map((transfer) => ({ ...transfer, tenant_id, order_id })))
        .onConflict((conflict) => conflict.constraint('transfer_per_business_fact').doNothing())
        .execute()
    }
    await tx
      .updateTable('runs')
      .set({ finished_at: sql`now()` })
      .where('tenant_id', '=', tenant_id)
      .where('order_id', '=', order_id)
      .where('finished_at', 'is', null)
      .execute()
  })
}

/**
 * Runs that have expired, or were closed and not finished since, those first that wait longest. Each is claimed by moving
 * its `next_look_at` on: from `firstMs`, doubling to 15 min, with jitter.
 */
export async function claimDueRuns(
  pool: pg.Pool,
  limits: { firstMs: number; atMost: number },
): Promise<{ tenantId: string; orderId: string }[]> {
  const { rows } = await pool.query<{ tenant_id: string; order_id: string }>(
    // 2^20 is beyond 15 min for any first interval of a millisecond or more; the cap keeps the power in range.
    `UPDATE runs r SET looks = r.looks + 1,
       next_look_at = clock_timestamp() + least($1::float8 * 2 ^ least(r.looks, 20), 900000) * (0.75 + random() / 2) * interval '1 ms'
     FROM (SELECT tenant_id, order_id FROM runs
           WHERE finished_at IS NULL AND next_look_at <= now()
           ORDER BY next_look_at LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED) due
     WHERE r.tenant_id = due.tenant_id AND r.order_id = due.order_id
     RETURNING r.tenant_id, r.order_id`,
    [limits.firstMs, limits.atMost],
  )
  return rows.map((row) => ({ tenantId: row.tenant_id, orderId: row.order_id }))
}
