import type { PaymentIntentRecord } from './records.ts'
import { scopeName } from './records.ts'
import type { World } from './world.ts'

/** What really happened to one payment, for whoever audits a service against the simulator. Amounts in Stripe's minor
 * units, `created` in unix seconds. */
export function viewIntent(world: World, intent: PaymentIntentRecord): object {
  const { books, keys } = world
  const { id, account, livemode, metadata, idempotency_key, status, amount, amount_received, amount_capturable } =
    intent
  return {
    id,
    account,
    livemode,
    metadata,
    idempotency_key,
    /** How many requests came with that key, replays and refused ones included. */
    requests: idempotency_key === null ? null : keys.requests(scopeName(intent), idempotency_key),
    status,
    amount,
    amount_received,
    amount_capturable,
    currency: intent.currency,
    capture_method: intent.capture_method,
    cancellation_reason: intent.cancellation_reason,
    decline_code: intent.last_payment_error?.decline_code ?? null,
    created: intent.created,
    charges: found(intent.charges, (chargeId) => books.charges.peek(chargeId)).map((charge) => ({
      id: charge.id,
      status: charge.status,
      amount: charge.amount,
      captured: charge.captured,
      amount_captured: charge.amount_captured,
      amount_refunded: charge.amount_refunded,
      disputed: charge.disputed,
      capture_before: charge.capture_before,
      created: charge.created,
    })),
    refunds: found(intent.refunds, (refundId) => books.refunds.peek(refundId)).map((refund) => ({
      id: refund.id,
      amount: refund.amount,
      status: refund.status,
      reason: refund.reason,
      metadata: refund.metadata,
      idempotency_key: refund.idempotency_key,
      created: refund.created,
    })),
    disputes: found(intent.disputes, (disputeId) => books.disputes.peek(disputeId)).map((dispute) => ({
      id: dispute.id,
      amount: dispute.amount,
      status: dispute.status,
      funds_withdrawn: dispute.funds_withdrawn,
      created: dispute.created,
    })),
  }
}

function found<R>(ids: readonly string[], find: (id: string) => R | undefined): R[] {
  return ids.map(find).filter((record) => record !== undefined)
}

/** Every intent, oldest first, as JSON written piece by piece: there may be many. */
export function* intentsAsJson(world: World): Generator<string> {
  let batch = '{"data":['
  let separator = ''
  for (const intent of world.books.intents.all()) {
    batch += separator + JSON.stringify(viewIntent(world, intent))
    separator = ',\n'
    if (batch.length < 64_000) continue
    yield batch
    batch = ''
  }
  yield `${batch}]}`
}
