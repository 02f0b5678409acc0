/** Repeats that need not even be read. */
import type { Deps } from '../../deps.ts'
import type { Answer } from './answers.ts'
import type { AttemptRequest } from './checkout-request.ts'
import { attemptId } from './replay-cache.ts'

/**
 * The answer to a repeat that is, to the byte, a request which this process has answered lately or is working on. Undefined
 * where it knows of none: the repeat has to be read then, and may still be the same. Throws as `Twins.join`.
 */
export function answerAtHand(
  { replays, twins, config }: Pick<Deps, 'replays' | 'twins' | 'config'>,
  request: Pick<AttemptRequest, 'tenantId' | 'key'> & { fingerprint: string },
): Answer | Promise<Answer> | undefined {
  const id = attemptId(request)
  return replays.same(id, request.fingerprint) ?? twins.joinSame(id, request.fingerprint, config.idempotencyWaitMs)
}
