/** Refunds: read, and claim for asking the provider about. */
import { type Kysely, type RawBuilder, sql, type Transaction } from 'kysely'
import type { Refund } from '../domain/refund.ts'
import type { Tables } from './tables.ts'

export async function readRefund(db: Kysely<Tables>, tenantId: string, refundId: string): Promise<Refund | null> {
  const row = await db
    .selectFrom('refunds')
    .selectAll()
    .where('tenant_id', '=', tenantId)
    .where('refund_id', '=', refundId)
    .executeTakeFirst()
  return row ?? null
}

/** The row that is bound to a refund of the provider. */
export async function readBoundRefund(
  db: Kysely<Tables>,
  tenantId: string,
  providerRefundId: string,
): Promise<Refund | null> {
  const row = await db
    .selectFrom('refunds')
    .selectAll()
    .where('tenant_id', '=', tenantId)
    .where('provider_refund_id', '=', providerRefundId)
    .executeTakeFirst()
  return row ?? null
}

/** The row, locked until the transaction ends. Orders and attempts are locked before it. */
export async function lockRefund(tx: Transaction<Tables>, tenantId: string, refundId: string): Promise<Refund> {
  return tx
    .selectFrom('refunds')
    .selectAll()
    .where('tenant_id', '=', tenantId)
    .where('refund_id', '=', refundId)
    .forNoKeyUpdate()
    .executeTakeFirstOrThrow()
}

/** Refunds in doubt or on their way that are due to be asked about, those that wait longest first; each is claimed by moving its
 * `next_ask_at` on, so that no two workers ask at once. */
export async function claimDueRefunds(
  db: Kysely<Tables>,
  limits: { firstMs: number; atMost: number },
): Promise<Refund[]> {
  const { rows } = await sql<Refund>`
    UPDATE refunds r SET asks = r.asks + 1, next_ask_at = ${nextAsk(limits.firstMs)}
    FROM (SELECT tenant_id, refund_id FROM refunds
          WHERE status = 'pending' AND next_ask_at <= now()
          ORDER BY next_ask_at LIMIT ${limits.atMost} FOR NO KEY UPDATE SKIP LOCKED) due
    WHERE r.tenant_id = due.tenant_id AND r.refund_id = due.refund_id
    RETURNING r.*`.execute(db)
  return rows
}

/** The same claim for one refund; null where it is settled or was asked about just now. */
export async function claimRefundAsk(
  db: Kysely<Tables>,
  tenantId: string,
  refundId: string,
  firstMs: number,
): Promise<Refund | null> {
  const { rows } = await sql<Refund>`
    UPDATE refunds r SET asks = r.asks + 1, next_ask_at = ${nextAsk(firstMs)}
    WHERE r.tenant_id = ${tenantId} AND r.refund_id = ${refundId}
      AND r.status = 'pending' AND r.next_ask_at <= now()
    RETURNING r.*`.execute(db)
  return rows[0] ?? null
}

/** From `firstMs`, doubling to 15 min, with jitter. 2^20 is beyond that for any first pause of a millisecond or more. */
function nextAsk(firstMs: number): RawBuilder<Date> {
  return sql`clock_timestamp()
    + least(${firstMs}::float8 * 2 ^ least(r.asks, 20), 900000) * (0.75 + random() / 2) * interval '1 ms'`
}
