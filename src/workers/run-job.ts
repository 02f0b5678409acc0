/** Runs what was taken and ends it: done, later, or dead; only where the lease is still held. */
import type { Logger } from 'pino'
import type { Deps } from '../deps.ts'
import { type JobEnd, JobFailure } from '../flows/jobs/job-run.ts'
import { deadlineFor } from '../flows/saga/provider-calls.ts'
import { checkpoint } from '../runtime/checkpoint.ts'
import { isDatabaseUnavailable, transaction } from '../runtime/database.ts'
import { newRunId } from '../runtime/run-id.ts'
import { leaving, parseTraceparent, type Span, spanning, within } from '../runtime/tracing.ts'
import { buryJob, finishJob, finishJobs, JobLeaseLost, postponeJob, type TakenJob } from '../store/jobs.ts'
import type { Topic } from './topics.ts'

/**
 * Runs jobs of one topic and tenant that were taken at `startedMs` (`performance.now()`). Never rejects: a job that cannot
 * even be given back comes back when its lease ends.
 */
export async function runTaken(
  deps: Deps,
  topic: Topic,
  jobs: readonly TakenJob[],
  startedMs: number,
  ended: (job: TakenJob) => void,
): Promise<void> {
  // A job that has failed before, or whose worker died, might take its neighbours with it.
  const together = 'runGroup' in topic ? jobs.filter((job) => job.attempts === 1) : []
  const alone = jobs.filter((job) => !together.includes(job))
  if (together.length === 1) alone.push(...together.splice(0))
  if (together.length > 0) {
    if (await runGroup(deps, topic, together)) for (const job of together) ended(job)
    else alone.push(...together)
  }
  const run = async (job: TakenJob) => {
    await runOne(deps, topic, job, startedMs)
    ended(job)
  }
  // Effects in Postgres alone are quick, and at once they would only wait for connections.
  if ('runGroup' in topic) for (const job of alone) await run(job)
  else await Promise.all(alone.map(run))
}

/** False where the group came to nothing; then each has to be run by itself. */
async function runGroup(deps: Deps, topic: Topic, jobs: readonly TakenJob[]): Promise<boolean> {
  if (!('runGroup' in topic)) return false
  const { tenantId } = jobs[0] as TakenJob
  const spans = jobs.map((job) => begin(deps, job))
  const traced = jobs.map((job, index) => below(job, spans[index] as Span))
  const end = (failed: boolean) => {
    for (const span of spans) span.end(() => ({ 'job.group_size': jobs.length }), failed)
  }
  try {
    await topic.runGroup(deps, { tenantId, jobs: traced, finish: (tx) => finishJobs(tx, jobs) })
    end(false)
    deps.metrics.jobRun(jobs[0]?.topic ?? '', 'done', jobs.length)
    return true
  } catch (error) {
    end(true)
    deps.log.info(
      { tenant_id: tenantId, topic: jobs[0]?.topic, reason: reasonOf(error), jobs: jobs.length },
      'a group of jobs failed; each is run by itself',
    )
    return false
  }
}

/** A part of the trace of the request that left the job, whichever process that was in. */
function begin(deps: Deps, { tenantId, topic, businessId, payload, attempts }: TakenJob): Span {
  const attributes = {
    'checkout.tenant_id': tenantId,
    'job.topic': topic,
    'job.id': businessId,
    'job.attempt': attempts,
  }
  return deps.tracing.begin('consumer', `job ${topic}`, attributes, parseTraceparent(payload.traceparent))
}

/** The job for its handler: what follows from it follows from its span. */
function below(job: TakenJob, { context }: Span): TakenJob {
  return { ...job, payload: leaving(job.payload, context) }
}

async function runOne(deps: Deps, topic: Topic, job: TakenJob, startedMs: number): Promise<void> {
  const span = begin(deps, job)
  await within(span.context, () => runSpanned(deps, topic, below(job, span), startedMs, span))
}

async function runSpanned(deps: Deps, topic: Topic, job: TakenJob, startedMs: number, span: Span): Promise<void> {
  const log = deps.log.child({ tenant_id: job.tenantId, topic: job.topic, job: job.businessId })
  try {
    const held = await endOf(deps, topic, job, startedMs, log, span)
    if (!held) deps.metrics.jobRun(job.topic, 'lease_lost')
    if (!held) log.info('a job was ended after its lease was lost; nothing was changed')
  } catch (error) {
    log.error({ err: error }, 'a job could not be ended; it comes back when its lease ends')
  }
}

/** Runs it and keeps how it ended; false where it was no longer held. */
async function endOf(
  deps: Deps,
  topic: Topic,
  job: TakenJob,
  startedMs: number,
  log: Logger,
  span: Span,
): Promise<boolean> {
  try {
    const end = await spanning(span, () => handle(deps, topic, job, startedMs))
    await checkpoint('jobs.handled')
    deps.metrics.jobRun(job.topic, typeof end === 'object' ? 'later' : 'done')
    if (end === 'finished') return true
    if (end === 'done') return await finishJob(deps.db, job)
    return await postponeJob(deps.db, job, { inMs: end.inMs, reason: end.later, counts: false })
  } catch (error) {
    if (error instanceof JobLeaseLost) return false
    const reason = reasonOf(error)
    const pauseMs = error instanceof JobFailure && error.isFinal ? null : topic.pauseMs(job.attempts)
    await checkpoint('jobs.failed')
    const facts = { reason, attempts: job.attempts, ...(error instanceof JobFailure ? {} : { err: error }) }
    deps.metrics.jobRun(job.topic, pauseMs === null ? 'dead' : 'failed')
    if (pauseMs === null) {
      log.error(facts, 'a job failed for good; a person has to decide')
      return giveUp(deps, topic, job, reason)
    }
    log.warn(facts, 'a job failed and will be tried again')
    return postponeJob(deps.db, job, { inMs: withJitter(pauseMs), reason, counts: true })
  }
}

/** False where it is no longer held; then nothing follows from it either. */
async function giveUp(deps: Deps, topic: Topic, job: TakenJob, reason: string): Promise<boolean> {
  try {
    await transaction(deps.db, async (tx) => {
      await topic.givenUp?.(tx, job, reason)
      if (!(await buryJob(tx, job, reason))) throw new JobLeaseLost(`${job.topic} is no longer held`)
    })
    return true
  } catch (error) {
    if (error instanceof JobLeaseLost) return false
    throw error
  }
}

async function handle(deps: Deps, topic: Topic, job: TakenJob, startedMs: number): Promise<JobEnd> {
  // Its last run ended in the death of its worker.
  if (topic.pauseMs(job.attempts - 1) === null) throw new JobFailure('worker_died', { isFinal: true })
  if ('runGroup' in topic) {
    await topic.runGroup(deps, { tenantId: job.tenantId, jobs: [job], finish: (tx) => finishJobs(tx, [job]) })
    return 'finished'
  }
  return topic.run(deps, {
    job,
    runId: newRunId(),
    deadline: { ...deadlineFor(deps, startedMs), background: true },
    finish: (tx) => finishJobs(tx, [job]),
  })
}

function reasonOf(error: unknown): string {
  if (error instanceof JobFailure) return error.reason
  if (error instanceof JobLeaseLost) return 'lease_lost'
  return isDatabaseUnavailable(error) ? 'database_unavailable' : 'unexpected_error'
}

/** Between half of it and all of it, so that jobs which failed together do not come back together. */
function withJitter(pauseMs: number): number {
  return pauseMs * (0.5 + Math.random() / 2)
}
