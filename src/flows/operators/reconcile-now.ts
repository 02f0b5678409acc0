/** "Reconcile now": an operator has the provider asked about an order, as the workers would when its turn comes. */
import type { Deps } from '../../deps.ts'
import { isOpen, type Order } from '../../domain/order.ts'
import { Problem } from '../../domain/problem.ts'
import { DatabaseClock } from '../../store/database-clock.ts'
import { readEnding } from '../../store/holds.ts'
import { claimAsk, readOrder } from '../../store/orders.ts'
import { endHold } from '../holds/hold.ts'
import { readProviderDisputes } from '../refunds/disputes.ts'
import { readProviderRefunds } from '../refunds/provider-refunds.ts'
import { deadlineFor } from '../saga/provider-calls.ts'
import { type Drive, drive } from '../saga/recovery.ts'
import { audited, type Operator } from './operator.ts'

/** Resolves with the order as it stands then. Throws a `Problem`: `not_found`, or what ending a hold is refused with. */
export async function reconcileNow(deps: Deps, by: Operator, orderId: string): Promise<Order> {
  const order = await readOrder(deps.db, by.tenantId, orderId)
  if (order === null) throw new Problem('not_found')
  const act = { action: 'reconcile', target: { type: 'order' as const, id: orderId, orderId } }
  return audited(
    deps,
    by,
    act,
    () => reconcile(deps, by, order),
    ({ status }) => status,
  )
}

async function reconcile(deps: Deps, by: Operator, order: Order): Promise<Order> {
  const { tenant_id: tenantId, order_id: orderId } = order
  const how: Drive = {
    cause: 'operator',
    actor: by.requestId,
    sendUntil: new Date(order.created_at.getTime() + deps.config.recoverySendWindowMs),
    maySendUnsent: false,
    deadline: deadlineFor(deps, performance.now()),
  }
  if (isOpen(order.status)) {
    const asked = await claimAsk(deps.pool, tenantId, orderId, deps.config.reconcileAfterMs, true)
    if (asked !== null) return (await drive(deps, asked, how)).order
  } else if (order.status === 'authorized') {
    const ending = await readEnding(deps.db, tenantId, orderId)
    // It holds its money: nothing of it is sent, or too late.
    if (ending === null) return (await drive(deps, { ...order, clock: new DatabaseClock(new Date()) }, how)).order
    const { action, amount } = ending
    const operator = { cause: 'operator' as const, actor: by.requestId, background: false }
    return endHold(deps, { tenantId, orderId, action, amount }, operator)
  } else if (order.status === 'paid') {
    await readProviderRefunds(deps, order, by.requestId)
    await readProviderDisputes(deps, order, by.requestId)
  }
  return (await readOrder(deps.db, tenantId, orderId)) ?? order
}
