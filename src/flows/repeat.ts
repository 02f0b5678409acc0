/** What a repeat of a known attempt gets, and what it does for it. */
import type { Deps } from '../deps.ts'
import type { Order } from '../domain/order.ts'
import { Problem } from '../domain/problem.ts'
import { type KnownAttempt, readAttempts } from '../store/attempts.ts'
import { claimAsk } from '../store/orders.ts'
import { type Answer, openAnswer, storedAnswer } from './answers.ts'
import { type CheckoutRequest, digestWith } from './checkout-request.ts'
import { deadlineFor } from './provider-calls.ts'
import { type Drive, drive, takeOver } from './recovery.ts'
import { providerUnavailable } from './settlement.ts'
import { refuseInProgress, refuseOther } from './twins.ts'

/** Stripe may forget an idempotency key after 24 h (https://docs.stripe.com/api/idempotent_requests); an hour is kept
 * for clocks and slow calls. */
const providerForgetsKeysMs = 23 * 3_600_000

/** `claim_again`: the attempt has gone meanwhile. `startedMs` is when the request came, on the monotonic clock. */
export async function answerRepeat(
  deps: Deps,
  request: CheckoutRequest,
  known: KnownAttempt,
  startedMs: number,
): Promise<Answer | 'claim_again'> {
  let attempt: KnownAttempt | undefined = known
  // Whether the request has been waiting for the answer that the attempt has now.
  let waited = false
  while (attempt !== undefined) {
    refuseOtherRequest(deps, request, attempt)
    if (attempt.state === 'settled' && attempt.answer !== null) {
      return storedAnswer(attempt.answer, attempt.objectId, true)
    }
    if (attempt.state === 'open' && attempt.order !== null) {
      return { ...(await nudge(deps, request, attempt.order)), replayed: waited }
    }
    const stillMs = attempt.leaseRemainingMs ?? 0
    if (attempt.state === 'running' && stillMs > 0 && attempt.leaseToken !== null) {
      const waitMs = startedMs + deps.config.idempotencyWaitMs - performance.now()
      if (waitMs <= 0) refuseInProgress()
      await deps.watch.ended(request.tenantId, request.key, attempt.leaseToken, waitMs)
      waited = true
    } else {
      if (waited && attempt.state === 'resumable') {
        throw replayed(providerUnavailable(deps.config.reconcileAfterMs))
      }
      const answer = await goOn(deps, request, attempt)
      if (answer !== null) return answer
    }
    attempt = (await readAttempts(deps.pool, request.tenantId, [request.key])).get(request.key)
  }
  return 'claim_again'
}

function refuseOtherRequest(deps: Deps, request: CheckoutRequest, attempt: KnownAttempt): void {
  const secret = attempt.digest === null ? undefined : deps.digests.pick(attempt.digest.secretId)
  if (attempt.digest !== null && secret !== undefined) {
    refuseOther(attempt.digest, digestWith(secret, request))
    return
  }
  if (!attempt.swept) {
    deps.log.error({ tenant_id: request.tenantId }, 'the digest secret of an attempt is no longer configured')
  }
  throw new Problem('idempotency_key_expired', {
    detail: 'The key has been used and its stored answer is gone. Look up the order; nothing was charged again.',
    members: { order_id: attempt.objectId, new_key_safe: false },
  })
}

/** An open attempt: drive it forward, unless somebody has asked the provider just now, and tell where it stands. */
async function nudge(deps: Deps, request: CheckoutRequest, order: Order): Promise<Answer> {
  const asked = await claimAsk(deps.pool, order.tenant_id, order.order_id, deps.config.reconcileAfterMs)
  if (asked === null) return openAnswer(order, deps.config.reconcileAfterMs)
  return (await drive(deps, asked, asCustomer(deps, request, asked))).answer
}

/** Nobody works on it: go on where the last owner stopped. Null where somebody else was faster. */
async function goOn(deps: Deps, request: CheckoutRequest, attempt: KnownAttempt): Promise<Answer | null> {
  const by = asCustomer(deps, request, attempt.order as Order)
  const taken = await takeOver(deps, request.tenantId, attempt.objectId, true)
  return taken === null ? null : (await drive(deps, taken.order, by, taken.lease)).answer
}

/** The customer is there and wants it: may send until the order expires, but never when the provider could have
 * forgotten the key, which would make it a second charge. */
function asCustomer(deps: Deps, request: CheckoutRequest, order: Order): Drive {
  return {
    cause: 'repeat',
    actor: request.requestId,
    sendUntil: new Date(Math.min(order.expires_at.getTime(), order.created_at.getTime() + providerForgetsKeysMs)),
    maySendUnsent: true,
    deadline: deadlineFor(deps, performance.now(), request.traceparent),
  }
}

function replayed(problem: Problem): Problem {
  return new Problem(problem.code, { ...problem.options, detail: problem.message, replayed: true })
}
