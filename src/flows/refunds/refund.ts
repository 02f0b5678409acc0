/**
 * Money goes back: one refund per request, whatever repeats it.
 *
 *   claim    key + refund + its part of the order's budget     one transaction, committed before the provider is asked
 *   refund   at the provider, under a key made from its id     no transaction, no connection
 *   settle   refund + budget + ledger + outbox + answer        one transaction
 *   answer
 *
 * What dies in between is driven on by a repeat or by the worker, through the same `settleRefund`.
 */
import { randomUUID } from 'node:crypto'
import type { Deps } from '../../deps.ts'
import { type DigestSecret, digestRequest, type RequestDigest } from '../../domain/digest.ts'
import { newId } from '../../domain/ids.ts'
import type { Order } from '../../domain/order.ts'
import { Problem } from '../../domain/problem.ts'
import type { Refund } from '../../domain/refund.ts'
import { checkpoint } from '../../runtime/checkpoint.ts'
import { type KnownAttempt, readAttempts } from '../../store/attempts.ts'
import { readOrder } from '../../store/orders.ts'
import { claimRefund, resumeRefund } from '../../store/refund-claims.ts'
import { claimRefundAsk, readRefund } from '../../store/refunds.ts'
import { type Answer, storedAnswer } from '../saga/answers.ts'
import { answerKnown } from '../saga/known-attempt.ts'
import { type Deadline, deadlineFor } from '../saga/provider-calls.ts'
import { refuseOffStep } from '../saga/refusals.ts'
import { attemptId } from '../saga/replay-cache.ts'
import { refundAnswer, refundUnreached, refuseExceeding } from './refund-answers.ts'
import { driveRefund, sendRefund } from './refund-recovery.ts'

export interface RefundRequest {
  tenantId: string
  orderId: string
  key: string
  requestId: string
  /** Method and path as digested. */
  method: string
  path: string
  body: RefundBody
}

/** As the API takes it; the schema beside the route has checked it. */
export interface RefundBody {
  /** Minor units; what is left of the order where it is not given. */
  amount?: number
  reason?: string
}

/** Throws a `Problem` where the refund is refused; nothing is stored then and the key is free, or says what stands there. */
export function refundOrder(deps: Deps, request: RefundRequest): Promise<Answer> {
  const digest = digestRequest(deps.digests.newest, request)
  const same = { digest: digest.digest, fingerprint: null }
  return deps.twins.join(attemptId(request), same, deps.config.idempotencyWaitMs, () => attempt(deps, request, digest))
}

async function attempt(deps: Deps, request: RefundRequest, digest: RequestDigest): Promise<Answer> {
  const startedMs = performance.now()
  const { tenantId, orderId, key, body } = request
  for (;;) {
    const known = (await readAttempts(deps.pool, tenantId, [key])).get(key)
    if (known !== undefined) {
      const answer = await answerKnown(deps, repeatOf(deps, request), known, startedMs)
      if (answer !== 'claim_again') return answer
    }
    const order = await readOrder(deps.db, tenantId, orderId)
    if (order === null) throw new Problem('not_found')
    if (body.amount !== undefined) refuseOffStep(order.currency, body.amount, 'refunded')
    const leaseToken = randomUUID()
    const claim = await claimRefund(deps.db, {
      tenantId,
      orderId,
      key,
      refundId: newId('ref'),
      leaseToken,
      leaseMs: deps.config.leaseMs,
      ...(body.amount === undefined ? {} : { amount: body.amount }),
      ...(body.reason === undefined ? {} : { reason: body.reason }),
      digest,
    })
    switch (claim.kind) {
      case 'claimed': {
        await checkpoint('refund.claimed')
        const deadline = deadlineFor(deps, startedMs)
        return told(deps, await sendRefund(deps, order, claim.refund, leaseToken, deadline))
      }
      case 'not_found':
        throw new Problem('not_found')
      case 'not_paid':
        return refuseUnpaid(claim.order)
      case 'exceeds':
        return refuseExceeding(claim.refundable, claim.order.currency)
      case 'known':
        break
    }
  }
}

function repeatOf(deps: Deps, request: RefundRequest): Parameters<typeof answerKnown>[1] {
  const deadline = (): Deadline => deadlineFor(deps, performance.now())
  return {
    tenantId: request.tenantId,
    key: request.key,
    fingerprint: null,
    digestWith: (secret: DigestSecret) => digestRequest(secret, request),
    nudge: async (known) => nudge(deps, await refundOf(deps, request, known), deadline()),
    goOn: async (known) => goOn(deps, await refundOf(deps, request, known), known, deadline()),
    unreached: () => refundUnreached(deps.config.reconcileAfterMs),
  }
}

/** In doubt or on its way: drive it on, unless somebody has asked the provider just now, and tell where it stands. */
async function nudge(deps: Deps, refund: Refund, deadline: Deadline): Promise<Answer> {
  const asked = await claimRefundAsk(deps.db, refund.tenant_id, refund.refund_id, deps.config.reconcileAfterMs)
  return told(deps, (asked === null ? null : await driveRefund(deps, asked, deadline)) ?? refund)
}

/** Nobody works on it: go on where the last owner stopped. Null where somebody else was faster. */
async function goOn(deps: Deps, refund: Refund, known: KnownAttempt, deadline: Deadline): Promise<Answer | null> {
  if (known.state !== 'resumable') {
    const driven = await driveRefund(deps, refund, deadline)
    return driven === null ? null : told(deps, driven)
  }
  const leaseToken = randomUUID()
  const resumed = await resumeRefund(deps.db, refund, leaseToken, deps.config.leaseMs)
  if (resumed.kind === 'taken') return null
  if (resumed.kind === 'exceeds') return refuseExceeding(resumed.refundable, refund.currency)
  const order = (await readOrder(deps.db, refund.tenant_id, refund.order_id)) as Order
  return told(deps, await sendRefund(deps, order, resumed.refund, leaseToken, deadline))
}

async function refundOf(deps: Deps, request: RefundRequest, known: KnownAttempt): Promise<Refund> {
  const refund = await readRefund(deps.db, request.tenantId, known.objectId)
  if (refund === null) throw new Error(`attempt without its refund ${known.objectId}`)
  return refund
}

/** What the request is told. Once the attempt has been settled, whoever brought that, its stored answer stands. */
async function told(deps: Deps, refund: Refund): Promise<Answer> {
  const { reconcileAfterMs } = deps.config
  const key = refund.attempt_key ?? ''
  const attempt = (await readAttempts(deps.pool, refund.tenant_id, [key])).get(key)
  if (attempt?.answer != null) {
    return { ...storedAnswer(attempt.answer, refund.refund_id, false), aboutOrderId: refund.order_id }
  }
  if (refund.status === 'unsent') throw refundUnreached(reconcileAfterMs)
  return refundAnswer(refund, reconcileAfterMs)
}

function refuseUnpaid(order: Order): never {
  throw new Problem('order_state_conflict', {
    detail: `The order is ${order.status}; only what was paid can be refunded.`,
    members: { order_status: order.status },
  })
}
