/** Requests and jobs that die with their process, and the process that takes over from it. */
import { type RawBuilder, sql } from 'kysely'
import type { Reply } from './client.ts'
import type { Scene } from './scene.ts'
import { type ServiceProcess, startServiceProcess } from './service-process.ts'
import { until } from './until.ts'

export interface Doomed {
  point: string
  /** With processes that live. */
  before?(): Promise<unknown>
  /** Has the process come to the point, by a request that it never answers or in any other way. */
  provoke(victim: ServiceProcess): Promise<Reply | undefined>
}

/** One process gets all of it, each stops at its point, and then it dies by SIGKILL. `beforeDeath`: what else it has
 * still to do. */
export async function strandAndKill(
  victim: ServiceProcess,
  doomed: readonly Doomed[],
  beforeDeath?: () => Promise<unknown>,
): Promise<void> {
  const passes = new Map<string, number>()
  for (const { point, before, provoke } of doomed) {
    await before?.()
    await victim.arm({ [point]: { do: 'pause' } })
    const answer = provoke(victim)
    const passed = answer.then((reply) => {
      if (reply) throw new Error(`answered without ${point}: ${reply.status} ${reply.text}`)
    })
    passed.catch(() => {})
    const times = (passes.get(point) ?? 0) + 1
    passes.set(point, times)
    const reached = victim.reached(point, times)
    await Promise.race([reached, passed.then(() => reached)])
  }
  await beforeDeath?.()
  await victim.kill()
}

/** Nobody holds anything any more, and no pause stands in anybody's way: a long time after a process has died. */
export async function endAllLeases({ db }: Scene): Promise<void> {
  const past = sql<Date>`clock_timestamp() - interval '1 ms'`
  await db.updateTable('jobs').set({ run_at: past }).where('state', '=', 'ready').execute()
  await db.updateTable('attempts').set({ lease_expires_at: past }).where('lease_token', 'is not', null).execute()
  await endPauses({ db })
}

async function endPauses({ db }: Pick<Scene, 'db'>): Promise<void> {
  const past = sql<Date>`clock_timestamp() - interval '1 ms'`
  // A job that runs keeps its lease.
  await db
    .updateTable('jobs')
    .set({ run_at: past })
    .where('state', '=', 'ready')
    .where('lease_token', 'is', null)
    .execute()
  await nextAskAt({ db }, past)
  await db.updateTable('runs').set({ next_look_at: past }).where('closed_at', 'is not', null).execute()
  await db.updateTable('erasures').set({ next_look_at: past }).where('completed_at', 'is', null).execute()
}

/** Recovery asks about nothing that is there now: only jobs move it. */
export function putOffAsking(scene: Scene): Promise<void> {
  return nextAskAt(scene, sql<Date>`clock_timestamp() + interval '1 hour'`)
}

async function nextAskAt({ db }: Pick<Scene, 'db'>, at: RawBuilder<Date>): Promise<void> {
  await db.updateTable('orders').set({ next_ask_at: at }).where('status', 'in', stillOpen).execute()
  await db.updateTable('refunds').set({ next_ask_at: at }).where('status', '=', 'pending').execute()
  await db.updateTable('hold_endings').set({ next_ask_at: at }).where('ended_at', 'is', null).execute()
}

const stillOpen = ['pending', 'requires_action', 'needs_reconcile'] as const

/** Once what the dead held is free again, a new process with all the workers does what is left, until nothing is. */
export async function takeOver(scene: Scene, settings: Record<string, string>): Promise<void> {
  await endAllLeases(scene)
  const eager = { WORKER_POLL_MS: '20', RECOVERY_INTERVAL_MS: '50', SWEEP_INTERVAL_MS: '50', RECONCILE_AFTER_MS: '100' }
  const fresh = await startServiceProcess(scene.env({ ...settings, ...eager, ROLES: 'worker' }))
  await until(
    async () => {
      await endPauses(scene)
      const left = await unfinished(scene)
      if (left.length > 0) throw new Error(left.join(', '))
      return true
    },
    // Seldom, so that what is being asked about is not asked about again and again; and long: there is much to tell.
    { everyMs: 500, timeoutMs: 120_000, what: 'a new process to finish what was left' },
  )
  await fresh.stop()
}

/** What workers have still to do. */
async function unfinished({ db }: Scene): Promise<string[]> {
  const { rows } = await sql<{ what: string }>`
    SELECT topic || ' ' || business_id AS what FROM jobs WHERE state = 'ready'
    UNION ALL SELECT order_id FROM orders WHERE status IN ('pending', 'needs_reconcile')
    UNION ALL SELECT refund_id FROM refunds WHERE status = 'pending'
    UNION ALL SELECT order_id FROM hold_endings WHERE ended_at IS NULL
    UNION ALL SELECT order_id FROM runs WHERE closed_at IS NOT NULL AND finished_at IS NULL
    UNION ALL SELECT customer_id FROM erasures WHERE completed_at IS NULL`.execute(db)
  return rows.map(({ what }) => what)
}
