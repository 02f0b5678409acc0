/** Orders to take money back from, and what time does to refunds and endings of holds, done to their rows. */
import { type Kysely, sql } from 'kysely'
import { expect } from 'vitest'
import type { Deps } from '../../src/deps.ts'
import type { Refund } from '../../src/domain/refund.ts'
import { Gate } from '../../src/runtime/gate.ts'
import type { Tables } from '../../src/store/tables.ts'
import type { BookedPayment } from './books.ts'
import { type Client, cart, type Reply } from './client.ts'
import { payAtProvider } from './notifications.ts'
import { newKey, type Scene } from './scene.ts'

export interface Placed {
  id: string
  key: string
  /** The provider's id of its payment. */
  intent: string
}

/** A paid order over 2500 EUR cents; with `capture: 'manual'`, a hold. */
export async function place(scene: Scene, overrides: Record<string, unknown> = {}): Promise<Placed> {
  const key = newKey()
  const reply = await scene.shop.checkout(key, cart({ items: [{ sku: 'mug', quantity: 2 }], ...overrides }))
  expect(reply.status, reply.text).toBe(201)
  return { id: reply.json.id, key, intent: reply.json.payment.reference }
}

/** An order that its customer has given up, and money that arrives for it at the provider, with a payment of its own. */
export async function paidAfterCancel(scene: Scene, overrides: Record<string, unknown> = {}): Promise<Placed> {
  const { payment_method: paymentMethod, ...order } = overrides
  const key = newKey()
  const { json } = await scene.shop.checkout(key, cart({ ...order, payment_method: 'pm_card_threeDSecure2Required' }))
  expect((await scene.shop.post(`/v1/checkouts/${key}/cancel`)).json.status).toBe('canceled')
  const intent = await payAtProvider(scene, { id: json.id, key }, json.total, paymentMethod as string | undefined)
  return { id: json.id, key, intent }
}

export function refund(
  client: Client,
  orderId: string,
  body: Record<string, unknown> = {},
  key = newKey(),
): Promise<Reply> {
  return client.post(`/v1/orders/${orderId}/refunds`, body, { 'idempotency-key': key })
}

export async function orderShown(scene: Scene, orderId: string) {
  return (await scene.backend.get(`/v1/orders/${orderId}`)).json
}

/** What the provider has of the order's payment. */
export async function booked(scene: Scene, { key }: Placed): Promise<BookedPayment> {
  const [payment, ...others] = await scene.books.paymentsFor(key)
  expect(others).toEqual([])
  return payment as BookedPayment
}

/** Of the refunds at the provider that did not fail. */
export async function sumRefunded(scene: Scene, placed: Placed): Promise<number> {
  const { refunds } = await booked(scene, placed)
  return refunds.filter(({ status }) => status !== 'failed').reduce((sum, { amount }) => sum + amount, 0)
}

export function refundsOf(db: Kysely<Tables>, orderId: string): Promise<Refund[]> {
  return db.selectFrom('refunds').selectAll().where('order_id', '=', orderId).orderBy('refund_id').execute()
}

/** What an order's lines have moved, by kind of transfer. */
export async function movedFor(scene: Scene, orderId: string): Promise<Record<string, number>> {
  const { data } = (await scene.backend.get(`/v1/ledger/transfers?order_id=${orderId}&limit=100`)).json
  const moved: Record<string, number> = {}
  for (const { kind, amount } of data) moved[kind] = (moved[kind] ?? 0) + amount
  return moved
}

/** The pause before the next ask about the order's refunds is over. */
export async function makeRefundsDue(db: Kysely<Tables>, orderId: string): Promise<void> {
  await db
    .updateTable('refunds')
    .set({ next_ask_at: sql<Date>`clock_timestamp() - interval '1 ms'` })
    .where('order_id', '=', orderId)
    .execute()
}

/** Whoever works on them has had them too long. */
export async function endRefundLeases(db: Kysely<Tables>, orderId: string): Promise<void> {
  await db
    .updateTable('attempts')
    .set({ lease_expires_at: sql`clock_timestamp() - interval '1 ms'` })
    .where('lease_token', 'is not', null)
    .where('key', 'in', (query) => query.selectFrom('refunds').select('attempt_key').where('order_id', '=', orderId))
    .execute()
  await makeRefundsDue(db, orderId)
}

/** Nothing that was sent for them can still arrive. */
export async function endRefundSending(db: Kysely<Tables>, orderId: string): Promise<void> {
  await db
    .updateTable('refunds')
    .set({ last_send_before: sql<Date>`clock_timestamp() - interval '10 minutes 1 second'` })
    .where('order_id', '=', orderId)
    .execute()
  await makeRefundsDue(db, orderId)
}

/** The pause before the next ask for the ending of the order's hold is over. */
export async function makeEndingDue(db: Kysely<Tables>, orderId: string): Promise<void> {
  await db
    .updateTable('hold_endings')
    .set({ next_ask_at: sql<Date>`clock_timestamp() - interval '1 ms'` })
    .where('order_id', '=', orderId)
    .execute()
}

/** The service's, for workers run by hand without the pace of calls in the background. */
export function unhurried({ deps }: Scene['service']): Deps {
  return { ...deps, gate: new Gate({ perSecond: 10_000, customersMax: 100, patienceMs: 0 }) }
}
