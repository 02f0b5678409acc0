/** The whole story of an order, for operators. */
import { type Kysely, type RawBuilder, type Selectable, sql } from 'kysely'
import type { Order } from '../domain/order.ts'
import type { Tables } from './tables.ts'

/** Of each kind of line the newest ones; an order has a handful of each, unless something asks without end. */
const linesMax = 200

/** Everything that is kept about an order but the request's digest and the stored answer's body. */
export async function readStory(db: Kysely<Tables>, order: Order) {
  const lines = linesOf(db, order)
  const [customer, attempt, calls, events, transitions, ledger, stock, refunds, disputes, endings, runs, news] =
    await Promise.all([
      db
        .selectFrom('customers')
        .select(['customer_id', 'email', 'name'])
        .where('tenant_id', '=', order.tenant_id)
        .where('customer_id', '=', order.customer_id)
        .executeTakeFirst(),
      db
        .selectFrom('attempts')
        .select(['key', 'kind', 'state', 'lease_expires_at', 'response_status', 'created_at', 'settled_at', 'swept_at'])
        .where('tenant_id', '=', order.tenant_id)
        .where('key', '=', order.attempt_key)
        .executeTakeFirst(),
      lines('provider_calls', providerCall, sql`started_at DESC`),
      db
        .selectFrom('provider_events')
        .selectAll()
        .where('tenant_id', '=', order.tenant_id)
        .where('order_id', '=', order.order_id)
        .orderBy('received_at', 'desc')
        .limit(linesMax)
        .execute(),
      lines('order_transitions', ['at', 'from_status', 'to_status', 'cause', 'actor', 'reason'], sql`at DESC`),
      lines('ledger_transfers', transfer, sql`transfer_id DESC`),
      lines('stock_movements', ['line', 'kind', 'sku', 'quantity', 'created_at'], sql`line, kind`),
      db
        .selectFrom('refunds')
        .selectAll()
        .where('tenant_id', '=', order.tenant_id)
        .where('order_id', '=', order.order_id)
        .orderBy('refund_id', 'desc')
        .limit(linesMax)
        .execute(),
      lines('disputes', dispute, sql`created_at DESC`),
      lines('hold_endings', ['action', 'amount', 'ended_at', 'next_ask_at', 'asks', 'created_at'], sql`created_at`),
      lines('runs', ['closed_at', 'closed_by', 'next_look_at', 'looks', 'finished_at'], sql`created_at`),
      newsOf(db, order),
    ])
  const payments = ledger.flatMap(({ kind, business_id }) => (ofPayment.test(kind) ? [business_id] : []))
  const jobs = await jobsOf(db, order, {
    payments: order.intent_id === null ? payments : [order.intent_id, ...payments],
    merchantEvents: news.merchantEvents.map(({ event_id }) => event_id),
    providerEvents: events.map(({ event_id }) => event_id),
  })
  const [ending, run] = [endings[0], runs[0]]
  return { customer, attempt, calls, events, transitions, ledger, stock, refunds, disputes, ending, run, ...news, jobs }
}

const providerCall = [
  'operation',
  'request_id',
  'outcome',
  'http_status',
  'error_code',
  'duration_ms',
  'replayed',
  'started_at',
] as const
const transfer = [
  'transfer_id',
  'kind',
  'business_id',
  'debit_account',
  'credit_account',
  'amount',
  'currency',
  'created_at',
] as const
const dispute = [
  'dispute_id',
  'amount',
  'currency',
  'status',
  'withdrawn',
  'reinstated',
  'counts',
  'created_at',
  'updated_at',
] as const
/** Tables of which an order has lines. */
type OfOrder = {
  [Table in keyof Tables]: Tables[Table] extends { tenant_id: unknown; order_id: unknown } ? Table : never
}[keyof Tables]

/** Reads lines of one order, in the order given. */
function linesOf(db: Kysely<Tables>, { tenant_id, order_id }: Pick<Order, 'tenant_id' | 'order_id'>) {
  return async <Table extends OfOrder, Column extends keyof Selectable<Tables[Table]> & string>(
    table: Table,
    columns: readonly Column[],
    orderBy: RawBuilder<unknown>,
  ): Promise<Pick<Selectable<Tables[Table]>, Column>[]> => {
    const { rows } = await sql<Pick<Selectable<Tables[Table]>, Column>>`
      SELECT ${sql.join(columns.map((column) => sql.ref(column)))} FROM ${sql.table(table)}
      WHERE tenant_id = ${tenant_id} AND order_id = ${order_id} ORDER BY ${orderBy} LIMIT ${linesMax}`.execute(db)
    return rows
  }
}

/** Kinds of transfers whose business id is a payment. */
const ofPayment = /^(late_|mismatch)/

async function newsOf(db: Kysely<Tables>, order: Order) {
  const lines = linesOf(db, order)
  const [emails, merchantEvents] = await Promise.all([
    lines('emails', ['kind', 'state', 'reason', 'amount', 'created_at', 'updated_at'], sql`created_at DESC`),
    lines('merchant_events', ['event_id', 'type', 'transition', 'created_at'], sql`transition`),
  ])
  const deliveries = await db
    .selectFrom('event_deliveries')
    .select(['delivery_id', 'event_id', 'attempt', 'delivered', 'http_status', 'error', 'duration_ms', 'created_at'])
    .where('tenant_id', '=', order.tenant_id)
    .where('event_id', '=', sql<string>`ANY (${merchantEvents.map(({ event_id }) => event_id)}::text[])`)
    .orderBy('delivery_id', 'desc')
    .limit(linesMax)
    .execute()
  return { emails, merchantEvents, deliveries }
}

/** Jobs have no order of their own: each topic's business ids lead to them, by the primary key. */
function jobsOf(
  db: Kysely<Tables>,
  { tenant_id, order_id }: Order,
  ids: { payments: string[]; merchantEvents: string[]; providerEvents: string[] },
) {
  return db
    .selectFrom('jobs')
    .select(['topic', 'business_id', 'state', 'run_at', 'attempts', 'last_error', 'created_at', 'finished_at'])
    .where('tenant_id', '=', tenant_id)
    .where(
      sql<boolean>`((topic = 'order_news' AND business_id > ${`${order_id}:`} AND business_id < ${`${order_id};`})
        OR (topic = 'send_email' AND business_id > ${`${order_id}:`} AND business_id < ${`${order_id};`})
        OR (topic = 'close_payment' AND business_id = ANY (${ids.payments}))
        OR (topic = 'refund_late_payment' AND business_id = ANY (${ids.payments}))
        OR (topic = 'deliver_event' AND business_id = ANY (${ids.merchantEvents}))
        OR (topic = 'provider_event' AND business_id = ANY (${ids.providerEvents})))`,
    )
    .orderBy('created_at', 'desc')
    .limit(linesMax)
    .execute()
}
