/**
 * Money that arrives where no order waits for it: late for one that has ended unpaid, a second time for one that is
 * paid, or not what was asked for. It is booked, and given back once where nobody can want it.
 */
import type { Deps } from '../deps.ts'
import type { Judgement } from '../domain/judgement.ts'
import { isOpen, type Order } from '../domain/order.ts'
import { transfer } from '../domain/posting.ts'
import type { ProviderCall } from '../provider/port.ts'
import { recordFacts } from '../store/orders.ts'

/** `order` as it stands now, after a settlement that changed nothing. */
export async function bookUnexpectedMoney(
  deps: Deps,
  order: Order,
  judgement: Judgement,
  context: { cause: string; calls: readonly ProviderCall[] },
): Promise<void> {
  if (isOpen(order.status)) return
  const endedUnpaid = order.status === 'payment_failed' || order.status === 'canceled'

  if (judgement.kind === 'authorized' && endedUnpaid) {
    await recordFacts(deps.db, order, {
      transfers: [],
      jobs: [
        { topic: 'close_payment', business_id: judgement.payment.intentId, payload: { order_id: order.order_id } },
      ],
    })
    return
  }
  // A second payment for the same order can only be ours, made after the provider had forgotten the key.
  const second = judgement.kind === 'mismatch' && judgement.reason === 'payment_mismatch'
  if ((judgement.kind === 'paid' && endedUnpaid) || second) {
    const { intentId, amountCaptured, currency } = judgement.payment
    if (amountCaptured === 0) return
    deps.log.warn(
      {
        tenant_id: order.tenant_id,
        order_id: order.order_id,
        payment: intentId,
        status: order.status,
        cause: context.cause,
      },
      'money arrived for an order that does not wait for it; it will be refunded',
    )
    await recordFacts(deps.db, order, {
      transfers: [transfer('late_capture', intentId, amountCaptured, currency)],
      jobs: [
        {
          topic: 'refund_late_payment',
          business_id: intentId,
          payload: { order_id: order.order_id, amount: amountCaptured, currency },
        },
      ],
    })
    return
  }
  if (judgement.kind === 'mismatch' && judgement.payment.amountCaptured > 0) {
    const { intentId, amountCaptured, currency } = judgement.payment
    await recordFacts(deps.db, order, {
      transfers: [transfer('mismatch', intentId, amountCaptured, currency)],
      jobs: [],
      reconcileReason: judgement.reason,
    })
  }
}
