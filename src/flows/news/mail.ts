/**
 * Sends the emails that orders call for, each at most once.
 *
 *   claim    the row says that it is being sent            committed before the send
 *   send     to the mail server
 *   mark     sent; or waiting again where it surely was not sent; or refused
 *
 * Who dies in between, or gets no answer, leaves it `uncertain`: it may have been sent, so a person decides.
 */
import { randomUUID } from 'node:crypto'
import type { Deps } from '../../deps.ts'
import { type MailKind, mailText } from '../../domain/mail.ts'
import { checkpoint } from '../../runtime/checkpoint.ts'
import { claimEmail, type Email, giveUpEmail, markEmail, splitId } from '../../store/emails.ts'
import { recipientOf } from '../../store/recipients.ts'
import { type GivenUp, type JobEnd, JobFailure, type JobRun, textOf } from '../jobs/job-run.ts'

/** Left of the lease for marking, ms. */
const markingMs = 2000

/** Job `send_email`; its payload names the email. */
export async function sendEmail(deps: Deps, { job, deadline }: JobRun): Promise<JobEnd> {
  const { mailer } = deps
  // Configured where the email was made, but not here: a process that has it will send it.
  if (mailer === undefined) throw new JobFailure('no_smtp')
  const token = randomUUID()
  const claim = await claimEmail(deps.db, job.tenantId, textOf(job, 'order_id'), textOf(job, 'kind'), token)
  if (claim.kind === 'settled') return 'done'
  if (claim.kind === 'uncertain') throw uncertain()
  await checkpoint('mail.claimed')

  const { email } = claim
  const mark = (state: Parameters<typeof markEmail>[3], reason: string | null) =>
    markEmail(deps.db, email, token, state, reason)
  const mail = await written(deps, email)
  if (mail === null) {
    await mark('skipped', 'no_address')
    return 'done'
  }
  const outcome = await mailer.send(mail, Math.max(1, deadline.atMs - performance.now() - markingMs))
  await checkpoint('mail.sent')
  switch (outcome.kind) {
    case 'accepted':
      await mark('sent', null)
      await checkpoint('mail.marked')
      return 'done'
    case 'unknown':
      await mark('uncertain', outcome.reason)
      throw uncertain()
    case 'not_sent':
      await mark(outcome.permanent ? 'failed' : 'waiting', outcome.reason)
      throw new JobFailure(outcome.reason, { isFinal: outcome.permanent })
  }
}

/** No email waits without a job that will send it. */
export const emailGivenUp: GivenUp = (tx, { tenantId, businessId }, reason) =>
  giveUpEmail(tx, tenantId, ...splitId(businessId), reason)

/** Null where the customer's data has been erased. */
async function written(deps: Deps, email: Email) {
  const recipient = await recipientOf(deps.db, email.tenant_id, email.order_id)
  if (recipient === null) return null
  const { order, address, name, shop } = recipient
  const [kind] = splitId(email.kind)
  return {
    to: address,
    ...mailText({ kind: kind as MailKind, order, shop, name, amount: email.amount }),
    id: `${email.order_id}.${email.kind.replace(':', '.')}`,
  }
}

function uncertain(): JobFailure {
  return new JobFailure('email_uncertain', { isFinal: true })
}
