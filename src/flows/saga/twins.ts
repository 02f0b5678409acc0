/**
 * Simultaneous equal requests with one key in one process: the first runs, the others wait for its answer without a
 * connection. Only a saving: what makes an attempt single is its row in the database.
 */
import { differingFields, type RequestDigest } from '../../domain/digest.ts'
import { Problem } from '../../domain/problem.ts'
import type { Answer } from './answers.ts'

export class Twins {
  /** By key and digest. */
  readonly #running = new Map<string, Map<string, Promise<Answer>>>()
  readonly #onWait: () => void

  /** `onWait` is told of each that waits for its twin. */
  constructor(onWait: () => void = () => {}) {
    this.#onWait = onWait
  }

  /** Attempts under way, for draining. */
  get size(): number {
    return this.#answers().length
  }

  /** Whether an attempt with the key is under way, whatever the request. */
  has(key: string): boolean {
    return this.#running.has(key)
  }

  /** Runs the attempt, or waits at most `waitMs` for the twin that runs it. Throws a `Problem` as the twin did, or where
   * the wait was too short. Another request with the key is no twin: whose key it is, only the row knows. */
  async join(key: string, digest: RequestDigest, waitMs: number, run: () => Promise<Answer>): Promise<Answer> {
    const twin = this.#running.get(key)?.get(digest.digest)
    if (twin === undefined) return this.#run(key, digest.digest, run)
    this.#onWait()
    return replayOf(await withTimeout(twin.catch(rethrowReplayed), waitMs))
  }

  /** Resolves when no attempt is under way any more. */
  async drained(): Promise<void> {
    while (this.#running.size > 0) {
      await Promise.allSettled(this.#answers())
    }
  }

  #answers(): Promise<Answer>[] {
    return [...this.#running.values()].flatMap((requests) => [...requests.values()])
  }

  async #run(key: string, digest: string, run: () => Promise<Answer>): Promise<Answer> {
    const answer = run()
    const requests = this.#running.get(key) ?? new Map<string, Promise<Answer>>()
    this.#running.set(key, requests.set(digest, answer))
    try {
      return await answer
    } finally {
      requests.delete(digest)
      if (requests.size === 0) this.#running.delete(key)
    }
  }
}

/** Throws the conflict where the two requests are not the same. */
export function refuseOther(first: RequestDigest, second: RequestDigest, orderId?: string): void {
  if (first.digest === second.digest) return
  const differing = differingFields(first.tags, second.tags)
  throw new Problem('idempotency_key_conflict', {
    detail: `The key was used with another request; it differs in: ${differing.join(', ')}.`,
    members: { differing, new_key_safe: false },
    ...(orderId === undefined ? {} : { orderId }),
  })
}

/** Throws: the first request is still running. */
export function refuseInProgress(orderId?: string): never {
  throw inProgress(orderId)
}

export function inProgress(orderId?: string): Problem {
  return new Problem('idempotency_key_in_progress', {
    detail: 'The first request with this key is still running. Repeat the request with the same key.',
    members: { new_key_safe: false },
    ...(orderId === undefined ? {} : { orderId }),
    retryAfterSeconds: 1,
  })
}

function replayOf(answer: Answer): Answer {
  return { ...answer, replayed: true }
}

function rethrowReplayed(error: unknown): never {
  if (error instanceof Problem)
    throw new Problem(error.code, { ...error.options, detail: error.message, replayed: true })
  throw error
}

async function withTimeout(answer: Promise<Answer>, waitMs: number): Promise<Answer> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<'timeout'>((resolve) => {
    timer = setTimeout(resolve, waitMs, 'timeout')
  })
  try {
    const first = await Promise.race([answer, timeout])
    return first === 'timeout' ? refuseInProgress() : first
  } finally {
    clearTimeout(timer)
  }
}
