/** What a client is told of a refund. */
import { Problem } from '../../domain/problem.ts'
import { type Refund, refundView } from '../../domain/refund.ts'
import type { Answer } from '../saga/answers.ts'

/** The refund as it stands: 201 once it has ended, 202 while it is in doubt or on its way. */
export function refundAnswer(refund: Refund, retryAfterMs: number): Answer {
  const ended = refund.status === 'succeeded' || refund.status === 'failed'
  return {
    status: ended ? 201 : 202,
    body: JSON.stringify(refundView(refund)),
    orderId: ended ? refund.refund_id : null,
    aboutOrderId: refund.order_id,
    retryAfterMs: ended ? null : retryAfterMs,
    replayed: false,
  }
}

/** The provider was surely not reached: the same key goes on. */
export function refundUnreached(retryAfterMs: number): Problem {
  return new Problem('provider_unavailable', {
    detail: 'The payment provider was not reached and nothing was refunded. Repeat the request with the same key.',
    members: { new_key_safe: false },
    retryAfterSeconds: Math.max(1, Math.ceil(retryAfterMs / 1000)),
  })
}

export function refuseExceeding(refundable: number, currency: string): never {
  throw new Problem('refund_exceeds_captured', {
    detail:
      refundable === 0
        ? 'Nothing is left to refund: refunds, refunds in doubt and disputes have used it up.'
        : `At most ${refundable} ${currency} (in minor units) can still be refunded.`,
    members: { refundable },
  })
}
