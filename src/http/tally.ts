/** Answers that leave no row in the database, counted by tenant in this process since it started. */
import { randomUUID } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'

interface Counts {
  /** Answers that were given again. */
  replays: number
  /** Refusals because a key was used with another request. */
  conflicts: number
}

export class Tally {
  /** Names the process, so that a page which reaches several behind one address can tell their counts apart. */
  readonly id = randomUUID()
  readonly since = new Date()
  readonly #counts = new Map<string, Counts>()

  count(request: FastifyRequest, reply: FastifyReply): void {
    if (request.caller === null) return
    const isReplay = reply.hasHeader('idempotent-replayed')
    const isConflict = request.problemCode === 'idempotency_key_conflict'
    if (!isReplay && !isConflict) return
    const { replays, conflicts } = this.of(request.caller.tenantId)
    this.#counts.set(request.caller.tenantId, {
      replays: replays + Number(isReplay),
      conflicts: conflicts + Number(isConflict),
    })
  }

  of(tenantId: string): Counts {
    return this.#counts.get(tenantId) ?? { replays: 0, conflicts: 0 }
  }
}
