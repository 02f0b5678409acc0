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
  /** The tenant that was looked at last, '' before the first. */
  after: string
  /** How often the last tenant was reached since something was found; a start at the first counts. From 2 on, every tenant
   * has been looked at in vain. */
  ends: number
  /** How many of each tenant's run. */
  busy: Map<string, number>
}

class JobRunner {
  readonly #deps: Deps
  readonly #stopping: AbortSignal | undefined
  readonly #running = new Set<Promise<void>>()
  readonly #lanes: ReadonlyMap<string, LaneState>
  /** Jobs have ended, which may have made others. */
  #mayHaveFollowers = false

  constructor(deps: Deps, stopping: AbortSignal | undefined, known: Readonly<Record<string, Topic>>) {
    this.#deps = deps
    this.#stopping = stopping
    this.#lanes = new Map(
      Object.entries(known).map(([name, topic]) => [name, { topic, after: '', ends: 1, busy: new Map() }]),
    )
  }

  async run(): Promise<number> {
    let ran = 0
    try {
      while (this.#stopping?.aborted !== true) {
        const taken = await this.#take()
        ran += taken
        if (taken > 0 || this.#mayFind()) continue
        if (this.#running.size === 0) {
          if (!this.#mayHaveFollowers) break
          this.#mayHaveFollowers = false
          for (const lane of this.#lanes.values()) lane.ends = 0
          continue
        }
        // Those that run make room; what becomes due meanwhile does not wait for them.
        await Promise.race([...this.#running, delay(this.#deps.config.workerPollMs)])
      }
    } finally {
      await Promise.all(this.#running)
    }
    return ran
  }

  /** Whether a lane with room has not looked at every tenant yet. */
  #mayFind(): boolean {
    return [...this.#lanes.values()].some((lane) => freeSlots(lane) > 0 && lane.ends < 2)
  }

  async #take(): Promise<number> {
    const asked = [...this.#lanes].filter(([, lane]) => freeSlots(lane) > 0)
    if (asked.length === 0) return 0
    const lanes = asked.map(([topic, lane]) => ({
      topic,
      slots: freeSlots(lane),
      share: lane.topic.share,
      after: lane.after,
      busy: Object.fromEntries(lane.busy),
    }))
    const startedMs = performance.now()
    const { jobs, next } = await takeJobs(this.#deps.pool, lanes, {
      leaseToken: randomUUID(),
      leaseMs: this.#deps.config.leaseMs,
      tenantsMax,
    })
    if (jobs.length > 0) await checkpoint('jobs.taken')
    const found = new Set(jobs.map((job) => job.topic))
    for (const [name, lane] of asked) {
      lane.after = next.get(name) ?? ''
      if (found.has(name)) lane.ends = 0
      if (lane.after === '') lane.ends += 1
    }
    for (const group of byTopicAndTenant(jobs)) this.#start(group, startedMs)
    return jobs.length
  }

  #start(jobs: readonly TakenJob[], startedMs: number): void {
    const { topic: name, tenantId } = jobs[0] as TakenJob
    const lane = this.#lanes.get(name) as LaneState
    lane.busy.set(tenantId, (lane.busy.get(tenantId) ?? 0) + jobs.length)
    const running = runTaken(this.#deps, lane.topic, jobs, startedMs, () => {
      const before = lane.busy.get(tenantId) ?? 0
      // It had its share, so nobody has looked whether there is more of it.
      if (before >= lane.topic.share) lane.ends = 0
      if (before > 1) lane.busy.set(tenantId, before - 1)
      else lane.busy.delete(tenantId)
    }).then(() => {
      this.#running.delete(running)
      this.#mayHaveFollowers = true
    })
    this.#running.add(running)
  }
}

function freeSlots({ topic, busy }: LaneState): number {
  let free = topic.slots
  for (const running of busy.values()) free -= running
  return free
}

function byTopicAndTenant(jobs: readonly TakenJob[]): TakenJob[][] {
  return [...Map.groupBy(jobs, (job) => `${job.topic} ${job.tenantId}`).values()]
}
