/** What became of an attempt. Never starts or moves one. */
import type { Deps } from '../../deps.ts'
import type { Order } from '../../domain/order.ts'
import { Problem } from '../../domain/problem.ts'
import { type KnownAttempt, readAttempts } from '../../store/attempts.ts'
import { readOrder } from '../../store/orders.ts'
import { attemptStateShown } from './refusals.ts'

interface AttemptView {
  state: 'in_progress' | 'open' | 'settled' | 'expired'
  /** No charge of this attempt exists or can still appear. */
  new_key_safe: boolean
  order?: { id: string; status: string; total: number; currency: string }
}

/** Throws `not_found` where the key is unknown. */
export async function lookUpAttempt(deps: Deps, tenantId: string, key: string): Promise<AttemptView> {
  const attempt = (await readAttempts(deps.pool, tenantId, [key])).get(key)
  if (attempt === undefined || attempt.kind !== 'checkout') {
    throw new Problem('not_found', {
      detail:
        'No attempt with this key is known. The first request may still be on its way: repeat it with the same key.',
      members: { new_key_safe: false },
    })
  }
  const order = await orderOf(deps, tenantId, attempt)
  return {
    state: attempt.swept ? 'expired' : attemptStateShown(attempt.state),
    new_key_safe: hasEndedUnpaid(order),
    ...(order === null
      ? {}
      : { order: { id: order.order_id, status: order.status, total: order.total, currency: order.currency } }),
  }
}

/** Whether a client may go on with another key: nothing is known of this one, or its order, of whatever kind, has ended
 * unpaid. */
export async function isNewKeySafe(deps: Deps, tenantId: string, key: string): Promise<boolean> {
  const attempt = (await readAttempts(deps.pool, tenantId, [key])).get(key)
  return attempt === undefined || hasEndedUnpaid(await orderOf(deps, tenantId, attempt))
}

/** Null for the attempt of a refund, which makes none. */
async function orderOf(deps: Deps, tenantId: string, attempt: KnownAttempt): Promise<Order | null> {
  return attempt.order ?? (await readOrder(deps.db, tenantId, attempt.objectId))
}

function hasEndedUnpaid(order: Order | null): boolean {
  return order?.status === 'payment_failed' || order?.status === 'canceled'
}
