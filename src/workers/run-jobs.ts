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
import { JobFailure, type JobRun } from '../flows/job-run.ts'
import { deadlineFor } from '../flows/provider-calls.ts'
import { checkpoint } from '../runtime/checkpoint.ts'
import { isDatabaseUnavailable } from '../runtime/database.ts'
import { newRunId } from '../runtime/run-id.ts'
import { buryJob, finishJob, finishJobs, JobLeaseLost, postponeJob, type TakenJob, takeJobs } from '../store/jobs.ts'
import { type Topic, topics } from './topics.ts'

/** Tenants that one look walks over for each topic: an index probe each, so well below a hundredth of a second. */
const tenantsMax = 500

/** Runs what is due and what becomes due meanwhile, until nothing is; resolves with how many jobs it ran. With `stopping`
 * aborted it takes no more and ends what it has. */
export function runJobs(deps: Deps, stopping?: AbortSignal): Promise<number> {
  return new JobRunner(deps, stopping).run()
}

class JobRunner {
  readonly #deps: Deps
  readonly #stopping: AbortSignal | undefined
  readonly #running = new Set<Promise<void>>()
  readonly #lanes = new Map(Object.keys(topics).map((name) => [name, { after: '', busy: new Map<string, number>() }]))

  constructor(deps: Deps, stopping: AbortSignal | undefined) {
    this.#deps = deps
    this.#stopping = stopping
  }

  async run(): Promise<number> {
    let ran = 0
    try {
      while (this.#stopping?.aborted !== true) {
        const { taken, more } = await this.#take()
        ran += taken
        if (this.#running.size === 0 && !more) break
        // Those that run make room; what becomes due meanwhile does not wait for them.
        if (taken === 0 && this.#running.size > 0) {
          await Promise.race([...this.#running, delay(this.#deps.config.workerPollMs)])
        }
      }
    } finally {
      await Promise.all(this.#running)
    }
    return ran
  }

  /** `more`: some tenants were not looked at yet, or slots were too few. */
  async #take(): Promise<{ taken: number; more: boolean }> {
    const lanes = []
    for (const [topic, { after, busy }] of this.#lanes) {
      const { slots, share } = topics[topic] as Topic
      const free = slots - sum(busy.values())
      if (free > 0) lanes.push({ topic, slots: free, share, after, busy: Object.fromEntries(busy) })
    }
    if (lanes.length === 0) return { taken: 0, more: true }
    const leaseMs = this.#deps.config.leaseMs
    const startedMs = performance.now()
    const { jobs, ends } = await takeJobs(this.#deps.pool, lanes, { leaseToken: randomUUID(), leaseMs, tenantsMax })
    await checkpoint('jobs.taken')
    for (const [topic, { after }] of ends) {
      const lane = this.#lanes.get(topic)
      if (lane !== undefined) lane.after = after
    }
    for (const job of jobs) this.#start(job, startedMs)
    return { taken: jobs.length, more: [...ends.values()].some((end) => !end.wentRound) }
  }

  #start(job: TakenJob, startedMs: number): void {
    const busy = this.#lanes.get(job.topic)?.busy as Map<string, number>
    busy.set(job.tenantId, (busy.get(job.tenantId) ?? 0) + 1)
    const running = runJob(this.#deps, job, startedMs).then(() => {
      this.#running.delete(running)
      const left = (busy.get(job.tenantId) ?? 0) - 1
      if (left > 0) busy.set(job.tenantId, left)
      else busy.delete(job.tenantId)
    })
    this.#running.add(running)
  }
}

/** Never rejects: a job that cannot even be given back comes back when its lease ends. */
async function runJob(deps: Deps, job: TakenJob, startedMs: number): Promise<void> {
  const topic = topics[job.topic] as Topic
  const log = deps.log.child({ tenant_id: job.tenantId, topic: job.topic, job: job.businessId })
  const run: JobRun = {
    job,
    runId: newRunId(),
    deadline: { ...deadlineFor(deps, startedMs), background: true },
    finish: (tx) => finishJobs(tx, [job]),
  }
  try {
    let held: boolean
    try {
      // Its last runs ended in the death of their worker.
      if (topic.pauseMs(job.attempts - 1) === null) throw new JobFailure('worker_died', { isFinal: true })
      const end = await topic.run(deps, run)
      await checkpoint('jobs.handled')
      held =
        end === 'finished' ||
        (end === 'done'
          ? await finishJob(deps.db, job)
          : await postponeJob(deps.db, job, { inMs: end.inMs, reason: end.later, counts: false }))
    } catch (error) {
      if (error instanceof JobLeaseLost) held = false
      else {
        const reason = reasonOf(error)
        const pauseMs = error instanceof JobFailure && error.isFinal ? null : topic.pauseMs(job.attempts)
        log[error instanceof JobFailure && pauseMs !== null ? 'info' : 'error'](
          { err: error instanceof JobFailure ? undefined : error, reason, attempts: job.attempts },
          pauseMs === null ? 'a job failed for good; a person has to decide' : 'a job failed and will be tried again',
        )
        held =
          pauseMs === null
            ? await buryJob(deps.db, job, reason)
            : await postponeJob(deps.db, job, { inMs: withJitter(pauseMs), reason, counts: true })
      }
    }
    if (!held) log.info('a job was ended after its lease was lost; nothing was changed')
  } catch (error) {
    log.error({ err: error }, 'a job could not be ended; it comes back when its lease ends')
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof JobFailure) return error.reason
  return isDatabaseUnavailable(error) ? 'database_unavailable' : 'unexpected_error'
}

/** Between half of it and all of it, so that jobs which failed together do not come back together. */
function withJitter(pauseMs: number): number {
  return pauseMs * (0.5 + Math.random() / 2)
}

function sum(numbers: Iterable<number>): number {
  let total = 0
  for (const number of numbers) total += number
  return total
}
