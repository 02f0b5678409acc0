/**
 * Simultaneous equal requests with one key in one process: the first runs, the others wait for its answer without a
 * connection. Only a saving: what makes an attempt single is its row in the database.
 */
import { differingFields, type RequestDigest } from '../../domain/digest.ts'
import { Problem } from '../../domain/problem.ts'
import type { Answer } from './answers.ts'

/** What tells whether two requests with one key are the same. */
interface Same {
  /** Of what they say: decides. */
  digest: string
  /** Of their bytes, where it is known. */
  fingerprint: string | null
}

interface Running {
  fingerprint: string | null
  answer: Promise<Answer>
}

export class Twins {
  /** By key and digest. */
  readonly #running = new Map<string, Map<string, Running>>()
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
  async join(key: string, request: Same, waitMs: number, run: () => Promise<Answer>): Promise<Answer> {
    const twin = this.#running.get(key)?.get(request.digest)
    return twin === undefined ? this.#run(key, request, run) : this.#wait(twin, waitMs)
  }

  /** Waits as above for the twin with the same bytes; undefined where there is none. */
  joinSame(key: string, fingerprint: string, waitMs: number): Promise<Answer> | undefined {
    for (const twin of this.#running.get(key)?.values() ?? []) {
      if (twin.fingerprint === fingerprint) return this.#wait(twin, waitMs)
    }
    return undefined
  }

  /** Resolves when no attempt is under way any more. */
  async drained(): Promise<void> {
    while (this.#running.size > 0) {
      await Promise.allSettled(this.#answers())
    }
  }

  #answers(): Promise<Answer>[] {
    return [...this.#running.values()].flatMap((requests) => [...requests.values()].map(({ answer }) => answer))
  }

  async #wait({ answer }: Running, waitMs: number): Promise<Answer> {
    this.#onWait()
    return replayOf(await withTimeout(answer.catch(rethrowReplayed), waitMs))
  }

  async #run(key: string, { digest, fingerprint }: Same, run: () => Promise<Answer>): Promise<Answer> {
    const answer = run()
    const requests = this.#running.get(key) ?? new Map<string, Running>()
    this.#running.set(key, requests.set(digest, { fingerprint, answer }))
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
