/**
 * The invariants of the service's books: rules that must find nothing, and a comparison with the provider's books. For
 * whoever judges from outside: tests, load runs, an operator's report. Reads alone; on a large database, run it where
 * a scan does no harm.
 *
 * `wrong` must never be found, at any moment (each rule is one statement and sees one moment). `unfinished` is what
 * recovery still has to drive on; it must be gone once that has run and the provider has answered.
 */
import type pg from 'pg'
import { moneyBackRules } from './audit-money-back.ts'

export interface Finding {
  rule: string
  severity: 'wrong' | 'unfinished'
  tenantId: string
  /** The order, key, cart or SKU that it is about. */
  subject: string
  detail: string
}

export interface AuditScope {
  /** All tenants where absent. */
  tenantId?: string
  /** Findings of one rule at most; a broken rule is broken by many. Default 20. */
  limit?: number
}

/** A payment as the provider's books have it. Amounts in minor units as this service counts them. */
export interface BookedPayment {
  intentId: string
  /** The provider's own word. */
  status: string
  amount: number
  amountCaptured: number
  amountCapturable: number
  /** What went back, refunds under way included. */
  amountRefunded: number
  /** Upper-case ISO 4217. */
  currency: string
  metadata: { tenant?: string; order?: string }
}

export interface Rule {
  rule: string
  severity: Finding['severity']
  /** Rows of `tenant_id`, `subject`, `detail`; the tenant asked for, or null, is $1. */
  sql: string
}

const endedUnpaid = `('payment_failed', 'canceled')`
const open = `('pending', 'requires_action', 'needs_reconcile')`

const runs = `(
  SELECT r.*, o.status, o.captured,
    (SELECT coalesce(sum(u.amount), 0) FROM usage_lines u
     WHERE u.tenant_id = r.tenant_id AND u.order_id = r.order_id) AS used,
    (SELECT coalesce(sum(t.amount), 0) FROM ledger_transfers t
     WHERE t.tenant_id = r.tenant_id AND t.order_id = r.order_id AND t.kind = 'unbilled') AS unbilled
  FROM runs r JOIN orders o ON o.tenant_id = r.tenant_id AND o.order_id = r.order_id)`

const rules: Rule[] = [
  ...moneyBackRules,
  {
    rule: 'an order has the attempt that made it',
    severity: 'wrong',
    sql: `SELECT o.tenant_id, o.order_id AS subject, 'no attempt' AS detail
          FROM orders o LEFT JOIN attempts a ON a.tenant_id = o.tenant_id AND a.key = o.attempt_key
          WHERE a.key IS NULL AND ($1::text IS NULL OR o.tenant_id = $1)`,
  },
  {
    rule: 'an attempt has made one order',
    severity: 'wrong',
    sql: `SELECT a.tenant_id, a.key AS subject, count(o.order_id) || ' orders' AS detail
          FROM attempts a LEFT JOIN orders o ON o.tenant_id = a.tenant_id AND o.attempt_key = a.key
          WHERE a.kind IN ('checkout', 'run') AND ($1::text IS NULL OR a.tenant_id = $1)
          GROUP BY a.tenant_id, a.key HAVING count(o.order_id) <> 1`,
  },
  {
    rule: 'an attempt is settled exactly when its order is',
    severity: 'wrong',
    sql: `SELECT o.tenant_id, o.order_id AS subject, a.state || ' attempt of an order that is ' || o.status AS detail
          FROM orders o JOIN attempts a ON a.tenant_id = o.tenant_id AND a.key = o.attempt_key
          WHERE (a.state = 'settled') <> (o.status NOT IN ${open}) AND ($1::text IS NULL OR o.tenant_id = $1)`,
  },
  {
    rule: 'a settled attempt keeps its answer until it is swept, and no lease',
    severity: 'wrong',
    sql: `SELECT a.tenant_id, a.key AS subject, a.state AS detail FROM attempts a
          WHERE ((a.state = 'settled' AND a.swept_at IS NULL AND (a.response_status IS NULL OR a.response_body IS NULL))
              OR (a.state <> 'running' AND a.lease_token IS NOT NULL)
              OR (a.state <> 'settled' AND a.response_body IS NOT NULL))
            AND ($1::text IS NULL OR a.tenant_id = $1)`,
  },
  {
    rule: 'the story of an order leads to its status, each step from where the last one ended',
    severity: 'wrong',
    sql: `SELECT tenant_id, order_id AS subject, from_status || ' to ' || to_status || ' after ' || before AS detail
          FROM (SELECT t.*, o.status,
                  coalesce(lag(to_status) OVER story, 'pending') AS before,
                  lead(to_status) OVER story IS NULL AS is_last
                FROM order_transitions t JOIN orders o USING (tenant_id, order_id)
                WHERE ($1::text IS NULL OR t.tenant_id = $1)
                WINDOW story AS (PARTITION BY t.tenant_id, t.order_id ORDER BY t.at)) told
          WHERE before <> from_status OR (is_last AND to_status <> status)
          UNION ALL
          SELECT o.tenant_id, o.order_id, o.status || ' without a story' FROM orders o
          WHERE o.status <> 'pending' AND ($1::text IS NULL OR o.tenant_id = $1)
            AND NOT EXISTS (SELECT FROM order_transitions t WHERE t.tenant_id = o.tenant_id AND t.order_id = o.order_id)`,
  },
  {
    rule: 'an order that has ended or is authorized is told of once, and no other is told of as such',
    severity: 'wrong',
    sql: `SELECT o.tenant_id, o.order_id AS subject, 'no news of ' || o.status AS detail FROM orders o
          WHERE o.status NOT IN ${open} AND ($1::text IS NULL OR o.tenant_id = $1)
            AND NOT EXISTS (SELECT FROM jobs j WHERE j.tenant_id = o.tenant_id AND j.topic = 'order_news'
                            AND j.business_id = o.order_id || ':' || o.status)
          UNION ALL
          SELECT j.tenant_id, j.business_id, 'news of an order that is ' || coalesce(o.status, 'unknown')
          FROM jobs j LEFT JOIN orders o ON o.tenant_id = j.tenant_id AND o.order_id = split_part(j.business_id, ':', 1)
          WHERE j.topic = 'order_news' AND split_part(j.business_id, ':', 2) IN ('paid', 'payment_failed', 'canceled')
            AND o.status IS DISTINCT FROM split_part(j.business_id, ':', 2) AND ($1::text IS NULL OR j.tenant_id = $1)`,
  },
  {
    rule: 'what an order has captured is booked as such, and only a paid order has captured',
    severity: 'wrong',
    sql: `SELECT o.tenant_id, o.order_id AS subject,
                 o.status || ', captured ' || o.captured || ', booked ' || coalesce(sum(t.amount), 0) AS detail
          FROM orders o LEFT JOIN ledger_transfers t
            ON t.tenant_id = o.tenant_id AND t.order_id = o.order_id AND t.kind = 'capture' AND t.currency = o.currency
          WHERE ($1::text IS NULL OR o.tenant_id = $1)
          GROUP BY o.tenant_id, o.order_id
          HAVING coalesce(sum(t.amount), 0) <> o.captured OR count(t.transfer_id) > 1
            OR (o.captured > 0) <> (o.status = 'paid')`,
  },
  {
    rule: 'stock is reserved once per line, and given back exactly where the order has ended unpaid',
    severity: 'wrong',
    sql: `SELECT o.tenant_id, o.order_id AS subject,
                 o.status || ', line ' || l.n || ', reserved ' || coalesce(taken.quantity, 0)
                   || ', released ' || coalesce(back.quantity, 0) AS detail
          FROM orders o
          CROSS JOIN LATERAL jsonb_array_elements(o.lines) WITH ORDINALITY AS l(v, n)
          LEFT JOIN stock_movements taken ON taken.tenant_id = o.tenant_id AND taken.order_id = o.order_id
            AND taken.line = l.n AND taken.kind = 'reserve'
          LEFT JOIN stock_movements back ON back.tenant_id = o.tenant_id AND back.order_id = o.order_id
            AND back.line = l.n AND back.kind = 'release'
          WHERE ($1::text IS NULL OR o.tenant_id = $1)
            AND (taken.quantity IS DISTINCT FROM (l.v->>'quantity')::bigint OR taken.sku <> l.v->>'sku'
              OR (back.quantity IS NOT NULL) <> (o.status IN ${endedUnpaid})
              OR back.quantity <> taken.quantity OR back.sku <> taken.sku)`,
  },
  {
    rule: 'a cart is held exactly by an order that is open, authorized or paid',
    severity: 'wrong',
    sql: `SELECT c.tenant_id, c.cart_id AS subject, 'held by an order that is ' || coalesce(o.status, 'unknown') AS detail
          FROM carts c LEFT JOIN orders o ON o.tenant_id = c.tenant_id AND o.order_id = c.order_id AND o.cart_id = c.cart_id
          WHERE (o.order_id IS NULL OR o.status IN ${endedUnpaid}) AND ($1::text IS NULL OR c.tenant_id = $1)
          UNION ALL
          SELECT o.tenant_id, o.order_id, o.status || ' without its cart' FROM orders o
          LEFT JOIN carts c ON c.tenant_id = o.tenant_id AND c.cart_id = o.cart_id AND c.order_id = o.order_id
          WHERE o.cart_id IS NOT NULL AND c.cart_id IS NULL AND o.status NOT IN ${endedUnpaid}
            AND ($1::text IS NULL OR o.tenant_id = $1)`,
  },
  {
    rule: 'what a run used and its hold did not pay for is booked as unbilled when the run is finished',
    severity: 'wrong',
    sql: `SELECT r.tenant_id, r.order_id AS subject,
                 'used ' || r.used || ', captured ' || r.captured || ', unbilled ' || r.unbilled AS detail
          FROM ${runs} r
          WHERE r.unbilled <> CASE WHEN r.finished_at IS NULL THEN 0 ELSE greatest(r.used - r.captured, 0) END
            AND ($1::text IS NULL OR r.tenant_id = $1)`,
  },
  {
    rule: 'a run captures no more than was used',
    severity: 'wrong',
    sql: `SELECT r.tenant_id, r.order_id AS subject, 'used ' || r.used || ', captured ' || r.captured AS detail
          FROM ${runs} r
          WHERE r.closed_at IS NOT NULL AND r.captured > r.used AND ($1::text IS NULL OR r.tenant_id = $1)`,
  },
  {
    rule: 'a run takes usage while it is open, one line after the other',
    severity: 'wrong',
    sql: `SELECT u.tenant_id, u.order_id AS subject, u.meter_type AS detail
          FROM (SELECT u.*, r.closed_at,
                  sum(u.amount) OVER (PARTITION BY u.tenant_id, u.order_id ORDER BY u.created_at) AS used
                FROM usage_lines u LEFT JOIN runs r ON r.tenant_id = u.tenant_id AND r.order_id = u.order_id
                WHERE ($1::text IS NULL OR u.tenant_id = $1)) u
          WHERE u.used_after <> u.used OR u.created_at > u.closed_at`,
  },
  {
    rule: 'a run that was ended is finished',
    severity: 'unfinished',
    sql: `SELECT r.tenant_id, r.order_id AS subject, r.status AS detail FROM ${runs} r
          WHERE r.finished_at IS NULL AND ($1::text IS NULL OR r.tenant_id = $1)
            AND (r.closed_at IS NOT NULL OR (r.used > 0 AND r.status IN ('paid', 'payment_failed', 'canceled')))`,
  },
  {
    rule: 'an order becomes definite',
    severity: 'unfinished',
    sql: `SELECT o.tenant_id, o.order_id AS subject, o.status || coalesce(', ' || o.reconcile_reason, '') AS detail
          FROM orders o WHERE o.status IN ${open} AND ($1::text IS NULL OR o.tenant_id = $1)`,
  },
]

/** The rules over our own books alone. */
export async function auditOrders(pool: pg.Pool, { tenantId, limit = 20 }: AuditScope = {}): Promise<Finding[]> {
  const findings: Finding[] = []
  for (const { rule, severity, sql } of rules) {
    const { rows } = await pool.query<{ tenant_id: string; subject: string; detail: string }>(
      `SELECT * FROM (${sql}) found ORDER BY tenant_id, subject LIMIT $2`,
      [tenantId ?? null, limit],
    )
    findings.push(
      ...rows.map((row) => ({ rule, severity, tenantId: row.tenant_id, subject: row.subject, detail: row.detail })),
    )
  }
  return findings
}

/** What was there once is there, sold or on hold: `available` = `initial` - reserved + released. `initial` by SKU, from
 * before the first order. */
export async function auditStock(
  pool: pg.Pool,
  tenantId: string,
  initial: Readonly<Record<string, number>>,
): Promise<Finding[]> {
  const { rows } = await pool.query<{ sku: string; available: string | null; expected: string }>(
    `SELECT i.sku, p.available::text AS available, (i.quantity - coalesce(m.taken, 0))::text AS expected
     FROM jsonb_each_text($2) AS given(sku, quantity)
     CROSS JOIN LATERAL (SELECT given.sku, given.quantity::bigint AS quantity) i
     LEFT JOIN products p ON p.tenant_id = $1 AND p.sku = i.sku
     LEFT JOIN (SELECT sku, sum(CASE kind WHEN 'reserve' THEN quantity ELSE -quantity END) AS taken
                FROM stock_movements WHERE tenant_id = $1 GROUP BY sku) m ON m.sku = i.sku
     WHERE p.available IS DISTINCT FROM i.quantity - coalesce(m.taken, 0)`,
    [tenantId, JSON.stringify(initial)],
  )
  return rows.map(({ sku, available, expected }) => ({
    rule: 'stock adds up',
    severity: 'wrong',
    tenantId,
    subject: sku,
    detail: `available ${available}, by the movements ${expected}`,
  }))
}
