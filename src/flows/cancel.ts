/** The customer gives up: the payment is closed at the provider, then the order here, and cart and stock are free again. */
import type { Deps } from '../deps.ts'
import { isOpen, type Order } from '../domain/order.ts'
import { orderView } from '../domain/order-view.ts'
import { Problem } from '../domain/problem.ts'
import { type KnownAttempt, readAttempts } from '../store/attempts.ts'
import { claimAsk, readOrder, requestCancel } from '../store/orders.ts'
import { deadlineFor } from './provider-calls.ts'
import { drive } from './recovery.ts'
import { attemptStateShown } from './refusals.ts'
import { refuseInProgress } from './twins.ts'

export interface CancelRequest {
  tenantId: string
  key: string
  requestId: string
  traceparent?: string
}

/**
 * Resolves with the order as it stands: ended unpaid, or still open where the provider could not be asked; then it is
 * never charged again and recovery goes on closing it. Throws a `Problem`: `not_found`, `idempotency_key_in_progress`,
 * or `checkout_already_settled` where it has been paid.
 */
export async function cancelCheckout(deps: Deps, request: CancelRequest): Promise<Order> {
  const { tenantId, key } = request
  const untilMs = performance.now() + deps.config.idempotencyWaitMs
  for (;;) {
    const attempt = (await readAttempts(deps.pool, tenantId, [key])).get(key)
    if (attempt === undefined || attempt.kind !== 'checkout') throw new Problem('not_found')
    const running = attempt.state === 'running' && (attempt.leaseRemainingMs ?? 0) > 0
    if (running && attempt.leaseToken !== null) {
      // It may be charging this moment: what becomes of that decides.
      const waitMs = untilMs - performance.now()
      if (waitMs <= 0) refuseInProgress()
      await deps.watch.ended(tenantId, key, attempt.leaseToken, waitMs)
      continue
    }
    const order = await readOrder(deps.db, tenantId, attempt.objectId)
    if (order === null) throw new Error(`attempt without its order ${attempt.objectId}`)
    return isOpen(order.status) ? close(deps, request, order) : endedUnpaid(order, attempt)
  }
}

async function close(deps: Deps, request: CancelRequest, order: Order): Promise<Order> {
  await requestCancel(deps.db, order.tenant_id, order.order_id)
  const asked = await claimAsk(deps.pool, order.tenant_id, order.order_id, deps.config.reconcileAfterMs, true)
  if (asked === null) return endedUnpaid((await readOrder(deps.db, order.tenant_id, order.order_id)) as Order)
  const { order: now } = await drive(deps, asked, {
    cause: 'customer',
    actor: request.requestId,
    sendUntil: new Date(0),
    maySendUnsent: false,
    deadline: deadlineFor(deps, performance.now(), request.traceparent),
  })
  return isOpen(now.status) ? now : endedUnpaid(now)
}

function endedUnpaid(order: Order, attempt?: KnownAttempt): Order {
  if (order.status === 'canceled' || order.status === 'payment_failed') return order
  throw new Problem('checkout_already_settled', {
    detail: `The order is ${order.status}.`,
    members: {
      state: attemptStateShown(attempt?.state ?? 'settled'),
      order: orderView(order),
      new_key_safe: false,
    },
  })
}
