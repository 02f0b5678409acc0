/** What a person decides about a job, with what follows from it. */
import type { Transaction } from 'kysely'
import { putEmailAside, splitId } from '../../store/emails.ts'
import { discardJob, type JobRow } from '../../store/jobs.ts'
import type { Tables } from '../../store/tables.ts'

/** Gives a job up for good; null where that cannot be, and then the transaction must leave nothing. An email whose job it
 * is waits no longer. */
export async function discardByHand(
  tx: Transaction<Tables>,
  tenantId: string,
  topic: string,
  businessId: string,
): Promise<JobRow | null> {
  if (topic === 'send_email') await putEmailAside(tx, tenantId, ...splitId(businessId))
  return discardJob(tx, tenantId, topic, businessId)
}
