/** What is forgotten of attempts once nobody can need it. */
import type pg from 'pg'

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
