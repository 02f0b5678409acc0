/**
 * Runs jobs that are due, each under a lease, as many at once as their topic allows.
 *
 *   take      move run_at past the lease, count the run        one statement for all topics
 *   run       the topic's handler                              no transaction but the handler's own
 *   end       done, later, or dead                             only where the lease is still held
 *
 * A worker that dies leaves its jobs to come back when their leases end. A topic whose jobs are slow fills its own slots
 * alone, a tenant its own share of them.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Deps } from '../deps.ts'
import { checkpoint } from '../runtime/checkpoint.ts'
import { type TakenJob, takeJobs } from '../store/jobs.ts'
import { runTaken } from './run-job.ts'
import { type Topic, topics } from './topics.ts'

/** Tenants that one look walks over for each topic: an index probe each, so well below a hundredth of a second. */
const tenantsMax = 500

/** Runs what is due and what becomes due meanwhile, until nothing is; resolves with how many jobs it ran. With `stopping`
 * aborted it takes no more and ends what it has. Jobs of topics that are not `known` are left alone. */
export function runJobs(
  deps: Deps,
  stopping?: AbortSignal,
  known: Readonly<Record<string, Topic>> = topics,
): Promise<number> {
  return new JobRunner(deps, stopping, known).run()
}

interface LaneState {
  topic: Topic
  /** The tenant that was served last. */
  after: string
  /** How many of each tenant's run. */
  busy: Map<string, number>
}

class JobRunner {
  readonly #deps: Deps
  readonly #stopping: AbortSignal | undefined
  readonly #running = new Set<Promise<void>>()
  readonly #lanes: ReadonlyMap<string, LaneState>

  constructor(deps: Deps, stopping: AbortSignal | undefined, known: Readonly<Record<string, Topic>>) {
    this.#deps = deps
    this.#stopping = stopping
    this.#lanes = new Map(
      Object.entries(known).map(([name, topic]) => [name, { topic, after: '', busy: new Map<string, number>() }]),
    )
  }

  async run(): Promise<number> {
    let ran = 0
    try {
      while (this.#stopping?.aborted !== true) {
        const { taken, more } = await this.#take()
        ran += taken
        if (taken > 0) continue
        if (this.#running.size === 0) {
          if (more) continue
          break
        }
        // Those that run make room; what becomes due meanwhile does not wait for them.
        await Promise.race([...this.#running, delay(this.#deps.config.workerPollMs)])
      }
    } finally {
      await Promise.all(this.#running)
    }
    return ran
  }

  /** `more`: some tenants were not looked at. */
  async #take(): Promise<{ taken: number; more: boolean }> {
    const lanes = []
    for (const [name, { topic, after, busy }] of this.#lanes) {
      const free = topic.slots - sum(busy.values())
      if (free > 0) lanes.push({ topic: name, slots: free, share: topic.share, after, busy: Object.fromEntries(busy) })
    }
    if (lanes.length === 0) return { taken: 0, more: true }
    const { leaseMs } = this.#deps.config
    const startedMs = performance.now()
    const { jobs, ends } = await takeJobs(this.#deps.pool, lanes, { leaseToken: randomUUID(), leaseMs, tenantsMax })
    if (jobs.length > 0) await checkpoint('jobs.taken')
    for (const [name, { after }] of ends) {
      const lane = this.#lanes.get(name)
      if (lane !== undefined) lane.after = after
    }
    for (const group of byTopicAndTenant(jobs)) this.#start(group, startedMs)
    return { taken: jobs.length, more: [...ends.values()].some((end) => !end.wentRound) }
  }

  #start(jobs: readonly TakenJob[], startedMs: number): void {
    const { topic: name, tenantId } = jobs[0] as TakenJob
    const { topic, busy } = this.#lanes.get(name) as LaneState
    busy.set(tenantId, (busy.get(tenantId) ?? 0) + jobs.length)
    const running = runTaken(this.#deps, topic, jobs, startedMs, () => {
      const left = (busy.get(tenantId) ?? 0) - 1
      if (left > 0) busy.set(tenantId, left)
      else busy.delete(tenantId)
    }).then(() => {
      this.#running.delete(running)
    })
    this.#running.add(running)
  }
}

function byTopicAndTenant(jobs: readonly TakenJob[]): TakenJob[][] {
  return [...Map.groupBy(jobs, (job) => `${job.topic} ${job.tenantId}`).values()]
}

function sum(numbers: Iterable<number>): number {
  let total = 0
  for (const number of numbers) total += number
  return total
}
