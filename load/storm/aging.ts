/** Keys of years gone by, and time that passes at once. */
import type pg from 'pg'

const perStatement = 250_000

/**
 * Stores settled attempts as retention leaves them: the row stays, answer and digests are gone. Random keys, as clients
 * make them, so that they lie all over the index; they have no orders, so take them out before an audit.
 */
export async function storeAgedKeys(
  pool: pg.Pool,
  tenantId: string,
  keys: number,
  progress: (stored: number) => void,
): Promise<void> {
  for (let stored = 0; stored < keys; ) {
    const count = Math.min(perStatement, keys - stored)
    await pool.query(
      `INSERT INTO attempts (tenant_id, key, kind, object_id, state, created_at, settled_at, swept_at)
       SELECT $1, gen_random_uuid()::text, 'checkout', 'ord_aged_' || n, 'settled', at, at, at
       FROM generate_series($2::bigint, $2::bigint + $3::bigint - 1) n,
         LATERAL (SELECT now() - interval '4 days' - n % 1000 * interval '1 day' AS at) times`,
      [tenantId, stored, count],
    )
    stored += count
    progress(stored)
  }
  await pool.query('VACUUM (ANALYZE) attempts')
}

export async function removeAgedKeys(pool: pg.Pool): Promise<void> {
  await pool.query("DELETE FROM attempts WHERE object_id LIKE 'ord_aged_%'")
}

/**
 * Lets those minutes pass for which recovery waits before a payment that the provider does not have counts as absent, and
 * the pauses between its looks. Returns how many orders were still open.
 */
export async function letTimePass(pool: pg.Pool): Promise<number> {
  const { rowCount } = await pool.query(
    `UPDATE orders o SET next_ask_at = clock_timestamp(),
       last_send_before = least(o.last_send_before, clock_timestamp() - interval '10 minutes 1 second')
     FROM attempts a
     WHERE o.status IN ('pending', 'requires_action', 'needs_reconcile')
       AND a.tenant_id = o.tenant_id AND a.key = o.attempt_key
       AND (a.lease_expires_at IS NULL OR a.lease_expires_at < clock_timestamp())`,
  )
  await pool.query(
    "UPDATE jobs SET run_at = clock_timestamp() WHERE state = 'ready' AND run_at > clock_timestamp() + interval '5 s'",
  )
  return rowCount ?? 0
}
