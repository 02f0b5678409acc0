/** Forgets what is past its retention, and carries out wishes to be forgotten. Small batches, beside everybody else: a row
 * that somebody has locked is left for the next time, so sweepers and requests never wait for each other. */
import type { Deps } from '../deps.ts'
import { eraseDue } from '../flows/operators/erasure.ts'
import { checkpoint } from '../runtime/checkpoint.ts'
import { forgetOldSecrets } from '../store/merchant-events.ts'
import { deleteOldCalls, deleteOldReports, sweepAttempts } from '../store/retention.ts'
import { sweepEvents } from './sweep-events.ts'
import { sweepJobs } from './sweep-jobs.ts'

/** A batch's locks are held for some milliseconds. */
const batch = 500
const erasuresAtOnce = 8

/** Resolves with the number of rows that it has dealt with; more than 0 may leave some for the next run. */
export async function sweep(deps: Deps): Promise<number> {
  const attempts = await sweepAttempts(deps.pool, deps.config.retentionMs, batch)
  const events = await sweepEvents(deps)
  const jobs = await sweepJobs(deps)
  await checkpoint('sweep.swept')
  const records = await sweepRecords(deps)
  const secrets = await forgetOldSecrets(deps.db)
  const erasures = await eraseDue(deps, erasuresAtOnce)
  return attempts + events + jobs + records + secrets + erasures
}

/** What is kept for people who look into something: nothing else reads it. */
async function sweepRecords(deps: Deps): Promise<number> {
  const before = new Date(Math.max(0, Date.now() - deps.config.recordsRetentionMs))
  const calls = await deleteOldCalls(deps.pool, before, batch)
  const reports = await deleteOldReports(deps.pool, before, batch)
  return calls + reports
}
