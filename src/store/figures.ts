/** What waits and for how long, over all tenants, as figures for those who run the service. */
import type pg from 'pg'
import type { Figure } from '../runtime/metrics.ts'

/** Every query reads a partial index that holds only what is unfinished, never a table's history. */
const queries: { name: string; help: string; label: string; sql: string }[] = [
  {
    name: 'checkout_open_orders',
    help: 'Orders that have not ended, by status.',
    label: 'status',
    sql: `SELECT s AS label, (SELECT count(*) FROM orders WHERE status = s
            AND status IN ('pending', 'requires_action', 'needs_reconcile')) AS value
          FROM unnest(ARRAY['pending', 'requires_action', 'needs_reconcile']) AS s`,
  },
  {
    name: 'checkout_open_order_age_seconds',
    help: 'Age of the oldest order that has not ended, by status.',
    label: 'status',
    sql: `SELECT s AS label, coalesce((SELECT extract(epoch FROM now() - min(created_at)) FROM orders WHERE status = s
            AND status IN ('pending', 'requires_action', 'needs_reconcile')), 0) AS value
          FROM unnest(ARRAY['pending', 'requires_action', 'needs_reconcile']) AS s`,
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
    name: 'checkout_job_age_seconds',
    help: 'For how long the longest waiting job has been due.',
    label: 'state',
    sql: `SELECT 'due' AS label,
            coalesce(extract(epoch FROM now() - (SELECT min(run_at) FROM jobs WHERE state = 'ready' AND run_at <= now())), 0) AS value`,
  },
  {
    name: 'checkout_emails_to_decide',
    help: 'Emails of which nobody knows whether they were sent, and failed ones.',
    label: 'state',
    sql: `SELECT s AS label, (SELECT count(*) FROM emails WHERE state = s AND state IN ('uncertain', 'failed')) AS value
          FROM unnest(ARRAY['uncertain', 'failed']) AS s`,
  },
]

export async function readFigures(pool: pg.Pool): Promise<Figure[]> {
  const figures: Figure[] = []
  for (const { name, help, label, sql } of queries) {
    const { rows } = await pool.query<{ label: string; value: number | string }>(sql)
    figures.push({
      name,
      help,
      values: rows.map((row) => ({ labels: { [label]: row.label }, value: Number(row.value) })),
    })
  }
  return figures
}
