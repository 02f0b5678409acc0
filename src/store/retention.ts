/** What is forgotten of attempts once nobody can need it. */
import type pg from 'pg'
import { firstIdFrom } from '../domain/ids.ts'

/**
 * Empties the stored answers and digests of up to `limit` attempts that settled longer ago than `olderThanMs`; resolves
 * with how many. The row stays, so that no key ever starts a second effect; what is not settled is never touched. Rows that
 * somebody works on are left for the next time.
 */
export async function sweepAttempts(pool: pg.Pool, olderThanMs: number, limit: number): Promise<number> {
  // An attempt settles after it was made, so `created_at` bounds the walk over the index.
  const { rowCount } = await pool.query(
    `UPDATE attempts a SET response_status = NULL, response_body = NULL, digest = NULL, digest_tags = NULL,
       digest_secret_id = NULL, swept_at = now()
     FROM (SELECT tenant_id, key FROM attempts
           WHERE swept_at IS NULL AND created_at < now() - $1::float8 * interval '1 ms'
             AND state = 'settled' AND settled_at < now() - $1::float8 * interval '1 ms'
           ORDER BY created_at LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED) old
     WHERE a.tenant_id = old.tenant_id AND a.key = old.key`,
    [olderThanMs, limit],
  )
  return rowCount ?? 0
}

/**
 * Deletes up to `limit` records of calls to the provider that were made before `before`, of orders that were made before it
 * too and have ended; resolves with how many. Goes from tenant to tenant along the primary key, whose order ids sort by
 * time, so that it needs no index of its own on what every charge writes.
 */
export async function deleteOldCalls(pool: pg.Pool, before: Date, limit: number): Promise<number> {
  const { rowCount } = await pool.query(
    `DELETE FROM provider_calls WHERE (tenant_id, order_id, call_id) IN (
       SELECT old.tenant_id, old.order_id, old.call_id
       FROM tenants t CROSS JOIN LATERAL (
         SELECT c.tenant_id, c.order_id, c.call_id FROM provider_calls c
         WHERE c.tenant_id = t.tenant_id AND c.order_id < $1 AND c.started_at < $2
           AND EXISTS (SELECT FROM orders o WHERE o.tenant_id = c.tenant_id AND o.order_id = c.order_id
                         AND o.status IN ('paid', 'payment_failed', 'canceled'))
         ORDER BY c.order_id LIMIT $3 FOR UPDATE OF c SKIP LOCKED) old
       LIMIT $3)`,
    [firstIdFrom('ord', before), before, limit],
  )
  return rowCount ?? 0
}

/**
 * Deletes reports that were asked for before `before` and are finished, with what they found: up to `limit` findings and
 * `limit` reports that have none (left). Resolves with how many rows.
 */
export async function deleteOldReports(pool: pg.Pool, before: Date, limit: number): Promise<number> {
  const old = `FROM tenants t JOIN reports r ON r.tenant_id = t.tenant_id AND r.report_id < $1 AND r.state <> 'running'`
  const values = [firstIdFrom('rep', before), limit]
  const findings = await pool.query(
    `DELETE FROM report_findings WHERE (tenant_id, report_id, subject) IN (
       SELECT f.tenant_id, f.report_id, f.subject
       ${old} JOIN report_findings f ON f.tenant_id = r.tenant_id AND f.report_id = r.report_id
       LIMIT $2 FOR UPDATE OF f SKIP LOCKED)`,
    values,
  )
  const reports = await pool.query(
    `DELETE FROM reports WHERE (tenant_id, report_id) IN (
       SELECT r.tenant_id, r.report_id ${old}
       WHERE NOT EXISTS (SELECT FROM report_findings f WHERE f.tenant_id = r.tenant_id AND f.report_id = r.report_id)
       LIMIT $2 FOR UPDATE OF r SKIP LOCKED)`,
    values,
  )
  return (findings.rowCount ?? 0) + (reports.rowCount ?? 0)
}
