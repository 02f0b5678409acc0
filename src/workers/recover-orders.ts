/** Finds orders that nobody has finished and are due to be asked about, and drives each on. */

import type { Deps } from '../deps.ts'
import { deadlineFor } from '../flows/saga/provider-calls.ts'
import { type Drive, drive } from '../flows/saga/recovery.ts'
import { newRunId } from '../runtime/run-id.ts'
import type { ClaimedOrder } from '../store/order-json.ts'
import { claimDueOrders } from '../store/orders.ts'
import { traced } from './traced.ts'

/** Asked about at once; the gate bounds how fast the provider is called. */
const atOnce = 8

/** Resolves with the number of orders that it found. */
export async function recoverOrders(deps: Deps): Promise<number> {
  const due = await claimDueOrders(deps.pool, { firstMs: deps.config.reconcileAfterMs, atMost: atOnce })
  await Promise.all(due.map((order) => recover(deps, order)))
  return due.length
}

async function recover(deps: Deps, order: ClaimedOrder): Promise<void> {
  try {
    const by: Drive = {
      cause: 'recovery',
      actor: newRunId(),
      sendUntil: new Date(order.created_at.getTime() + deps.config.recoverySendWindowMs),
      maySendUnsent: false,
      deadline: { ...deadlineFor(deps, performance.now()), background: true },
    }
    await traced(deps, 'recover order', order, () => drive(deps, order, by))
  } catch (error) {
    // The next ask is claimed already; one order's fault must not stop the others.
    deps.log.error({ err: error, tenant_id: order.tenant_id, order_id: order.order_id }, 'recovery of an order failed')
  }
}
