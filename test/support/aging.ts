/** What time does to an order, done to its rows: no test waits for a lease, a window or an expiry. */
import { type Kysely, sql } from 'kysely'
import type { Order } from '../../src/domain/order.ts'
import type { Tables } from '../../src/store/tables.ts'

/** The order that an attempt's key has made. Throws where there is none. */
export function orderOf(db: Kysely<Tables>, key: string): Promise<Order> {
  return db.selectFrom('orders').selectAll().where('attempt_key', '=', key).executeTakeFirstOrThrow()
}

/** Whoever works on the attempt has had it too long, and the order may be asked about. */
export async function endLease(db: Kysely<Tables>, key: string): Promise<void> {
  await db
    .updateTable('attempts')
    .set({ lease_expires_at: sql`clock_timestamp() - interval '1 ms'` })
    .where('key', '=', key)
    .where('lease_token', 'is not', null)
    .execute()
  await makeDue(db, key)
}

/** The pause before the next ask is over. */
export async function makeDue(db: Kysely<Tables>, key: string): Promise<void> {
  await db
    .updateTable('orders')
    .set({ next_ask_at: sql`clock_timestamp() - interval '1 ms'` })
    .where('attempt_key', '=', key)
    .execute()
}

/** The order was claimed so much earlier, and may be asked about. */
export async function makeOlder(db: Kysely<Tables>, key: string, minutes: number): Promise<void> {
  await db
    .updateTable('orders')
    .set({ created_at: sql`created_at - ${minutes} * interval '1 minute'` })
    .where('attempt_key', '=', key)
    .execute()
  await makeDue(db, key)
}

/** Nothing that was sent can still arrive, and the order may be asked about. */
export async function endSending(db: Kysely<Tables>, key: string): Promise<void> {
  await db
    .updateTable('orders')
    .set({ last_send_before: sql`clock_timestamp() - interval '10 minutes 1 second'` })
    .where('attempt_key', '=', key)
    .execute()
  await makeDue(db, key)
}

/** The order has waited too long. */
export async function expire(db: Kysely<Tables>, key: string): Promise<void> {
  await db
    .updateTable('orders')
    .set({ expires_at: sql`clock_timestamp() - interval '1 ms'` })
    .where('attempt_key', '=', key)
    .execute()
  await makeDue(db, key)
}
