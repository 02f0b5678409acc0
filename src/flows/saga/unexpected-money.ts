/**
 * Money that arrives where no order waits for it: late for one that has ended unpaid, a second time for one that is
 * paid, or not what was asked for. It is booked, and given back once where nobody can want it. What could still become
 * money is closed.
 */
import type { Deps } from '../../deps.ts'
import type { Judgement } from '../../domain/judgement.ts'
import { isOpen, type Order } from '../../domain/order.ts'
import { transfer } from '../../domain/posting.ts'
import type { ProviderPayment } from '../../provider/port.ts'
import { checkpoint } from '../../runtime/checkpoint.ts'
import { retrying } from '../../runtime/retrying.ts'
import { type Job, recordFacts } from '../../store/orders.ts'

/** `order` as it stands now, after a settlement that changed nothing; `judgement` is about that. */
export async function bookUnexpectedMoney(
  deps: Deps,
  order: Order,
  judgement: Judgement,
  context: { cause: string },
): Promise<void> {
  if (isOpen(order.status)) return
  const endedUnpaid = order.status === 'payment_failed' || order.status === 'canceled'
  switch (judgement.kind) {
    case 'paid':
      return endedUnpaid ? giveBack(deps, order, judgement.payment, context) : undefined
    case 'authorized':
      return endedUnpaid ? close(deps, order, judgement.payment.intentId) : undefined
    case 'requires_action':
      return endedUnpaid ? close(deps, order, judgement.facts.intent_id) : undefined
    case 'declined':
      return endedUnpaid ? close(deps, order, judgement.leftBehind ?? undefined) : undefined
    case 'unknown':
      return endedUnpaid ? doubt(deps, order, judgement.facts.intent_id, context) : undefined
    case 'mismatch':
      // A second payment for the same order can only be ours, made after the provider had forgotten the key.
      if (judgement.reason !== 'payment_mismatch') return suspend(deps, order, judgement)
      return judgement.payment.amountCaptured > 0
        ? giveBack(deps, order, judgement.payment, context)
        : close(deps, order, judgement.payment.intentId)
    case 'canceled':
    case 'not_sent':
      return
  }
}

async function giveBack(
  deps: Deps,
  order: Order,
  { intentId, amountCaptured, currency }: ProviderPayment,
  { cause }: { cause: string },
): Promise<void> {
  if (amountCaptured === 0) return
  deps.log.warn(
    { tenant_id: order.tenant_id, order_id: order.order_id, payment: intentId, status: order.status, cause },
    'money arrived for an order that does not wait for it; it will be refunded',
  )
  await record(deps, order, {
    transfers: [transfer('late_capture', intentId, amountCaptured, currency)],
    jobs: [
      {
        topic: 'refund_late_payment',
        business_id: intentId,
        payload: { order_id: order.order_id, amount: amountCaptured, currency },
      },
    ],
  })
}

async function close(deps: Deps, order: Order, intentId: string | undefined): Promise<void> {
  if (intentId === undefined) return
  const job: Job = { topic: 'close_payment', business_id: intentId, payload: { order_id: order.order_id } }
  await record(deps, order, { transfers: [], jobs: [job] })
}

/** A call that was sent after its order had ended, by a process that had been frozen. */
async function doubt(
  deps: Deps,
  order: Order,
  intentId: string | undefined,
  { cause }: { cause: string },
): Promise<void> {
  deps.log.error(
    { tenant_id: order.tenant_id, order_id: order.order_id, payment: intentId, status: order.status, cause },
    'a call for an order that had ended unpaid brought no answer: look for its payment at the provider',
  )
  await close(deps, order, intentId)
}

async function suspend(
  deps: Deps,
  order: Order,
  { payment, reason }: Extract<Judgement, { kind: 'mismatch' }>,
): Promise<void> {
  const { intentId, amountCaptured, currency } = payment
  if (amountCaptured === 0) return
  await record(deps, order, {
    transfers: [transfer('mismatch', intentId, amountCaptured, currency)],
    jobs: [],
    reconcileReason: reason,
  })
}

/** Each fact is booked once, so a lost answer is no reason to lose the money. */
async function record(deps: Deps, order: Order, facts: Parameters<typeof recordFacts>[2]): Promise<void> {
  await retrying(() => recordFacts(deps.db, order, facts))
  await checkpoint('unexpected_money.recorded')
}
