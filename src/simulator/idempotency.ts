import { ApiError } from './errors.ts'
import type { StoredAnswer } from './records.ts'

const keyLengthMax = 255

export type Keyed = { scope: string; key: string; fingerprint: string; path: string }

/** Stripe's idempotency layer, https://docs.stripe.com/api/idempotent_requests: the first status and body that an
 * executed request got, a 500 included, are given again to every repeat of its key within the account and mode. */
export class IdempotencyKeys {
  readonly #lifetimeMs: number
  readonly #answers = new Map<string, StoredAnswer>()
  readonly #running = new Set<string>()
  readonly #requests = new Map<string, number>()

  readonly #onCount: (name: string, requests: number) => void

  /** `onCount` is told of every request with a key, and how many have come with it. */
  constructor(lifetimeMs: number, onCount: (name: string, requests: number) => void) {
    this.#lifetimeMs = lifetimeMs
    this.#onCount = onCount
  }

  /** The stored answer of that key; undefined where the key is unused or forgotten. Throws Stripe's errors where
   * the key is malformed, still in use by a running request, or was used for another request. */
  find(request: Keyed): StoredAnswer | undefined {
    const { key } = request
    if (key.length > keyLengthMax)
      throw idempotencyError(400, `Idempotency keys have at most ${keyLengthMax} characters.`)
    const name = nameOf(request)
    const requests = this.requests(request.scope, key) + 1
    this.count(name, requests)
    this.#onCount(name, requests)
    if (this.#running.has(name)) {
      const message =
        'There is currently another in-progress request using this Idempotent Key ' +
        `(you probably submitted twice, and the other request is still going through): ${key}.`
      throw idempotencyError(409, message, 'idempotency_key_in_use')
    }
    const stored = this.#answers.get(name)
    if (stored === undefined || this.#isForgotten(stored)) return undefined
    if (stored.path !== request.path) {
      const which = `('${stored.path}' vs '${request.path}')`
      throw idempotencyError(
        400,
        `Keys for idempotent requests can only be used for their first endpoint ${which}: ${key}.`,
      )
    }
    if (stored.fingerprint !== request.fingerprint) {
      const message = `Keys for idempotent requests can only be used with the same parameters they were first used with: ${key}.`
      throw idempotencyError(400, message)
    }
    return stored
  }

  claim(request: Keyed): void {
    this.#running.add(nameOf(request))
  }

  release(request: Keyed): void {
    this.#running.delete(nameOf(request))
  }

  store(answer: StoredAnswer): void {
    const name = nameOf(answer)
    this.#answers.delete(name)
    this.#answers.set(name, answer)
    for (const [oldest, stored] of this.#answers) {
      if (!this.#isForgotten(stored)) break
      this.#answers.delete(oldest)
    }
  }

  /** So many requests have come with the key of that name. */
  count(name: string, requests: number): void {
    this.#requests.set(name, requests)
  }

  /** Names of keys, and how many requests have come with each. */
  counts(): IterableIterator<[name: string, requests: number]> {
    return this.#requests.entries()
  }

  /** How many requests came with that key, refused ones and replays included; a key's count outlives the key. */
  requests(scope: string, key: string): number {
    return this.#requests.get(`${scope} ${key}`) ?? 0
  }

  /** The answers that are not forgotten yet. */
  *answers(): Generator<StoredAnswer> {
    for (const stored of this.#answers.values()) if (!this.#isForgotten(stored)) yield stored
  }

  clear(): void {
    this.#answers.clear()
    this.#running.clear()
    this.#requests.clear()
  }

  #isForgotten(stored: StoredAnswer): boolean {
    return Date.now() - stored.at >= this.#lifetimeMs
  }
}

function nameOf(request: { scope: string; key: string }): string {
  return `${request.scope} ${request.key}`
}

function idempotencyError(status: number, message: string, code?: string): ApiError {
  return new ApiError(status, { type: 'idempotency_error', message, ...(code ? { code } : {}) })
}
