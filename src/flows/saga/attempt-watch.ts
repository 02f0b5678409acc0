/**
 * Waits for attempts that another process runs. One poll per tenant serves all that wait in this process, and between
 * polls nobody holds a connection.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { DatabasePool } from '../../runtime/database.ts'
import { runningLeases } from '../../store/attempts.ts'

/** Often enough that a waiting customer does not notice, seldom enough that a crowd of them costs 20 reads a second. */
const pollMs = 50

interface Waiter {
  key: string
  leaseToken: string
  resolve(): void
}

export class AttemptWatch {
  readonly #pool: DatabasePool
  readonly #log: Logger
  readonly #onWait: () => void
  readonly #waiting = new Map<string, Set<Waiter>>()

  /** `onWait` is told of each that waits. */
  constructor(pool: DatabasePool, log: Logger, onWait: () => void = () => {}) {
    this.#pool = pool
    this.#log = log
    this.#onWait = onWait
  }

  /** Resolves when the attempt no longer runs under that lease, or after `waitMs`. */
  async ended(tenantId: string, key: string, leaseToken: string, waitMs: number): Promise<void> {
    this.#onWait()
    let waiters = this.#waiting.get(tenantId)
    const isFirst = waiters === undefined
    if (waiters === undefined) {
      waiters = new Set()
      this.#waiting.set(tenantId, waiters)
    }
    const all = waiters
    const waiter: Waiter = { key, leaseToken, resolve: () => {} }
    const ended = new Promise<void>((resolve) => {
      const timer = setTimeout(() => waiter.resolve(), waitMs)
      waiter.resolve = () => {
        clearTimeout(timer)
        all.delete(waiter)
        resolve()
      }
    })
    all.add(waiter)
    if (isFirst) void this.#poll(tenantId, all)
    return ended
  }

  async #poll(tenantId: string, waiters: Set<Waiter>): Promise<void> {
    while (waiters.size > 0) {
      await delay(pollMs)
      if (waiters.size === 0) break
      // Only those that waited before the read are judged by it.
      const asked = [...waiters]
      try {
        const running = await runningLeases(this.#pool, tenantId, [...new Set(asked.map((waiter) => waiter.key))])
        for (const waiter of asked) if (running.get(waiter.key) !== waiter.leaseToken) waiter.resolve()
      } catch (error) {
        // The wait's own limit ends it; the next poll may get through.
        this.#log.warn({ err: error }, 'could not look for the end of attempts')
      }
    }
    this.#waiting.delete(tenantId)
  }
}
