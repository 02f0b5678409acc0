/** What a repeat of a known checkout does for it. */
import type { Deps } from '../../deps.ts'
import type { Order } from '../../domain/order.ts'
import type { KnownAttempt } from '../../store/attempts.ts'
import { claimAsk } from '../../store/orders.ts'
import { type Answer, openAnswer } from './answers.ts'
import { type AttemptRequest, digestWith } from './checkout-request.ts'
import { answerKnown } from './known-attempt.ts'
import { deadlineFor, providerForgetsKeysMs } from './provider-calls.ts'
import { type Drive, drive, takeOver } from './recovery.ts'
import { providerUnavailable } from './settlement.ts'

/** `claim_again`: the attempt has gone meanwhile. `startedMs` is when the request came, on the monotonic clock. */
export function answerRepeat(
  deps: Deps,
  request: AttemptRequest,
  known: KnownAttempt,
  startedMs: number,
): Promise<Answer | 'claim_again'> {
  const repeat = {
    tenantId: request.tenantId,
    key: request.key,
    fingerprint: request.fingerprint,
    digestWith: (secret: Parameters<typeof digestWith>[0]) => digestWith(secret, request),
    nudge: (attempt: KnownAttempt) => nudge(deps, request, attempt.order as Order),
    goOn: (attempt: KnownAttempt) => goOn(deps, request, attempt),
    unreached: () => providerUnavailable(deps.config.reconcileAfterMs),
  }
  return answerKnown(deps, repeat, known, startedMs)
}

/** An open attempt: drive it forward, unless somebody has asked the provider just now, and tell where it stands. */
async function nudge(deps: Deps, request: AttemptRequest, order: Order): Promise<Answer> {
  const asked = await claimAsk(deps.pool, order.tenant_id, order.order_id, deps.config.reconcileAfterMs)
  if (asked === null) return openAnswer(order, deps.config.reconcileAfterMs)
  return (await drive(deps, asked, asCustomer(deps, request, asked))).answer
}

/** Nobody works on it: go on where the last owner stopped. Null where somebody else was faster. */
async function goOn(deps: Deps, request: AttemptRequest, attempt: KnownAttempt): Promise<Answer | null> {
  const by = asCustomer(deps, request, attempt.order as Order)
  const taken = await takeOver(deps, request.tenantId, attempt.objectId, true)
  return taken === null ? null : (await drive(deps, taken.order, by, taken.lease)).answer
}

/** The customer is there and wants it: may send until the order expires, but never when the provider could have
 * forgotten the key, which would make it a second charge. */
function asCustomer(deps: Deps, request: AttemptRequest, order: Order): Drive {
  return {
    cause: 'repeat',
    actor: request.requestId,
    sendUntil: new Date(Math.min(order.expires_at.getTime(), order.created_at.getTime() + providerForgetsKeysMs)),
    maySendUnsent: true,
    deadline: deadlineFor(deps, performance.now()),
  }
}
