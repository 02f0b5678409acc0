/** Jobs as workers see them: taken under a lease, ended by whoever holds it. */
import { type Kysely, sql, type Transaction, type UpdateObject } from 'kysely'
import type pg from 'pg'
import { carryingTrace } from '../runtime/tracing.ts'
import type { Job } from './orders.ts'
import type { Tables } from './tables.ts'

/** A job that this process has taken, until its lease ends. */
export interface TakenJob {
  tenantId: string
  topic: string
  /** The business fact; constant however often the job runs. */
  businessId: string
  payload: Record<string, unknown>
  /** Runs that were begun, this one included. */
  attempts: number
  /** When the fact was. */
  createdAt: Date
  leaseToken: string
}

/** What a worker has room for, of one topic. */
export interface Lane {
  topic: string
  /** Jobs at most. */
  slots: number
  /** Of one tenant at most, those in `busy` included. */
  share: number
  /** Where the walk from tenant to tenant begins. */
  after: string
  /** How many of each tenant's run here already. */
  busy: Readonly<Record<string, number>>
}

interface TakenRow {
  lane: string
  next_after: string
  job: {
    tenant_id: string
    topic: string
    business_id: string
    payload: object
    attempts: number
    created_at: string
  } | null
}

/** Takes due jobs in one statement. They come back by themselves once `leaseMs` is over. `next`: by topic, where the next
 * walk begins, '' where this one has reached the last tenant. */
export async function takeJobs(
  pool: pg.Pool,
  lanes: readonly Lane[],
  { leaseToken, leaseMs, tenantsMax }: { leaseToken: string; leaseMs: number; tenantsMax: number },
): Promise<{ jobs: TakenJob[]; next: Map<string, string> }> {
  const { rows } = await pool.query<TakenRow>('SELECT * FROM take_jobs($1, $2, $3, $4)', [
    JSON.stringify(lanes),
    leaseToken,
    leaseMs,
    tenantsMax,
  ])
  const jobs: TakenJob[] = []
  const next = new Map<string, string>()
  for (const { lane, next_after, job } of rows) {
    if (job === null) next.set(lane, next_after)
    else
      jobs.push({
        tenantId: job.tenant_id,
        topic: job.topic,
        businessId: job.business_id,
        payload: job.payload as Record<string, unknown>,
        attempts: job.attempts,
        createdAt: new Date(job.created_at),
        leaseToken,
      })
  }
  return { jobs, next }
}

/** Another worker has taken the job, or a person has decided about it: whoever throws this must leave no effect. */
export class JobLeaseLost extends Error {
  override name = 'JobLeaseLost'
}

/** Ends jobs of one tenant and topic, in the transaction of their effect. Throws `JobLeaseLost` unless every one is still held. */
export async function finishJobs(tx: Transaction<Tables>, jobs: readonly TakenJob[]): Promise<void> {
  const [first] = jobs
  if (first === undefined) return
  const { numUpdatedRows } = await tx
    .updateTable('jobs')
    .set({ state: 'done', lease_token: null, last_error: null, finished_at: sql`clock_timestamp()` })
    .where('tenant_id', '=', first.tenantId)
    .where('topic', '=', first.topic)
    .where(
      'business_id',
      'in',
      jobs.map((job) => job.businessId),
    )
    .where('lease_token', '=', first.leaseToken)
    .where('state', '=', 'ready')
    .executeTakeFirst()
  if (Number(numUpdatedRows) !== jobs.length) throw new JobLeaseLost(`${first.topic} is no longer held`)
}

/** Ends one job whose effect is kept elsewhere; false where it is no longer held. */
export async function finishJob(db: Kysely<Tables>, job: TakenJob): Promise<boolean> {
  return change(db, job, { state: 'done', lease_token: null, last_error: null, finished_at: sql`clock_timestamp()` })
}

/** Gives the job back, to run again in `inMs`. A run that was no failure does not count. False where it is no longer held. */
export async function postponeJob(
  db: Kysely<Tables>,
  job: TakenJob,
  { inMs, reason, counts }: { inMs: number; reason: string; counts: boolean },
): Promise<boolean> {
  return change(db, job, {
    run_at: sql`clock_timestamp() + ${inMs}::float8 * interval '1 ms'`,
    lease_token: null,
    last_error: reason,
    ...(counts ? {} : { attempts: sql`attempts - 1` }),
  })
}

/** Gives the job up: a person decides. False where it is no longer held. */
export async function buryJob(db: Kysely<Tables>, job: TakenJob, reason: string): Promise<boolean> {
  return change(db, job, {
    state: 'dead',
    lease_token: null,
    last_error: reason,
    finished_at: sql`clock_timestamp()`,
  })
}

async function change(db: Kysely<Tables>, job: TakenJob, set: UpdateObject<Tables, 'jobs'>): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('jobs')
    .set(set)
    .where('tenant_id', '=', job.tenantId)
    .where('topic', '=', job.topic)
    .where('business_id', '=', job.businessId)
    .where('lease_token', '=', job.leaseToken)
    .where('state', '=', 'ready')
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

/** Writes jobs in the transaction of the fact that they follow from; a fact that has its job gets no second one. */
export async function enqueueJobs(tx: Transaction<Tables>, tenantId: string, jobs: readonly Job[]): Promise<void> {
  if (jobs.length === 0) return
  await tx
    .insertInto('jobs')
    .values(
      jobs
        .map(carryingTrace)
        .map((job) => ({ ...job, tenant_id: tenantId, lease_token: null, last_error: null, finished_at: null })),
    )
    .onConflict((conflict) => conflict.columns(['tenant_id', 'topic', 'business_id']).doNothing())
    .execute()
}

/** A row of `jobs`, as people see it. */
export interface JobRow {
  tenant_id: string
  topic: string
  business_id: string
  payload: Record<string, unknown>
  state: 'ready' | 'done' | 'dead' | 'discarded'
  run_at: Date
  attempts: number
  /** Taken, and the lease has not ended. */
  running: boolean
  last_error: string | null
  created_at: Date
  finished_at: Date | null
}

const isRunning = sql<boolean>`(state = 'ready' AND lease_token IS NOT NULL AND run_at > clock_timestamp())`
const shown = [
  'tenant_id',
  'topic',
  'business_id',
  'payload',
  'state',
  'run_at',
  'attempts',
  isRunning.as('running'),
  'last_error',
  'created_at',
  'finished_at',
] as const

/** How a job is named to people, and as the cursor of a list. */
export function jobId(job: Pick<JobRow, 'topic' | 'business_id'>): string {
  return `${job.topic}:${job.business_id}`
}

/** The topic and the business id, out of such a name. */
export function splitJobId(id: string): [topic: string, businessId: string] {
  const colon = id.indexOf(':')
  return colon === -1 ? [id, ''] : [id.slice(0, colon), id.slice(colon + 1)]
}

/** Jobs are kept by tenant. What does not say whose it is has its job under this name, which no tenant has. */
export const nobody = '-'

/** By topic, and within one the newest first as their business ids sort; one more than the page's limit where there is
 * more. `after` is a `jobId`. */
export async function listJobs(
  db: Kysely<Tables>,
  tenantId: string,
  page: { limit: number; after: string | null },
  state?: JobRow['state'],
): Promise<JobRow[]> {
  return pageOf(db.selectFrom('jobs').select(shown).where('tenant_id', '=', tenantId), page, state)
}

/** Whoever may see an event may see its job: a tenant's admins those about it, and while it is about none, those of its
 * account (null for the credentials' own, to which one that is past its retention falls). */
export interface EventViewer {
  provider: string
  tenantId: string
  account: string | null
}

/** Of the jobs under the name `nobody`, those of events that the viewer may see, likewise. */
export async function listNobodysJobs(
  db: Kysely<Tables>,
  viewer: EventViewer,
  page: { limit: number; after: string | null },
  state?: JobRow['state'],
): Promise<JobRow[]> {
  return pageOf(nobodysJobs(db, viewer), page, state)
}

export async function readNobodysJob(
  db: Kysely<Tables>,
  viewer: EventViewer,
  topic: string,
  businessId: string,
): Promise<JobRow | null> {
  const row = await nobodysJobs(db, viewer)
    .where('topic', '=', topic)
    .where('business_id', '=', businessId)
    .executeTakeFirst()
  return row ?? null
}

function nobodysJobs(db: Kysely<Tables>, viewer: EventViewer) {
  return db.selectFrom('jobs').select(shown).where(isNobodysFor(viewer))
}

export function isNobodysFor({ provider, tenantId, account }: EventViewer) {
  return sql<boolean>`(tenant_id = ${nobody} AND coalesce(
    (SELECT coalesce(e.tenant_id = ${tenantId}, e.account IS NOT DISTINCT FROM ${account})
     FROM provider_events e WHERE e.provider = ${provider} AND e.event_id = jobs.business_id),
    ${account}::text IS NULL))`
}

function pageOf(
  jobs: ReturnType<typeof nobodysJobs>,
  page: { limit: number; after: string | null },
  state: JobRow['state'] | undefined,
): Promise<JobRow[]> {
  let query = jobs
  // Written out, so that the partial indexes answer: what is done outnumbers everything else.
  if (state !== undefined) query = query.where(sql<boolean>`state = ${sql.lit(state)}`)
  if (page.after !== null) {
    const [topic, businessId] = splitJobId(page.after)
    query = query.where(sql<boolean>`(topic, business_id) < (${topic}, ${businessId})`)
  }
  return query
    .orderBy('topic', 'desc')
    .orderBy('business_id', 'desc')
    .limit(page.limit + 1)
    .execute()
}

export async function readJob(
  db: Kysely<Tables>,
  tenantId: string,
  topic: string,
  businessId: string,
): Promise<JobRow | null> {
  const row = await db
    .selectFrom('jobs')
    .select(shown)
    .where('tenant_id', '=', tenantId)
    .where('topic', '=', topic)
    .where('business_id', '=', businessId)
    .executeTakeFirst()
  return row ?? null
}

/** What a person's decision does with a job that runs this moment: leaves it alone, or takes it from its worker, who then
 * can no longer end it. That is for whoever knows that the worker has nothing left to do but to end it. */
type WhileRunning = 'leave' | 'take'

/**
 * Runs a job again under its business id, from its first try on; one that waits for its next try runs now. Its effects
 * are keyed by that id, so those that have happened do not happen again. Null where there is none or it was left running.
 */
export async function requeueJob(
  db: Kysely<Tables>,
  tenantId: string,
  topic: string,
  businessId: string,
  whileRunning: WhileRunning = 'leave',
): Promise<JobRow | null> {
  const row = await db
    .updateTable('jobs')
    .set({ state: 'ready', run_at: sql`clock_timestamp()`, attempts: 0, lease_token: null, finished_at: null })
    .where('tenant_id', '=', tenantId)
    .where('topic', '=', topic)
    .where('business_id', '=', businessId)
    .where(mayDecide(whileRunning))
    .returning(shown)
    .executeTakeFirst()
  return row ?? null
}

/** Gives a job up for good: it is never run again unless it is requeued. Null where there is none, it is done, or it was
 * left running. */
export async function discardJob(
  db: Kysely<Tables>,
  tenantId: string,
  topic: string,
  businessId: string,
  whileRunning: WhileRunning = 'leave',
): Promise<JobRow | null> {
  const row = await db
    .updateTable('jobs')
    .set({ state: 'discarded', lease_token: null, finished_at: sql`clock_timestamp()` })
    .where('tenant_id', '=', tenantId)
    .where('topic', '=', topic)
    .where('business_id', '=', businessId)
    .where('state', 'in', ['ready', 'dead'])
    .where(mayDecide(whileRunning))
    .returning(shown)
    .executeTakeFirst()
  return row ?? null
}

function mayDecide(whileRunning: WhileRunning) {
  return whileRunning === 'take' ? sql<boolean>`true` : sql<boolean>`NOT ${isRunning}`
}

/** Deletes up to `limit` jobs that ended longer ago than `olderThanMs`; resolves with how many. Dead ones stay: they wait
 * for a person. */
export async function deleteOldJobs(pool: pg.Pool, olderThanMs: number, limit: number): Promise<number> {
  const { rowCount } = await pool.query(
    `DELETE FROM jobs WHERE (tenant_id, topic, business_id) IN (
       SELECT tenant_id, topic, business_id FROM jobs
       WHERE state IN ('done', 'discarded') AND finished_at < now() - $1::float8 * interval '1 ms'
       ORDER BY finished_at LIMIT $2 FOR UPDATE SKIP LOCKED)`,
    [olderThanMs, limit],
  )
  return rowCount ?? 0
}
