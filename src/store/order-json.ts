/** Orders as they come out of SQL functions: `to_jsonb(orders)`, whose timestamps are texts. */
import type { Order } from '../domain/order.ts'

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
