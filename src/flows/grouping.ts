/** Claims and settles that arrive together share one statement and one commit. */
import type { Config } from '../config.ts'
import { createBatcher } from '../runtime/batcher.ts'
import { type DatabasePool, isDatabaseUnavailable, isRetryableTransaction } from '../runtime/database.ts'
import { retrying } from '../runtime/retrying.ts'
import { type Claim, type ClaimItem, claimAttempts } from '../store/attempts.ts'
import { type Settled, type Settlement, settleOrders } from '../store/orders.ts'

/** Larger groups save little more and make everyone in them wait longer. */
const maxGroup = 32
/** One group is written while the next one's rows are prepared; more would only wait for the same locks. */
const maxInFlight = 2

export function groupedClaims(pool: DatabasePool, config: Config): (item: ClaimItem) => Promise<Claim> {
  const limits = { leaseMs: config.leaseMs, expiryMs: config.orderExpiryMs }
  const runLimits = { leaseMs: config.leaseMs, expiryMs: config.runExpiryMs }
  return createBatcher<ClaimItem, Claim>({
    maxGroup,
    maxInFlight,
    laneOf: (item) => `${item.kind} ${item.tenantId}`,
    identitiesOf: (item) =>
      item.cartId === undefined ? [`key ${item.key}`] : [`key ${item.key}`, `cart ${item.cartId}`],
    run: (lane, items) =>
      retrying(() => claimAttempts(pool, tenantOf(lane), items, lane.startsWith('run ') ? runLimits : limits)),
    failsAll,
  })
}

export function groupedSettles(pool: DatabasePool): (item: Settlement) => Promise<Settled> {
  return createBatcher<Settlement, Settled>({
    maxGroup,
    maxInFlight,
    laneOf: (item) => item.tenantId,
    identitiesOf: (item) => [item.orderId],
    run: (tenantId, items) => retrying(() => settleOrders(pool, tenantId, items)),
    failsAll,
  })
}

function tenantOf(lane: string): string {
  return lane.slice(lane.indexOf(' ') + 1)
}

/** A database that is away fails every item alike; running them one by one would only wait once more for each. */
function failsAll(error: unknown): boolean {
  return isDatabaseUnavailable(error) || isRetryableTransaction(error)
}
