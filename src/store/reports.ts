/** Reports: a period of the provider's books compared with ours, window by window. */
import { type Kysely, sql, type Transaction } from 'kysely'
import { firstIdFrom, newId } from '../domain/ids.ts'
import type { FindingKind, OrderInBooks, TransferInBooks } from '../domain/reconciliation.ts'
import { transaction } from '../runtime/database.ts'
import type { Tables } from './tables.ts'

export interface Report {
  tenant_id: string
  report_id: string
  period_from: Date
  period_to: Date
  state: 'running' | 'done' | 'failed'
  reason: string | null
  compared_to: Date
  matched: number
  missing_here: number
  missing_there: number
  amount_differs: number
  created_at: Date
  finished_at: Date | null
}

export interface ReportFinding {
  /** The payment, or the order where there is no payment. */
  subject: string
  kind: FindingKind
  order_id: string | null
  intent_id: string | null
  ours: number | null
  theirs: number | null
  currency: string | null
}

export function createReport(db: Kysely<Tables>, tenantId: string, period: { from: Date; to: Date }): Promise<Report> {
  return db
    .insertInto('reports')
    .values({
      tenant_id: tenantId,
      report_id: newId('rep'),
      period_from: period.from,
      period_to: period.to,
      compared_to: period.from,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
}

export async function readReport(db: Kysely<Tables>, tenantId: string, reportId: string): Promise<Report | null> {
  const row = await db
    .selectFrom('reports')
    .selectAll()
    .where('tenant_id', '=', tenantId)
    .where('report_id', '=', reportId)
    .executeTakeFirst()
  return row ?? null
}

/** Newest first; one more than the page's limit where there is more. */
export function listReports(
  db: Kysely<Tables>,
  tenantId: string,
  page: { limit: number; after: string | null },
): Promise<Report[]> {
  let query = db.selectFrom('reports').selectAll().where('tenant_id', '=', tenantId)
  if (page.after !== null) query = query.where('report_id', '<', page.after)
  return query
    .orderBy('report_id', 'desc')
    .limit(page.limit + 1)
    .execute()
}

/** By subject; one more than the page's limit where there is more. */
export function listFindings(
  db: Kysely<Tables>,
  tenantId: string,
  reportId: string,
  page: { limit: number; after: string | null },
): Promise<ReportFinding[]> {
  let query = db
    .selectFrom('report_findings')
    .select(['subject', 'kind', 'order_id', 'intent_id', 'ours', 'theirs', 'currency'])
    .where('tenant_id', '=', tenantId)
    .where('report_id', '=', reportId)
  if (page.after !== null) query = query.where('subject', '>', page.after)
  return query
    .orderBy('subject')
    .limit(page.limit + 1)
    .execute()
}

/** How many of the tenant's orders were made in the window, `atMost` at most. */
export async function countOrders(
  db: Kysely<Tables>,
  tenantId: string,
  { from, to }: { from: Date; to: Date },
  atMost: number,
): Promise<number> {
  const { rows } = await sql<{ count: number }>`SELECT count(*) AS count FROM (
    SELECT FROM orders WHERE tenant_id = ${tenantId}
      AND order_id >= ${firstIdFrom('ord', from)} AND order_id < ${firstIdFrom('ord', to)} LIMIT ${atMost}) made`.execute(
    db,
  )
  return rows[0]?.count ?? 0
}

export interface BooksOfOrder {
  order: OrderInBooks & { provider_account: string; livemode: boolean; created_at: Date }
  transfers: TransferInBooks[]
}

const orderColumns = [
  'order_id',
  'status',
  'currency',
  'total',
  'intent_id',
  'provider_account',
  'livemode',
  'created_at',
] as const

/** What our books have of some orders, by order; unknown ones are missing. */
export async function readBooks(
  db: Kysely<Tables>,
  tenantId: string,
  orderIds: readonly string[],
): Promise<Map<string, BooksOfOrder>> {
  if (orderIds.length === 0) return new Map()
  const orders = await db
    .selectFrom('orders')
    .select(orderColumns)
    .where('tenant_id', '=', tenantId)
    .where('order_id', 'in', orderIds)
    .execute()
  return withTransfers(db, tenantId, orders)
}

/** Orders made in the window whose payment is known, a page in the order of their ids. */
export async function booksInWindow(
  db: Kysely<Tables>,
  tenantId: string,
  { from, to }: { from: Date; to: Date },
  page: { after: string; limit: number },
): Promise<Map<string, BooksOfOrder>> {
  const orders = await db
    .selectFrom('orders')
    .select(orderColumns)
    .where('tenant_id', '=', tenantId)
    .where('order_id', '>=', firstIdFrom('ord', from))
    .where('order_id', '<', firstIdFrom('ord', to))
    .where('order_id', '>', page.after)
    .where('intent_id', 'is not', null)
    .orderBy('order_id')
    .limit(page.limit)
    .execute()
  return withTransfers(db, tenantId, orders)
}

async function withTransfers(
  db: Kysely<Tables>,
  tenantId: string,
  orders: BooksOfOrder['order'][],
): Promise<Map<string, BooksOfOrder>> {
  const books = new Map<string, BooksOfOrder>(orders.map((order) => [order.order_id, { order, transfers: [] }]))
  if (books.size === 0) return books
  const transfers = await db
    .selectFrom('ledger_transfers')
    .select(['order_id', 'kind', 'business_id', 'debit_account', 'credit_account', 'amount', 'currency'])
    .where('tenant_id', '=', tenantId)
    .where('order_id', 'in', [...books.keys()])
    .execute()
  for (const { order_id, ...transfer } of transfers) books.get(order_id)?.transfers.push(transfer)
  return books
}

/** Shown on an order that has ended; one that is open is recovery's, which says its own reason. The gravest comes first. */
const flags: Record<FindingKind, string> = {
  missing_there: 'missing_at_provider',
  missing_here: 'charge_not_booked',
  amount_differs: 'amount_differs_at_provider',
}

/** Keeps what a window brought, and flags its orders. False where another run has compared it meanwhile; then nothing is kept. */
export function endWindow(
  db: Kysely<Tables>,
  report: Report,
  window: { from: Date; to: Date; matched: number; findings: readonly ReportFinding[] },
): Promise<boolean> {
  const { tenant_id, report_id } = report
  const count = (kind: FindingKind) => window.findings.filter((finding) => finding.kind === kind).length
  return transaction(db, async (tx) => {
    const { numUpdatedRows } = await tx
      .updateTable('reports')
      .set({
        compared_to: window.to,
        matched: sql`matched + ${window.matched}`,
        missing_here: sql`missing_here + ${count('missing_here')}`,
        missing_there: sql`missing_there + ${count('missing_there')}`,
        amount_differs: sql`amount_differs + ${count('amount_differs')}`,
      })
      .where('tenant_id', '=', tenant_id)
      .where('report_id', '=', report_id)
      .where('compared_to', '=', window.from)
      .where('state', '=', 'running')
      .executeTakeFirst()
    if (numUpdatedRows !== 1n) return false
    await keepFindings(tx, report, window.findings)
    return true
  })
}

async function keepFindings(
  tx: Transaction<Tables>,
  { tenant_id, report_id }: Report,
  findings: readonly ReportFinding[],
): Promise<void> {
  for (let from = 0; from < findings.length; from += 500) {
    await tx
      .insertInto('report_findings')
      .values(findings.slice(from, from + 500).map((finding) => ({ ...finding, tenant_id, report_id })))
      .onConflict((conflict) => conflict.columns(['tenant_id', 'report_id', 'subject']).doNothing())
      .execute()
  }
  for (const [kind, flag] of Object.entries(flags)) {
    const ids = findings.flatMap((finding) => (finding.kind === kind ? (finding.order_id ?? []) : []))
    if (ids.length === 0) continue
    await tx
      .updateTable('orders')
      .set({ reconcile_reason: flag })
      .where('tenant_id', '=', tenant_id)
      .where('order_id', '=', sql<string>`ANY (${ids}::text[])`)
      .where('status', 'in', ['authorized', 'paid', 'payment_failed', 'canceled'])
      .where('reconcile_reason', 'is', null)
      .execute()
  }
}

/** Everything has been compared, or nothing more will be. */
export async function endReport(
  db: Kysely<Tables>,
  { tenant_id, report_id }: Pick<Report, 'tenant_id' | 'report_id'>,
  end: { state: 'done' | 'failed'; reason: string | null },
): Promise<void> {
  await db
    .updateTable('reports')
    .set({ ...end, finished_at: sql`clock_timestamp()` })
    .where('tenant_id', '=', tenant_id)
    .where('report_id', '=', report_id)
    .where('state', '=', 'running')
    .execute()
}
