/**
 * The one way in which a refund moves: the provider's word is applied as a conditional change, together with the budget,
 * the ledger, the outbox and the stored answer. The answer to a request, a repeat, a notification and the worker all come here.
 */
import type { Deps } from '../../deps.ts'
import { transfer } from '../../domain/posting.ts'
import type { Refund } from '../../domain/refund.ts'
import type { ProviderCall, ProviderRefund, RefundOutcome } from '../../provider/port.ts'
import { checkpoint } from '../../runtime/checkpoint.ts'
import type { Job } from '../../store/orders.ts'
import { changeRefund, type RefundChange, type RefundChanged, type RefundEffects } from '../../store/refund-changes.ts'
import { refundAnswer } from './refund-answers.ts'

/** `gone`: searched for when nothing that was sent could still arrive, and not found. */
type RefundVerdict = Exclude<RefundOutcome, { kind: 'absent' }> | { kind: 'gone' }

interface RefundContext {
  calls: readonly ProviderCall[]
  /** Guards what is decided from ignorance, and is given back by it. */
  leaseToken?: string
  /** It was sent under that lease. */
  wasSent?: true
}

export function settleRefund(
  deps: Deps,
  refund: Refund,
  verdict: RefundVerdict,
  context: RefundContext,
): Promise<RefundChanged> {
  return apply(deps, refund, decide(deps, refund, verdict, context))
}

/** Leaves a refund in doubt as it is, for the reason given, and gives back the lease. */
export function leaveInDoubt(
  deps: Deps,
  refund: Refund,
  reason: string,
  context: RefundContext & { leaseToken: string },
): Promise<RefundChanged> {
  return apply(deps, refund, inDoubt(deps, refund, reason, context))
}

async function apply(deps: Deps, refund: Refund, change: RefundChange): Promise<RefundChanged> {
  await checkpoint(`refund.deciding_${change.to}`)
  const changed = await changeRefund(deps.db, refund, change)
  await checkpoint(`refund.decided_${change.to}`)
  if (!changed.applied) {
    const { tenant_id, refund_id, status } = changed.refund
    deps.log.info(
      { tenant_id, refund_id, wanted: change.to, is: status },
      'news of a refund came late and changed nothing',
    )
  }
  return changed
}

function decide(deps: Deps, refund: Refund, verdict: RefundVerdict, context: RefundContext): RefundChange {
  switch (verdict.kind) {
    case 'succeeded':
    case 'pending':
    case 'failed':
      return {
        ...base(deps, context),
        to: verdict.kind,
        ...factsOf(verdict.refund),
        doubt: verdict.kind === 'pending' ? 'pending_at_provider' : null,
        attemptState: verdict.kind === 'pending' ? 'open' : 'settled',
        askInMs: pauseMs(deps, refund),
      }
    case 'rejected':
      return { ...base(deps, context), to: 'failed', failureCode: verdict.code, doubt: null, attemptState: 'settled' }
    case 'gone':
      return {
        ...base(deps, context),
        ...guard(context),
        to: 'failed',
        failureCode: 'not_found_at_provider',
        doubt: null,
        attemptState: 'settled',
      }
    case 'not_sent':
      // One call that was anything else makes it unknown until it is settled.
      if (refund.maybe_sent) return inDoubt(deps, refund, 'not_reached', context)
      return { ...base(deps, context), ...guard(context), to: 'unsent', doubt: null, attemptState: 'resumable' }
    case 'unknown':
      return {
        ...inDoubt(deps, refund, verdict.reason, context),
        maybeSent: true,
        ...(verdict.replayedFailure ? { sendIsPointless: true } : {}),
      }
  }
}

function inDoubt(deps: Deps, refund: Refund, reason: string, context: RefundContext): RefundChange {
  return {
    ...base(deps, context),
    ...guard(context),
    to: 'pending',
    doubt: reason,
    attemptState: 'open',
    askInMs: pauseMs(deps, refund),
  }
}

const pauseMsMax = 15 * 60_000

/** Until the next ask, which a lease had put off: doubling, with jitter. */
function pauseMs({ config }: Deps, { asks }: Refund): number {
  return Math.min(config.reconcileAfterMs * 2 ** Math.min(asks, 20), pauseMsMax) * (0.75 + Math.random() / 2)
}

function guard({ leaseToken, wasSent }: RefundContext): Pick<RefundChange, 'leaseToken' | 'sendsHaveEnded'> {
  return { ...(leaseToken === undefined ? {} : { leaseToken }), ...(wasSent ? { sendsHaveEnded: true } : {}) }
}

function base(deps: Deps, { calls }: RefundContext): Pick<RefundChange, 'calls' | 'follow'> {
  return { calls, follow: (before, after) => follow(deps, before, after) }
}

function factsOf({ refundId, amount }: ProviderRefund): { providerRefundId: string; amount: number } {
  return { providerRefundId: refundId, amount }
}

/**
 * What follows from a change. Money leaves the balance when the provider takes the refund on, also while it is on its way
 * to the bank, and comes back when it fails (https://docs.stripe.com/refunds#failed-refunds).
 */
function follow(deps: Deps, before: Refund, after: Refund): RefundEffects {
  const booked = isTaken(before)
  const { refund_id, amount, currency, status } = after
  return {
    transfers: isTaken(after)
      ? [transfer('refund', refund_id, amount, currency)]
      : booked
        ? [transfer('refund_reversal', refund_id, before.amount, currency)]
        : [],
    jobs: status === before.status ? [] : news(after),
    answer: status === 'succeeded' || status === 'failed' ? refundAnswer(after, deps.config.reconcileAfterMs) : null,
    flag: after.amount === before.amount ? null : 'refund_amount_mismatch',
  }
}

/** What follows from taking in a refund that was made in the provider's dashboard. */
export function followAdopted(refund: Refund): RefundEffects {
  const { refund_id, amount, currency } = refund
  return {
    transfers: isTaken(refund) ? [transfer('refund', refund_id, amount, currency)] : [],
    jobs: news(refund),
    answer: null,
    flag: null,
  }
}

function isTaken({ status, provider_refund_id }: Refund): boolean {
  return provider_refund_id !== null && (status === 'pending' || status === 'succeeded')
}

/** One job per refund and end; its handler tells the customer and the merchant. */
function news({ order_id, refund_id, status }: Refund): Job[] {
  if (status !== 'succeeded' && status !== 'failed') return []
  const said = status === 'succeeded' ? 'refunded' : 'refund_failed'
  return [
    {
      topic: 'order_news',
      business_id: `${order_id}:${said}:${refund_id}`,
      payload: { order_id, status: said, refund_id },
    },
  ]
}
