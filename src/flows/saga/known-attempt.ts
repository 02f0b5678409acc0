/** What a repeat of a known attempt gets: the stored answer, its twin's answer, or where it stands once driven on. */
import type { Deps } from '../../deps.ts'
import type { DigestSecret, RequestDigest } from '../../domain/digest.ts'
import { Problem } from '../../domain/problem.ts'
import { runIdOf } from '../../domain/run.ts'
import { type KnownAttempt, readAttempts } from '../../store/attempts.ts'
import { type Answer, storedAnswer } from './answers.ts'
import { refuseInProgress, refuseOther } from './twins.ts'

/** A request whose key is known, and how its kind of attempt is driven on. */
export interface Repeat {
  tenantId: string
  key: string
  /** Null where it is not known, or not looked for. */
  fingerprint: string | null
  /** The request's digest under the secret that the attempt remembers. */
  digestWith(secret: DigestSecret): RequestDigest
  /** It is open: drive it on, unless somebody has just done so, and tell where it stands. */
  nudge(attempt: KnownAttempt): Promise<Answer>
  /** Nobody works on it: go on where the last owner stopped. Null where somebody else was faster. */
  goOn(attempt: KnownAttempt): Promise<Answer | null>
  /** What those get who have waited for an attempt that surely did not reach the provider. */
  unreached(): Problem
}

/** `claim_again`: the attempt has gone meanwhile. `startedMs` is when the request came, on the monotonic clock. */
export async function answerKnown(
  deps: Deps,
  repeat: Repeat,
  known: KnownAttempt,
  startedMs: number,
): Promise<Answer | 'claim_again'> {
  const { tenantId, key } = repeat
  let attempt: KnownAttempt | undefined = known
  // Whether the request has been waiting for the answer that the attempt has now.
  let waited = false
  while (attempt !== undefined) {
    refuseOtherRequest(deps, repeat, attempt)
    if (attempt.state === 'settled' && attempt.answer !== null) {
      const stored = storedAnswer(attempt.answer, attempt.objectId, true)
      const answer = { ...stored, aboutOrderId: orderOf(attempt) ?? null }
      // A refund's attempt is not looked for there.
      if (attempt.digest !== null && attempt.kind !== 'refund') {
        deps.replays.keep(repeat, attempt.digest, answer, attempt.settledMsAgo ?? 0)
      }
      return answer
    }
    if (attempt.state === 'open') {
      const answer = await repeat.nudge(attempt)
      return { ...answer, replayed: answer.replayed || waited }
    }
    const stillMs = attempt.leaseRemainingMs ?? 0
    if (attempt.state === 'running' && stillMs > 0 && attempt.leaseToken !== null) {
      const waitMs = startedMs + deps.config.idempotencyWaitMs - performance.now()
      if (waitMs <= 0) refuseInProgress(orderOf(attempt))
      await deps.watch.ended(tenantId, key, attempt.leaseToken, waitMs)
      waited = true
    } else {
      if (waited && attempt.state === 'resumable') throw replayed(repeat.unreached())
      const answer = await repeat.goOn(attempt)
      if (answer !== null) return answer
    }
    attempt = (await readAttempts(deps.pool, tenantId, [key])).get(key)
  }
  return 'claim_again'
}

function refuseOtherRequest(deps: Deps, repeat: Repeat, attempt: KnownAttempt): void {
  const secret = attempt.digest === null ? undefined : deps.digests.pick(attempt.digest.secretId)
  if (attempt.digest !== null && secret !== undefined) {
    refuseOther(attempt.digest, repeat.digestWith(secret), orderOf(attempt))
    return
  }
  if (!attempt.swept) {
    deps.log.error({ tenant_id: repeat.tenantId }, 'the digest secret of an attempt is no longer configured')
  }
  throw new Problem('idempotency_key_expired', {
    detail: `The key has been used and its stored answer is gone. Look up the ${nouns[attempt.kind]}; nothing was done again.`,
    members: { ...named(attempt), new_key_safe: false },
  })
}

const nouns = { checkout: 'order', refund: 'refund', run: 'run' } as const

function named({ kind, objectId }: KnownAttempt): Record<string, string> {
  if (kind === 'refund') return { refund_id: objectId }
  return kind === 'run' ? { run_id: runIdOf(objectId), order_id: objectId } : { order_id: objectId }
}

/** A refund's attempt names the refund; the order is in its path. */
function orderOf({ kind, objectId }: KnownAttempt): string | undefined {
  return kind === 'refund' ? undefined : objectId
}

function replayed(problem: Problem): Problem {
  return new Problem(problem.code, { ...problem.options, detail: problem.message, replayed: true })
}
