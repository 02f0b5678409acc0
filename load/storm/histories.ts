/** All that is known of a key, from every side, for whoever has to find out what went wrong. */
import type pg from 'pg'
import { paymentsOfOrder } from '../support/simulator-control.ts'
import type { History, Verdict } from './page.ts'
import type { Attempt } from './shoppers.ts'
import type { Stage } from './stage.ts'

/** Of a broken rule there may be many; the first ones tell. */
const historiesMax = 5

const sources = [
  ['attempt', 'SELECT to_jsonb(t) AS row FROM attempts t WHERE tenant_id = $1 AND object_id = $2'],
  ['order', 'SELECT to_jsonb(t) AS row FROM orders t WHERE tenant_id = $1 AND order_id = $2'],
  [
    'transition',
    'SELECT to_jsonb(t) AS row FROM order_transitions t WHERE tenant_id = $1 AND order_id = $2 ORDER BY at',
  ],
  [
    'call',
    'SELECT to_jsonb(t) AS row FROM provider_calls t WHERE tenant_id = $1 AND order_id = $2 ORDER BY started_at',
  ],
  [
    'stock',
    'SELECT to_jsonb(t) AS row FROM stock_movements t WHERE tenant_id = $1 AND order_id = $2 ORDER BY created_at',
  ],
  [
    'ledger',
    'SELECT to_jsonb(t) AS row FROM ledger_transfers t WHERE tenant_id = $1 AND order_id = $2 ORDER BY created_at',
  ],
  [
    'job',
    "SELECT to_jsonb(t) AS row FROM jobs t WHERE tenant_id = $1 AND business_id LIKE $2 || '%' ORDER BY created_at",
  ],
] as const

/** Of the keys that a verdict is about. */
export async function historiesOf(
  verdict: Verdict,
  { pool, simulatorUrl }: Pick<Stage, 'pool' | 'simulatorUrl'>,
  tenantId: string,
  attempts: ReadonlyMap<string, Attempt>,
): Promise<History[]> {
  const subjects = [...verdict.contradictions.map(({ key }) => key), ...verdict.findings.map(({ subject }) => subject)]
  const histories = new Map<string, History>()
  for (const subject of new Set(subjects)) {
    if (histories.size >= historiesMax) break
    const history = await historyOf(pool, simulatorUrl, tenantId, subject, attempts)
    if (history !== null) histories.set(history.key, history)
  }
  return [...histories.values()]
}

/** `subject` as an audit names it: a key, an order, a cart, or a business id that starts with an order. */
async function historyOf(
  pool: pg.Pool,
  simulatorUrl: string,
  tenantId: string,
  subject: string,
  attempts: ReadonlyMap<string, Attempt>,
): Promise<History | null> {
  const { rows } = await pool.query<{ order_id: string; attempt_key: string }>(
    `SELECT order_id, attempt_key FROM orders
     WHERE tenant_id = $1 AND (order_id = split_part($2, ':', 1) OR attempt_key = $2 OR cart_id = $2) LIMIT 1`,
    [tenantId, subject],
  )
  const key = rows[0]?.attempt_key ?? (attempts.has(subject) ? subject : undefined)
  if (key === undefined) return null
  const orderId = rows[0]?.order_id ?? null
  const lines = (attempts.get(key)?.story ?? []).map(
    ({ at, kind, told }) => `shopper     ${at.toISOString()} ${kind}: ${told}`,
  )
  if (orderId !== null) {
    for (const [source, sql] of sources) {
      const found = await pool.query<{ row: unknown }>(sql, [tenantId, orderId])
      for (const { row } of found.rows) lines.push(`${source.padEnd(11)} ${told(row)}`)
    }
    for (const payment of await paymentsOfOrder(simulatorUrl, orderId)) lines.push(`provider    ${told(payment)}`)
  }
  return { key, orderId, lines }
}

/** Without what is empty and what could not be read anyway. */
function told(row: unknown): string {
  const shown = Object.entries(row as Record<string, unknown>).filter(
    ([name, value]) => value !== null && !name.startsWith('digest') && name !== 'tenant_id' && name !== 'client_secret',
  )
  return JSON.stringify(Object.fromEntries(shown))
}
