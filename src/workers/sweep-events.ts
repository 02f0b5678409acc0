/** Forgets events that nobody asks about any more. */
import type { Deps } from '../deps.ts'
import { deleteEvents } from '../store/inbox.ts'

/** Longer than the provider itself shows its events (30 days at the one that we have). */
const keptDays = 45
/** Small enough that nobody waits for the sweep. */
const batch = 500

/** Resolves with the number of events that it has forgotten: a batch at most. */
export function sweepEvents(deps: Deps): Promise<number> {
  return deleteEvents(deps.db, { olderThanDays: keptDays, atMost: batch })
}
