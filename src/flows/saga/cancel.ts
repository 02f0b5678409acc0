/** The customer gives up: the payment is closed at the provider, then the order here, and cart and stock are free again. */
import type { Deps } from '../../deps.ts'
import { isOpen, type Order } from '../../domain/order.ts'
import { orderView } from '../../domain/order-view.ts'
import { Problem } from '../../domain/problem.ts'
import { checkpoint } from '../../runtime/checkpoint.ts'
import { type KnownAttempt, readAttempts } from '../../store/attempts.ts'
import { claimAsk, readOrder, requestCancel } from '../../store/orders.ts'
import { deadlineFor } from './provider-calls.ts'
import { drive } from './recovery.ts'
import { attemptStateShown } from './refusals.ts'
import { refuseInProgress } from './twins.ts'

interface CancelRequest {
  tenantId: string
  key: string
  requestId: string
}

/**
 * Resolves with the order as it stands: ended unpaid, or still open where the provider could not be asked; then it is
 * never charged again and recovery goes on closing it. Throws a `Problem`: `not_found`, `idempotency_key_in_progress`,
 * or `checkout_already_settled` where it has been paid.
 */
export async function cancelCheckout(deps: Deps, request: CancelRequest): Promise<Order> {
  const { tenantId, key } = request
  const untilMs = performance.now() + deps.config.idempotencyWaitMs
  let isFirstRequest = false
  let hasTried = false
  for (;;) {
    const attempt = (await readAttempts(deps.pool, tenantId, [key])).get(key)
    if (attempt === undefined || attempt.kind !== 'checkout') throw new Problem('not_found')
    const running = attempt.state === 'running' && (attempt.leaseRemainingMs ?? 0) > 0
    if (running && attempt.leaseToken !== null) {
      // It may be charging this moment: what becomes of that decides.
      const waitMs = untilMs - performance.now()
      if (waitMs <= 0) refuseInProgress(attempt.objectId)
      await deps.watch.ended(tenantId, key, attempt.leaseToken, waitMs)
      hasTried = false
      continue
    }
    const order = await readOrder(deps.db, tenantId, attempt.objectId)
    if (order === null) throw new Error(`attempt without its order ${attempt.objectId}`)
    if (!isOpen(order.status)) return endedUnpaid(order, attempt)
    if (hasTried) return order
    if (await requestCancel(deps.db, tenantId, order.order_id)) isFirstRequest = true
    await checkpoint('cancel.requested')
    await close(deps, request, order, isFirstRequest)
    // Where it is still open: because somebody took the lease meanwhile? Then theirs is the next word.
    hasTried = true
  }
}

/** The first request asks the provider at once; repeats share the order's pauses. */
async function close(deps: Deps, request: CancelRequest, order: Order, isFirstRequest: boolean): Promise<void> {
  const { tenant_id, order_id, status } = order
  const atOnce = isFirstRequest || status === 'pending'
  const asked = await claimAsk(deps.pool, tenant_id, order_id, deps.config.reconcileAfterMs, atOnce)
  if (asked === null) return
  await drive(deps, asked, {
    cause: 'customer',
    actor: request.requestId,
    sendUntil: new Date(0),
    maySendUnsent: false,
    deadline: deadlineFor(deps, performance.now()),
  })
}

function endedUnpaid(order: Order, attempt: KnownAttempt): Order {
  if (order.status === 'canceled' || order.status === 'payment_failed') return order
  throw new Problem('checkout_already_settled', {
    detail: `The order is ${order.status}.`,
    members: {
      state: attemptStateShown(attempt.state),
      order: orderView(order),
      new_key_safe: false,
    },
  })
}
