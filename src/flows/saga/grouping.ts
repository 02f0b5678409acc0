/** Claims and settles that arrive together share one statement and one commit. */
import type { Config } from '../../config.ts'
import { createBatcher } from '../../runtime/batcher.ts'
import { type DatabasePool, isDatabaseUnavailable, isRetryableTransaction } from '../../runtime/database.ts'
import type { Metrics } from '../../runtime/metrics.ts'
import { retrying } from '../../runtime/retrying.ts'
import type { Tracing } from '../../runtime/tracing.ts'
import { type Claim, type ClaimItem, claimAttempts } from '../../store/attempts.ts'
import { type Settled, type Settlement, settleOrders } from '../../store/orders.ts'

interface Watchers {
  metrics: Metrics
  tracing: Tracing
}

export const groupLimits = {
  /** Larger groups save little more and make everyone in them wait longer. */
  maxGroup: 64,
  /** While one group of a tenant is written, the next one gathers: two at once would be half as large each, cost more for
   * every item, and wait for the same rows. */
  maxInFlight: 1,
}

export function groupedClaims(
  pool: DatabasePool,
  config: Config,
  { metrics, tracing }: Watchers,
): (item: ClaimItem) => Promise<Claim> {
  const limits = { leaseMs: config.leaseMs, expiryMs: config.orderExpiryMs }
  const runLimits = { leaseMs: config.leaseMs, expiryMs: config.runExpiryMs }
  const claim = createBatcher<ClaimItem, Claim>({
    ...groupLimits,
    laneOf: (item) => `${item.kind} ${item.tenantId}`,
    identitiesOf: (item) =>
      item.cartId === undefined ? [`key ${item.key}`] : [`key ${item.key}`, `cart ${item.cartId}`],
    run: (lane, items) =>
      retrying(() => claimAttempts(pool, tenantOf(lane), items, lane.startsWith('run ') ? runLimits : limits)),
    failsAll,
    onGroup: (size) => metrics.group('claim', size),
  })
  return tracing.around('claim', claim, (item, { kind }) => ({
    'checkout.tenant_id': item.tenantId,
    'checkout.claim': kind,
    'checkout.order_id': kind === 'claimed' ? item.orderId : undefined,
  }))
}

export function groupedSettles(
  pool: DatabasePool,
  { metrics, tracing }: Watchers,
): (item: Settlement) => Promise<Settled> {
  const settle = createBatcher<Settlement, Settled>({
    ...groupLimits,
    laneOf: (item) => item.tenantId,
    identitiesOf: (item) => [item.orderId],
    run: (tenantId, items) => retrying(() => settleOrders(pool, tenantId, items)),
    failsAll,
    onGroup: (size) => metrics.group('settle', size),
  })
  return tracing.around('settle', settle, (item, { applied }) => ({
    'checkout.tenant_id': item.tenantId,
    'checkout.order_id': item.orderId,
    'checkout.settled_to': item.to,
    'checkout.applied': applied,
  }))
}

function tenantOf(lane: string): string {
  return lane.slice(lane.indexOf(' ') + 1)
}

/** A database that is away fails every item alike; running them one by one would only wait once more for each. */
function failsAll(error: unknown): boolean {
  return isDatabaseUnavailable(error) || isRetryableTransaction(error)
}
