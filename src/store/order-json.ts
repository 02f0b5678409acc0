/** Orders as they come out of SQL functions: `to_jsonb(orders)`, whose timestamps are texts. */
import type { Order } from '../domain/order.ts'
import { DatabaseClock } from './database-clock.ts'

export type OrderJson = { [Column in keyof Order]: Order[Column] extends Date | null ? string | null : Order[Column] }

const timestamps = [
  'capture_before',
  'last_send_before',
  'cancel_requested_at',
  'next_ask_at',
  'expires_at',
  'created_at',
  'updated_at',
] as const

export function orderFromJson(row: OrderJson): Order {
  const order = { ...row } as unknown as Record<string, unknown>
  for (const column of timestamps) if (row[column] !== null) order[column] = new Date(row[column])
  return order as unknown as Order
}

/** An order that a statement has claimed, with the clock that its times are of. */
export interface ClaimedOrder extends Order {
  clock: DatabaseClock
}

/** `now`: the database's, in the statement. */
export function withClock(row: OrderJson, now: Date): ClaimedOrder {
  return { ...orderFromJson(row), clock: new DatabaseClock(now) }
}
