/** Deletes jobs and events that nobody needs any more, in small batches. */
import type { Deps } from '../deps.ts'
import { deleteOldJobs } from '../store/jobs.ts'
import { deleteOldEvents } from '../store/merchant-events.ts'

const day = 24 * 3_600_000
/**
 * A job that is done could follow again only from its fact, and no fact comes twice: an order never returns into a status
 * that makes news, late money is booked once, and each job's effect is keyed by its business id besides. What is kept
 * for a while is kept for people, and for the provider, which repeats a notification for three days.
 */
const jobsKeptMs = 7 * day
/** As long as the notifications that they followed from; deliveries end after three days. */
const eventsKeptMs = 45 * day

/** A batch's locks are held for a moment only. */
const batch = 500

/** Resolves with the number of rows deleted; more than 0 may leave some for the next run. */
export async function sweepJobs(deps: Deps): Promise<number> {
  const jobs = await deleteOldJobs(deps.pool, jobsKeptMs, batch)
  const events = await deleteOldEvents(deps.pool, eventsKeptMs, batch)
  return jobs + events
}
