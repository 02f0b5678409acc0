/** After the storm: recovery runs to the end, then the books are compared. */
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { auditOrders, auditStock, type Finding } from '../../src/store/audit.ts'
import { auditBooks } from '../../src/store/audit-books.ts'
import { bookedPayments } from '../support/simulator-control.ts'
import { letTimePass } from './aging.ts'

export interface Calm {
  /** Until nothing was open, s. */
  seconds: number
  /** Orders that waited for what the provider never had, whose waiting was cut short. */
  cutShort: number
  /** What is still open. */
  open: number
}

/** Every rule holds here and against the provider's books. `stock` as it was before the first order, by SKU. */
export async function judge(
  pool: pg.Pool,
  simulatorUrl: string,
  tenantId: string,
  stock: Readonly<Record<string, number>>,
): Promise<Finding[]> {
  return [
    ...(await auditOrders(pool, { tenantId })),
    ...(await auditStock(pool, tenantId, stock)),
    ...(await auditBooks(pool, bookedPayments(simulatorUrl), { tenantId })),
  ]
}

/** Judges again while anything is only unfinished, until the limit. */
export async function judgeWhenFinished(audit: () => Promise<Finding[]>, limitSeconds: number): Promise<Finding[]> {
  const deadline = Date.now() + limitSeconds * 1000
  for (;;) {
    const findings = await audit()
    if (findings.every(({ severity }) => severity === 'wrong') || Date.now() > deadline) return findings
    await delay(1000)
  }
}

/** Waits until no order is open. `mayCutShort`: where nothing has moved for a while, the time that recovery waits out is
 * let pass; only for a database of the storm's own. */
export async function untilCalm(
  pool: pg.Pool,
  tenantId: string,
  { limitSeconds, mayCutShort, onOpen }: { limitSeconds: number; mayCutShort: boolean; onOpen: (open: number) => void },
): Promise<Calm> {
  const startedMs = Date.now()
  let last = Number.POSITIVE_INFINITY
  let movedMs = Date.now()
  let cutShort = 0
  for (;;) {
    const open = await openOrders(pool, tenantId)
    if (open !== last) onOpen(open)
    const seconds = Math.round((Date.now() - startedMs) / 100) / 10
    if (open === 0 || seconds > limitSeconds) return { seconds, cutShort, open }
    if (open !== last) movedMs = Date.now()
    last = open
    if (mayCutShort && Date.now() - movedMs > patienceMs) {
      cutShort = Math.max(cutShort, await letTimePass(pool))
      movedMs = Date.now()
    }
    await delay(250)
  }
}

/** Longer than a lease of the storm's processes: what a dead one held is free by then. */
const patienceMs = 10_000

async function openOrders(pool: pg.Pool, tenantId: string): Promise<number> {
  const { rows } = await pool.query<{ open: number }>(
    `SELECT count(*)::integer AS open FROM orders
     WHERE tenant_id = $1 AND status IN ('pending', 'requires_action', 'needs_reconcile')`,
    [tenantId],
  )
  return rows[0]?.open ?? 0
}

/** How many orders there are by status. */
export async function orderCounts(pool: pg.Pool, tenantId: string): Promise<Record<string, number>> {
  const { rows } = await pool.query<{ status: string; count: number }>(
    'SELECT status, count(*)::integer AS count FROM orders WHERE tenant_id = $1 GROUP BY 1 ORDER BY 2 DESC',
    [tenantId],
  )
  return Object.fromEntries(rows.map(({ status, count }) => [status, count]))
}
