/**
 * Settled answers that this process has given lately: a settled answer never changes, so a repeat that comes soon needs no
 * read. Only a saving, and only for requests that are the same: what another request with the key gets, the row tells.
 */
import { LRUCache } from 'lru-cache'
import type { RequestDigest } from '../../domain/digest.ts'
import type { Answer } from './answers.ts'
import type { AttemptRequest } from './checkout-request.ts'

interface Kept {
  /** Of the request that brought the answer here. */
  fingerprint: string | null
  digest: RequestDigest['digest']
  secretId: string
  answer: Answer
}

/** Of bodies and keys; beside the service's own memory it does not show. */
const bytesMax = 16 * 1024 * 1024
const bytesOfTheRest = 500

/** What tells an attempt from every other, in this process. */
export function attemptId({ tenantId, key }: Pick<AttemptRequest, 'tenantId' | 'key'>): string {
  return `${tenantId} ${key}`
}

export class ReplayCache {
  readonly #kept: LRUCache<string, Kept>
  readonly #ageMaxMs: number
  readonly #retentionMs: number

  /** Ages in ms: `ageMaxMs` after it was put here an answer is forgotten; 0 keeps none. */
  constructor({ ageMaxMs, retentionMs }: { ageMaxMs: number; retentionMs: number }) {
    this.#ageMaxMs = ageMaxMs
    this.#retentionMs = retentionMs
    this.#kept = new LRUCache({ maxSize: bytesMax })
  }

  /** Whether an answer is here, whatever the request. */
  has(key: string): boolean {
    return this.#kept.has(key)
  }

  /** The answer to the same request, marked as replayed. `key` names tenant and key. */
  get(key: string, { digest, secretId }: RequestDigest): Answer | undefined {
    const kept = this.#kept.get(key)
    return kept !== undefined && kept.secretId === secretId && kept.digest === digest ? kept.answer : undefined
  }

  /** The answer to the same bytes, marked as replayed. */
  same(key: string, fingerprint: string): Answer | undefined {
    const kept = this.#kept.get(key)
    return kept?.fingerprint === fingerprint ? kept.answer : undefined
  }

  /** Keeps an answer that was stored for good so many ms ago; no other may come here. */
  keep(
    request: Pick<AttemptRequest, 'tenantId' | 'key' | 'fingerprint'>,
    { digest, secretId }: RequestDigest,
    answer: Answer,
    settledMsAgo: number,
  ): void {
    const ttl = Math.floor(Math.min(this.#ageMaxMs, this.#retentionMs - settledMsAgo))
    if (ttl < 1) return
    const key = attemptId(request)
    const kept = { fingerprint: request.fingerprint, digest, secretId, answer: { ...answer, replayed: true } }
    // Both are mostly one byte a character in memory.
    this.#kept.set(key, kept, { ttl, size: key.length + answer.body.length + bytesOfTheRest })
  }
}
