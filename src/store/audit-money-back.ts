/** The rules for money that goes back and for the ends of holds; `audit.ts` says what a rule is. */
import type { Rule } from './audit.ts'

const spent = `(
  SELECT o.*,
    (SELECT coalesce(sum(r.amount), 0) FROM refunds r WHERE r.tenant_id = o.tenant_id AND r.order_id = o.order_id
       AND r.status IN ('pending', 'succeeded')) AS in_refunds,
    (SELECT coalesce(sum(d.amount), 0) FROM disputes d WHERE d.tenant_id = o.tenant_id AND d.order_id = o.order_id
       AND d.counts) AS in_disputes
  FROM orders o)`

/** What a refund or dispute has moved in the ledger, by kind of transfer. */
const moved = (kind: string, id: string, row: string) =>
  `(SELECT coalesce(sum(t.amount), 0) FROM ledger_transfers t WHERE t.tenant_id = ${row}.tenant_id AND t.kind = '${kind}'
     AND t.business_id = ${row}.${id} AND t.order_id = ${row}.order_id AND t.currency = ${row}.currency)`

export const moneyBackRules: readonly Rule[] = [
  {
    rule: 'what an order says of refunds and disputes is what they draw on it',
    severity: 'wrong',
    sql: `SELECT o.tenant_id, o.order_id AS subject, 'captured ' || o.captured || ', refunded ' || o.refunded || ' of '
                 || o.in_refunds || ', disputed ' || o.disputed_amount || ' of ' || o.in_disputes AS detail
          FROM ${spent} o
          WHERE (o.refunded <> least(o.in_refunds, o.captured)
              OR o.disputed_amount <> least(o.in_disputes, o.captured - least(o.in_refunds, o.captured))
              OR o.disputed <> (o.in_disputes > 0))
            AND ($1::text IS NULL OR o.tenant_id = $1)`,
  },
  {
    rule: 'more than was captured goes back only where a person is told',
    severity: 'wrong',
    sql: `SELECT o.tenant_id, o.order_id AS subject,
                 'captured ' || o.captured || ', refunds ' || o.in_refunds || ', disputes ' || o.in_disputes AS detail
          FROM ${spent} o
          WHERE o.in_refunds + o.in_disputes > o.captured AND o.reconcile_reason IS NULL
            AND ($1::text IS NULL OR o.tenant_id = $1)`,
  },
  {
    rule: 'a refund is booked exactly while the provider has taken it on',
    severity: 'wrong',
    sql: `SELECT r.tenant_id, r.refund_id AS subject,
                 r.status || ' ' || r.amount || ', booked ' || r.out || ', reversed ' || r.back AS detail
          FROM (SELECT r.*, ${moved('refund', 'refund_id', 'r')} AS out,
                  ${moved('refund_reversal', 'refund_id', 'r')} AS back FROM refunds r) r
          WHERE r.out - r.back <> CASE WHEN r.provider_refund_id IS NOT NULL AND r.status IN ('pending', 'succeeded')
                                    THEN r.amount ELSE 0 END
            AND ($1::text IS NULL OR r.tenant_id = $1)`,
  },
  {
    rule: 'a refund that was asked for has its attempt, settled once the refund has ended',
    severity: 'wrong',
    sql: `SELECT coalesce(r.tenant_id, a.tenant_id) AS tenant_id, coalesce(r.refund_id, a.key) AS subject,
                 coalesce(a.state, 'no') || ' attempt of a refund that is ' || coalesce(r.status, 'unknown') AS detail
          FROM (SELECT * FROM refunds WHERE attempt_key IS NOT NULL) r
          FULL JOIN (SELECT * FROM attempts WHERE kind = 'refund') a
            ON a.tenant_id = r.tenant_id AND a.key = r.attempt_key AND a.object_id = r.refund_id
          WHERE (a.key IS NULL OR r.refund_id IS NULL OR (a.state <> 'settled' AND r.status IN ('succeeded', 'failed'))
              OR (a.state = 'resumable') <> (r.status = 'unsent'))
            AND ($1::text IS NULL OR coalesce(r.tenant_id, a.tenant_id) = $1)`,
  },
  {
    rule: 'a dispute is booked when its money has moved',
    severity: 'wrong',
    sql: `SELECT d.tenant_id, d.dispute_id AS subject,
                 d.status || ', withdrawn ' || d.out || ', reinstated ' || d.back AS detail
          FROM (SELECT d.*, ${moved('dispute_withdrawn', 'dispute_id', 'd')} AS out,
                  ${moved('dispute_reinstated', 'dispute_id', 'd')} AS back FROM disputes d) d
          WHERE ((d.out > 0) <> d.withdrawn OR (d.back > 0) <> d.reinstated) AND ($1::text IS NULL OR d.tenant_id = $1)`,
  },
  {
    rule: 'the ending of a hold is over exactly when the order has ended',
    severity: 'unfinished',
    sql: `SELECT h.tenant_id, h.order_id AS subject, h.action || ' of an order that is ' || o.status AS detail
          FROM hold_endings h JOIN orders o ON o.tenant_id = h.tenant_id AND o.order_id = h.order_id
          WHERE (h.ended_at IS NULL OR o.status = 'authorized') AND ($1::text IS NULL OR h.tenant_id = $1)`,
  },
  {
    rule: 'a refund ends',
    severity: 'unfinished',
    sql: `SELECT r.tenant_id, r.refund_id AS subject, r.status || coalesce(', ' || r.doubt, '') AS detail
          FROM refunds r WHERE r.status = 'pending' AND ($1::text IS NULL OR r.tenant_id = $1)`,
  },
]
