/** What waits and for how long, over all tenants, as figures for those who run the service. */
import type pg from 'pg'
import type { Figure } from '../runtime/metrics.ts'

interface Query {
  name: string
  help: string
  label: string
  /** Rows of `label` and `value`. Reads a partial index that holds only what is unfinished, never a table's history. */
  sql: string
}

const open = "('pending', 'requires_action', 'needs_reconcile')"
const eachOpen = "unnest(ARRAY['pending', 'requires_action', 'needs_reconcile']) AS s"
const toDecide = "(status = 'needs_reconcile' OR reconcile_reason IS NOT NULL)"

const queries: readonly Query[] = [
  {
    name: 'checkout_open_orders',
    help: 'Orders that have not ended, by status.',
    label: 'status',
    sql: `SELECT s AS label, (SELECT count(*) FROM orders WHERE status = s AND status IN ${open}) AS value FROM ${eachOpen}`,
  },
  {
    name: 'checkout_open_order_age_seconds',
    help: 'Age of the oldest order that has not ended, by status.',
    label: 'status',
    sql: `SELECT s AS label, coalesce((SELECT extract(epoch FROM now() - min(created_at)) FROM orders
            WHERE status = s AND status IN ${open}), 0) AS value FROM ${eachOpen}`,
  },
  {
    name: 'checkout_needs_reconcile_orders',
    help: 'Orders whose payment nobody knows for certain, by reason.',
    label: 'reason',
    sql: `SELECT coalesce(reconcile_reason, 'none') AS label, count(*) AS value FROM orders
          WHERE status = 'needs_reconcile' AND ${toDecide} GROUP BY 1`,
  },
  {
    name: 'checkout_needs_reconcile_age_seconds',
    help: 'Age of the oldest of them, by reason.',
    label: 'reason',
    sql: `SELECT coalesce(reconcile_reason, 'none') AS label, extract(epoch FROM now() - min(created_at)) AS value
          FROM orders WHERE status = 'needs_reconcile' AND ${toDecide} GROUP BY 1`,
  },
  {
    name: 'checkout_flagged_orders',
    help: 'Orders that have ended or hold their money, and wait for a person, by reason.',
    label: 'reason',
    sql: `SELECT reconcile_reason AS label, count(*) AS value FROM orders
          WHERE reconcile_reason IS NOT NULL AND ${toDecide}
            AND status IN ('authorized', 'paid', 'payment_failed', 'canceled') GROUP BY 1`,
  },
  {
    name: 'checkout_refunds_in_doubt',
    help: 'Refunds of which the provider has not said what became of them.',
    label: 'status',
    sql: "SELECT 'pending' AS label, count(*) AS value FROM refunds WHERE status = 'pending'",
  },
  {
    name: 'checkout_refund_in_doubt_age_seconds',
    help: 'Age of the oldest of them.',
    label: 'status',
    sql: `SELECT 'pending' AS label, coalesce(extract(epoch FROM now() - min(created_at)), 0) AS value
          FROM refunds WHERE status = 'pending'`,
  },
  {
    name: 'checkout_suspense_amount',
    help: 'Money that matches no order and waits for a person, in minor units, by currency.',
    label: 'currency',
    sql: `SELECT currency AS label, sum(CASE WHEN credit_account = 'suspense' THEN amount ELSE -amount END) AS value
          FROM ledger_transfers WHERE 'suspense' IN (debit_account, credit_account) GROUP BY 1`,
  },
  {
    name: 'checkout_books_findings',
    help: "Differences that each tenant's latest finished comparison with the provider's books has found, by kind.",
    label: 'kind',
    sql: `SELECT kind AS label, coalesce(sum(found), 0) AS value FROM (
            SELECT DISTINCT ON (tenant_id) missing_here, missing_there, amount_differs FROM reports
            WHERE state = 'done' ORDER BY tenant_id, report_id DESC) latest
          RIGHT JOIN unnest(ARRAY['missing_here', 'missing_there', 'amount_differs']) AS kind ON true
          LEFT JOIN LATERAL (SELECT CASE kind WHEN 'missing_here' THEN missing_here
            WHEN 'missing_there' THEN missing_there ELSE amount_differs END AS found) f ON true GROUP BY 1`,
  },
  {
    name: 'checkout_jobs',
    help: 'Jobs that are due and jobs that were given up.',
    label: 'state',
    sql: `SELECT 'due' AS label, (SELECT count(*) FROM jobs WHERE state = 'ready' AND run_at <= now()) AS value
          UNION ALL
          SELECT 'dead', (SELECT count(*) FROM jobs WHERE state = 'dead' AND state IN ('dead', 'discarded'))`,
  },
  {
    name: 'checkout_dead_jobs',
    help: 'Jobs that were given up, by topic.',
    label: 'topic',
    sql: `SELECT topic AS label, count(*) AS value FROM jobs
          WHERE state = 'dead' AND state IN ('dead', 'discarded') GROUP BY 1`,
  },
  {
    name: 'checkout_job_age_seconds',
    help: 'For how long the longest waiting job has been due.',
    label: 'state',
    sql: `SELECT 'due' AS label,
            coalesce(extract(epoch FROM now() - (SELECT min(run_at) FROM jobs WHERE state = 'ready' AND run_at <= now())), 0)
            AS value`,
  },
  {
    name: 'checkout_emails_to_decide',
    help: 'Emails of which nobody knows whether they were sent, and failed ones.',
    label: 'state',
    sql: `SELECT s AS label, (SELECT count(*) FROM emails WHERE state = s AND state IN ('uncertain', 'failed')) AS value
          FROM unnest(ARRAY['uncertain', 'failed']) AS s`,
  },
  {
    name: 'checkout_strange_events',
    help: 'Notifications of the last 7 days that fit no order, or not what our books say of it.',
    label: 'state',
    sql: `SELECT s AS label, (SELECT count(*) FROM provider_events WHERE state = s AND state IN ('foreign', 'mismatched')
            AND received_at > now() - interval '7 days') AS value
          FROM unnest(ARRAY['foreign', 'mismatched']) AS s`,
  },
  {
    name: 'checkout_disabled_endpoints',
    help: 'Merchants whose endpoint takes no events any more, by reason.',
    label: 'reason',
    sql: `SELECT coalesce(disabled_reason, 'none') AS label, count(*) AS value FROM webhook_endpoints
          WHERE disabled_at IS NOT NULL GROUP BY 1`,
  },
]

/** One statement for all, with the number of the figure beside each row. */
const statement = queries
  .map(({ sql }, index) => `SELECT ${index} AS figure, label, value::float8 AS value FROM (${sql}) f${index}`)
  .join('\nUNION ALL\n')

export async function readFigures(pool: pg.Pool): Promise<Figure[]> {
  const { rows } = await pool.query<{ figure: number; label: string; value: number }>(statement)
  return queries.map(({ name, help, label }, index) => ({
    name,
    help,
    label,
    values: rows.filter(({ figure }) => figure === index).map((row) => ({ of: row.label, value: row.value })),
  }))
}
