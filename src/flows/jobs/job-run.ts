/** What a job's handler is given and how it ends. */
import type { Transaction } from 'kysely'
import type { Deps } from '../../deps.ts'
import { parseTraceparent, type TraceContext } from '../../runtime/tracing.ts'
import type { TakenJob } from '../../store/jobs.ts'
import type { Tables } from '../../store/tables.ts'
import type { Deadline } from '../saga/provider-calls.ts'

export interface JobRun {
  job: TakenJob
  /** Names this run where a request would have its id. */
  runId: string
  /** Within the lease. */
  deadline: Deadline
  /** Ends the job in the transaction of its effect, so that both happen or neither. Throws `JobLeaseLost` where another
   * worker has the job by now. */
  finish(tx: Transaction<Tables>): Promise<void>
}

/** `finished`: `finish` was called. `later`: not a failure, there is something to wait for. */
export type JobEnd = 'done' | 'finished' | { later: string; inMs: number }

/** Throws `JobFailure` for what it foresees. */
export type JobHandler = (deps: Deps, run: JobRun) => Promise<JobEnd>

/** Jobs of one topic and tenant whose effects are in Postgres alone: they share a transaction, which calls `finish`. */
export interface GroupRun {
  tenantId: string
  jobs: readonly TakenJob[]
  /** Ends all of them. Throws `JobLeaseLost` where one is no longer held. */
  finish(tx: Transaction<Tables>): Promise<void>
}

/** Whatever it throws, the jobs are then run singly, so that one's fault is its own. */
export type GroupHandler = (deps: Deps, run: GroupRun) => Promise<void>

/** What follows from giving a job up, in the transaction that does so. */
export type GivenUp = (tx: Transaction<Tables>, job: TakenJob, reason: string) => Promise<void>

/** A run that came to nothing. `reason` is a word from a closed vocabulary: it is kept and shown. */
export class JobFailure extends Error {
  override name = 'JobFailure'
  readonly reason: string
  /** Trying again cannot help: a person decides. */
  readonly isFinal: boolean

  constructor(reason: string, { isFinal = false }: { isFinal?: boolean } = {}) {
    super(reason)
    this.reason = reason
    this.isFinal = isFinal
  }
}

/** A text of the job's payload. A payload without it was written by a fault of ours: trying again cannot help. */
export function textOf(job: TakenJob, name: string): string {
  const value = job.payload[name]
  if (typeof value !== 'string') throw new JobFailure('payload_invalid', { isFinal: true })
  return value
}

/** The trace of what the job follows from. Jobs that follow from jobs of a group name it, for the group has none. */
export function traceOf(job: TakenJob): TraceContext | undefined {
  return parseTraceparent(job.payload.traceparent)
}

/** Likewise an amount in minor units. */
export function amountOf(job: TakenJob, name: string): number {
  const value = job.payload[name]
  if (!Number.isSafeInteger(value)) throw new JobFailure('payload_invalid', { isFinal: true })
  return value as number
}
