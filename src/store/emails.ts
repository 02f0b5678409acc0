/** Emails that orders call for: each is claimed before it is sent, and goes out at most once. */
import { type Kysely, sql, type Transaction } from 'kysely'
import { transaction } from '../runtime/database.ts'
import { leaving, type TraceContext } from '../runtime/tracing.ts'
import { discardJob, enqueueJobs, requeueJob } from './jobs.ts'
import type { Tables } from './tables.ts'

export interface Email {
  tenant_id: string
  order_id: string
  kind: string
  state: 'waiting' | 'sending' | 'sent' | 'uncertain' | 'skipped' | 'failed'
  reason: string | null
  /** Minor units given back, where it tells of a refund. */
  amount: number | null
  created_at: Date
  updated_at: Date
}

export interface NewEmail {
  order_id: string
  kind: string
  amount: number | null
  /** Null: it is to be sent. */
  skippedBecause: string | null
  /** What it follows from. */
  trace: TraceContext | undefined
}

const columns = ['tenant_id', 'order_id', 'kind', 'state', 'reason', 'amount', 'created_at', 'updated_at'] as const

/** Keeps that these are due, with a job for each that is to be sent; one that is known stays as it is. */
export async function addEmails(tx: Transaction<Tables>, tenantId: string, emails: readonly NewEmail[]): Promise<void> {
  if (emails.length === 0) return
  await tx
    .insertInto('emails')
    .values(
      emails.map(({ order_id, kind, amount, skippedBecause }) => ({
        tenant_id: tenantId,
        order_id,
        kind,
        amount,
        state: skippedBecause === null ? ('waiting' as const) : ('skipped' as const),
        reason: skippedBecause,
        claim_token: null,
      })),
    )
    .onConflict((conflict) => conflict.columns(['tenant_id', 'order_id', 'kind']).doNothing())
    .execute()
  await enqueueJobs(
    tx,
    tenantId,
    emails
      .filter((email) => email.skippedBecause === null)
      .map(({ order_id, kind, trace }) => {
        const job = sendJob(order_id, kind)
        return { ...job, payload: leaving(job.payload, trace) }
      }),
  )
}

function sendJob(orderId: string, kind: string) {
  return { topic: 'send_email', business_id: `${orderId}:${kind}`, payload: { order_id: orderId, kind } }
}

/**
 * Claims an email that waits, was refused or was put aside with its job, before it is sent. One that somebody has claimed
 * already becomes `uncertain`: its sender has died, or does not answer for it any more. `settled`: there is nothing left to
 * do.
 */
export async function claimEmail(
  db: Kysely<Tables>,
  tenantId: string,
  orderId: string,
  kind: string,
  token: string,
): Promise<{ kind: 'claimed'; email: Email } | { kind: 'uncertain' } | { kind: 'settled' }> {
  const claimable = sql<boolean>`(state IN ('waiting', 'failed') OR (state = 'skipped' AND reason = ${putAside}))`
  const email = await db
    .updateTable('emails')
    .set({
      state: sql`CASE WHEN ${claimable} THEN 'sending' ELSE 'uncertain' END`,
      reason: sql`CASE WHEN ${claimable} THEN NULL WHEN state = 'sending' THEN 'worker_died' ELSE reason END`,
      // Whoever was sending may still tell what became of it.
      claim_token: sql`CASE WHEN ${claimable} THEN ${token}::uuid ELSE claim_token END`,
      updated_at: sql`clock_timestamp()`,
    })
    .where('tenant_id', '=', tenantId)
    .where('order_id', '=', orderId)
    .where('kind', '=', kind)
    .where(sql<boolean>`(${claimable} OR state IN ('sending', 'uncertain'))`)
    .returning(columns)
    .executeTakeFirst()
  if (email === undefined) return { kind: 'settled' }
  return email.state === 'sending' ? { kind: 'claimed', email } : { kind: 'uncertain' }
}

/** Says what became of an email, for whoever has claimed it; false where somebody else has decided about it since. */
export async function markEmail(
  db: Kysely<Tables>,
  { tenant_id, order_id, kind }: Pick<Email, 'tenant_id' | 'order_id' | 'kind'>,
  token: string,
  state: 'waiting' | 'sent' | 'uncertain' | 'skipped' | 'failed',
  reason: string | null,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('emails')
    .set({ state, reason, updated_at: sql`clock_timestamp()` })
    .where('tenant_id', '=', tenant_id)
    .where('order_id', '=', order_id)
    .where('kind', '=', kind)
    .where('claim_token', '=', token)
    .where('state', 'in', ['sending', 'uncertain'])
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

/** Its job is given up, so nobody will send it: a person decides. One that was being sent is in doubt. */
export async function giveUpEmail(
  tx: Transaction<Tables>,
  tenantId: string,
  orderId: string,
  kind: string,
  reason: string,
): Promise<void> {
  await tx
    .updateTable('emails')
    .set({
      state: sql`CASE WHEN state = 'sending' THEN 'uncertain' ELSE 'failed' END`,
      reason,
      updated_at: sql`clock_timestamp()`,
    })
    .where('tenant_id', '=', tenantId)
    .where('order_id', '=', orderId)
    .where('kind', '=', kind)
    .where('state', 'in', ['waiting', 'sending'])
    .execute()
}

const putAside = 'job_discarded'

/** A person gives up its job: one that waits, or was refused, is not sent unless the job is requeued. */
export async function putEmailAside(
  tx: Transaction<Tables>,
  tenantId: string,
  orderId: string,
  kind: string,
): Promise<void> {
  await tx
    .updateTable('emails')
    .set({ state: 'skipped', reason: putAside, updated_at: sql`clock_timestamp()` })
    .where('tenant_id', '=', tenantId)
    .where('order_id', '=', orderId)
    .where('kind', '=', kind)
    .where('state', 'in', ['waiting', 'failed'])
    .execute()
}

/** Emails that wait for a person, by order and kind; one more than the page's limit where there is more. `after` is
 * `<order id>:<kind>`. */
export function listEmailsToDecide(
  db: Kysely<Tables>,
  tenantId: string,
  page: { limit: number; after: string | null },
): Promise<Email[]> {
  let query = db
    .selectFrom('emails')
    .select(columns)
    .where('tenant_id', '=', tenantId)
    .where('state', 'in', ['uncertain', 'failed'])
  if (page.after !== null) {
    const [orderId, kind] = splitId(page.after)
    query = query.where(sql<boolean>`(order_id, kind) > (${orderId}, ${kind})`)
  }
  return query
    .orderBy('order_id')
    .orderBy('kind')
    .limit(page.limit + 1)
    .execute()
}

/** The emails of an order. */
export function emailsOf(db: Kysely<Tables>, tenantId: string, orderId: string): Promise<Email[]> {
  return db
    .selectFrom('emails')
    .select(columns)
    .where('tenant_id', '=', tenantId)
    .where('order_id', '=', orderId)
    .orderBy('kind')
    .execute()
}

/** An order and a kind, out of `<order id>:<kind>`. */
export function splitId(id: string): [orderId: string, kind: string] {
  const colon = id.indexOf(':')
  return colon === -1 ? [id, ''] : [id.slice(0, colon), id.slice(colon + 1)]
}

// In each of these states, whoever still runs the job is through with the email and would only end the job.

/** A person has found out that it was sent. Null where it was not in doubt. */
export function decideEmailWasSent(
  db: Kysely<Tables>,
  tenantId: string,
  orderId: string,
  kind: string,
): Promise<Email | null> {
  return transaction(db, async (tx) => {
    const email = await moveByHand(tx, tenantId, orderId, kind, ['uncertain', 'failed'], 'sent')
    if (email === null) return null
    const job = sendJob(orderId, kind)
    await discardJob(tx, tenantId, job.topic, job.business_id, 'take')
    return email
  })
}

/** A person wants it sent, knowing that it may be the second time. Null where it waits or is being sent anyway. */
export function sendEmailAgain(
  db: Kysely<Tables>,
  tenantId: string,
  orderId: string,
  kind: string,
): Promise<Email | null> {
  return transaction(db, async (tx) => {
    const email = await moveByHand(tx, tenantId, orderId, kind, ['uncertain', 'failed', 'skipped', 'sent'], 'waiting')
    if (email === null) return null
    const job = sendJob(orderId, kind)
    await enqueueJobs(tx, tenantId, [job])
    await requeueJob(tx, tenantId, job.topic, job.business_id, 'take')
    return email
  })
}

async function moveByHand(
  tx: Kysely<Tables>,
  tenantId: string,
  orderId: string,
  kind: string,
  from: readonly Email['state'][],
  to: 'sent' | 'waiting',
): Promise<Email | null> {
  const email = await tx
    .updateTable('emails')
    .set({ state: to, reason: 'decided_by_hand', claim_token: null, updated_at: sql`clock_timestamp()` })
    .where('tenant_id', '=', tenantId)
    .where('order_id', '=', orderId)
    .where('kind', '=', kind)
    .where('state', 'in', from)
    .returning(columns)
    .executeTakeFirst()
  return email ?? null
}
