import type pg from 'pg'

/** The advisory locks that somebody holds in the pool's database; those of other databases are no concern of a test. */
export async function advisoryLocks(pool: pg.Pool): Promise<unknown[]> {
  const { rows } = await pool.query(`
    SELECT * FROM pg_locks
    WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
  return rows
}
