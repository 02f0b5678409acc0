import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Deps } from '../../src/deps.ts'
import { JobFailure, type JobHandler } from '../../src/flows/jobs/job-run.ts'
import { transaction } from '../../src/runtime/database.ts'
import { type Lane, takeJobs } from '../../src/store/jobs.ts'
import { runJobs } from '../../src/workers/run-jobs.ts'
import type { Topic } from '../../src/workers/topics.ts'
import { type Scene, startScene } from '../support/scene.ts'
import { until } from '../support/until.ts'

let scene: Scene
beforeAll(async () => {
  scene = await startScene()
})
afterAll(() => scene.stop())
beforeEach(async () => {
  await scene.db.deleteFrom('jobs').execute()
})

const thrice = (failures: number) => (failures >= 3 ? null : 60_000)

function topic(run: JobHandler, settings: { slots?: number; share?: number } = {}): Record<string, Topic> {
  return { work: { slots: 8, share: 4, pauseMs: thrice, run, ...settings } }
}

async function put(tenantId: string, ids: string[], topicName = 'work'): Promise<void> {
  await scene.db
    .insertInto('jobs')
    .values(
      ids.map((business_id) => ({
        tenant_id: tenantId,
        topic: topicName,
        business_id,
        lease_token: null,
        last_error: null,
        finished_at: null,
      })),
    )
    .execute()
}

/** As if the time had passed that every waiting job waits for, leases included. */
async function passTime(): Promise<void> {
  await scene.db
    .updateTable('jobs')
    .set({ run_at: new Date(0) })
    .where('state', '=', 'ready')
    .execute()
}

function rows() {
  return scene.db.selectFrom('jobs').selectAll().orderBy('tenant_id').orderBy('business_id').execute()
}

function names(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}${String(index).padStart(4, '0')}`)
}

describe('jobs', () => {
  it('are each run once by two workers at once, and end done', async () => {
    await put('ten_a', names('a', 150))
    await put('ten_b', names('b', 50))
    const other = await scene.start()
    const ran: string[] = []
    const known = topic(async (_deps, { job }) => {
      ran.push(job.businessId)
      return 'done'
    })
    const counts = await Promise.all([
      runJobs(scene.service.deps, undefined, known),
      runJobs(other.deps, undefined, known),
    ])
    expect(counts[0] + counts[1]).toBe(200)
    expect(ran.toSorted()).toEqual([...names('a', 150), ...names('b', 50)])
    const ended = await rows()
    expect(new Set(ended.map((row) => `${row.state} ${row.attempts} ${row.lease_token}`))).toEqual(
      new Set(['done 1 null']),
    )
  })

  it('that always fail at the head of the queue hold nobody up, and end dead with their last error', async () => {
    await put('ten_a', names('bad', 15))
    await scene.db
      .updateTable('jobs')
      .set({ run_at: new Date(0) })
      .execute()
    await put('ten_a', names('good', 100))
    const runs: string[] = []
    const known = topic(async (_deps, { job }) => {
      runs.push(job.businessId)
      if (job.businessId.startsWith('bad')) throw new JobFailure('always_fails')
      return 'done'
    })
    expect(await runJobs(scene.service.deps, undefined, known)).toBe(115)
    expect(runs.slice(0, 4).every((id) => id.startsWith('bad'))).toBe(true)
    expect((await rows()).filter((row) => row.state === 'done')).toHaveLength(100)

    for (let failures = 2; failures <= 3; failures++) {
      const waiting = (await rows()).filter((row) => row.state === 'ready')
      expect(waiting).toHaveLength(15)
      // Half a minute at least: the pause is a minute, with jitter.
      expect(waiting.every((row) => row.run_at.getTime() > Date.now() + 20_000)).toBe(true)
      expect(await runJobs(scene.service.deps, undefined, known)).toBe(0)
      await passTime()
      expect(await runJobs(scene.service.deps, undefined, known)).toBe(15)
    }
    const dead = (await rows()).filter((row) => row.state === 'dead')
    expect(dead).toHaveLength(15)
    expect(new Set(dead.map((row) => `${row.attempts} ${row.last_error}`))).toEqual(new Set(['3 always_fails']))
  })

  it('of a tenant with a long queue leave room for those of another', async () => {
    await sql`INSERT INTO jobs (tenant_id, topic, business_id, run_at)
              SELECT 'ten_a', 'work', 'a' || n, now() - interval '1 hour' FROM generate_series(1, 20000) n`.execute(
      scene.db,
    )
    await put('ten_b', names('b', 10))
    const runs: string[] = []
    const stopping = new AbortController()
    const known = topic(async (_deps, { job }) => {
      runs.push(job.businessId)
      if (runs.length >= 100) stopping.abort()
      return 'done'
    })
    await runJobs(scene.service.deps, stopping.signal, known)
    const places = runs.flatMap((id, place) => (id.startsWith('b') ? place : []))
    expect(places).toHaveLength(10)
    // Each look gives either tenant half of what is free.
    expect(Math.max(...places)).toBeLessThan(40)
  })

  it('of a tenant whose jobs hang leave slots for those of another', async () => {
    await put('ten_a', names('hangs', 20))
    let release: () => void = () => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    const known = topic(async (_deps, { job }) => {
      if (job.businessId.startsWith('hangs')) await released
      return 'done'
    })
    const running = runJobs(scene.service.deps, undefined, known)
    await until(async () => (await rows()).filter((row) => row.lease_token !== null).length === 4)
    await put('ten_b', names('b', 30))
    await until(
      async () => (await rows()).filter((row) => row.tenant_id === 'ten_b' && row.state === 'done').length === 30,
    )
    release()
    await running
    expect((await rows()).every((row) => row.state === 'done')).toBe(true)
  })

  it('are found without a walk over those that are not due, or done', async () => {
    await sql`INSERT INTO jobs (tenant_id, topic, business_id, run_at)
              SELECT 'ten_' || n % 20, 'work', 'later' || n, now() + interval '1 hour' FROM generate_series(1, 20000) n`.execute(
      scene.db,
    )
    await sql`INSERT INTO jobs (tenant_id, topic, business_id, state, finished_at)
              SELECT 'ten_' || n % 20, 'work', 'done' || n, 'done', now() FROM generate_series(1, 20000) n`.execute(
      scene.db,
    )
    await put('ten_7', ['due'])
    const lanes: Lane[] = [{ topic: 'work', slots: 8, share: 4, after: 'ten_3', busy: {} }]
    const explained = await sql<{
      'QUERY PLAN': [{ Plan: { 'Shared Hit Blocks': number; 'Shared Read Blocks': number } }]
    }>`
      EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM take_jobs(${JSON.stringify(lanes)}, gen_random_uuid(), 0, 500)`.execute(
      scene.db,
    )
    const plan = explained.rows[0]?.['QUERY PLAN'][0].Plan
    expect((plan?.['Shared Hit Blocks'] ?? 0) + (plan?.['Shared Read Blocks'] ?? 0)).toBeLessThan(1000)
    const taken = await takeJobs(scene.service.deps.pool, lanes, {
      leaseToken: crypto.randomUUID(),
      leaseMs: 1000,
      tenantsMax: 500,
    })
    expect(taken.jobs.map((job) => job.businessId)).toEqual(['due'])
    expect(taken.next.get('work')).toBe('')
  })

  it('are found by going on where the last look stopped, however many tenants have some that are not due', async () => {
    await sql`INSERT INTO jobs (tenant_id, topic, business_id, run_at)
              SELECT 'ten_' || lpad(n::text, 4, '0'), 'work', 'later', now() + interval '1 hour' FROM generate_series(0, 999) n`.execute(
      scene.db,
    )
    await put('ten_0950', ['due'])
    const ran: string[] = []
    await runJobs(
      scene.service.deps,
      undefined,
      topic(async (_deps, { job }) => {
        ran.push(job.businessId)
        return 'done'
      }),
    )
    expect(ran).toEqual(['due'])
  })

  it('are not run by a second worker while the first holds the lease', async () => {
    await put('ten_a', ['one'])
    let release: () => void = () => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    let runs = 0
    const known = topic(async () => {
      runs += 1
      await released
      return 'done'
    })
    const first = runJobs(scene.service.deps, undefined, known)
    await until(() => runs === 1)
    expect(await runJobs(scene.service.deps, undefined, known)).toBe(0)
    release()
    await first
    expect(runs).toBe(1)
  })

  it('whose lease was lost are ended by the new owner alone; the late one changes nothing', async () => {
    await put('ten_a', ['fails', 'waits', 'ends', 'ends_in_a_transaction'])
    const gates = new Map<string, () => void>()
    let isLate = true
    const known = topic(async (deps, run) => {
      const late = isLate
      if (late) await new Promise<void>((resolve) => gates.set(run.job.businessId, resolve))
      if (!late) return 'done'
      switch (run.job.businessId) {
        case 'fails':
          throw new JobFailure('too_late')
        case 'waits':
          return { later: 'too_late', inMs: 1000 }
        case 'ends_in_a_transaction':
          await transaction(deps.db, async (tx) => {
            await tx.updateTable('products').set({ name: 'changed too late' }).where('sku', '=', 'mug').execute()
            await run.finish(tx)
          })
          return 'finished'
        default:
          return 'done'
      }
    })
    const first = runJobs(scene.service.deps, undefined, known)
    await until(() => gates.size === 4)
    await passTime()
    isLate = false
    expect(await runJobs(scene.service.deps, undefined, known)).toBe(4)
    const ended = await rows()
    for (const open of gates.values()) open()
    await first
    expect(await rows()).toEqual(ended)
    expect(new Set(ended.map((row) => `${row.state} ${row.attempts} ${row.last_error}`))).toEqual(
      new Set(['done 2 null']),
    )
    const changed = await scene.db.selectFrom('products').select('sku').where('name', '=', 'changed too late').execute()
    expect(changed).toEqual([])
  })

  it('that take their worker with them each time end dead', async () => {
    await put('ten_a', ['deadly'])
    await scene.db
      .updateTable('jobs')
      .set({ attempts: 3, run_at: new Date(0) })
      .execute()
    let runs = 0
    await runJobs(
      scene.service.deps,
      undefined,
      topic(async () => {
        runs += 1
        return 'done'
      }),
    )
    expect(runs).toBe(0)
    expect(await rows()).toMatchObject([{ state: 'dead', last_error: 'worker_died' }])
  })

  it('that wait for something are no failures, and a fault of ours is kept without its words', async () => {
    await put('ten_a', ['faulty', 'patient'])
    const known = topic(async (_deps, { job }) => {
      if (job.businessId === 'faulty') throw new Error('the address of ada@example.com')
      return { later: 'not_yet', inMs: 3_600_000 }
    })
    await runJobs(scene.service.deps, undefined, known)
    await passTime()
    await runJobs(scene.service.deps, undefined, known)
    expect(await rows()).toMatchObject([
      { business_id: 'faulty', attempts: 2, last_error: 'unexpected_error', state: 'ready' },
      { business_id: 'patient', attempts: 0, last_error: 'not_yet', state: 'ready', lease_token: null },
    ])
  })

  it('of a topic that this process does not know are left alone', async () => {
    await put('ten_a', ['strange'], 'from_the_future')
    expect(await runJobs(scene.service.deps)).toBe(0)
    expect(await rows()).toMatchObject([{ attempts: 0, state: 'ready' }])
  })

  it('that are under way are ended when the worker is told to stop, and no more are taken', async () => {
    await put('ten_a', names('a', 20))
    const stopping = new AbortController()
    let ran = 0
    await runJobs(
      scene.service.deps,
      stopping.signal,
      topic(async () => {
        stopping.abort()
        ran += 1
        return 'done'
      }),
    )
    expect((await rows()).filter((row) => row.state === 'done')).toHaveLength(ran)
    expect((await rows()).filter((row) => row.state === 'ready' && row.attempts === 0)).toHaveLength(20 - ran)
    expect(ran).toBeLessThan(20)
  })

  it('of a group share a transaction, and one that fails leaves the others theirs', async () => {
    await put('ten_a', [...names('good', 10), 'poison'])
    const groups: number[] = []
    const inGroups = (
      deps: Deps,
      { jobs, finish }: Parameters<Extract<Topic, { runGroup: unknown }>['runGroup']>[1],
    ) => {
      groups.push(jobs.length)
      if (jobs.some((job) => job.businessId === 'poison')) throw new JobFailure('poisoned')
      return transaction(deps.db, (tx) => finish(tx))
    }
    const known: Record<string, Topic> = {
      work: { slots: 64, share: 32, pauseMs: thrice, runGroup: async (deps, run) => inGroups(deps, run) },
    }
    await runJobs(scene.service.deps, undefined, known)
    expect(groups).toEqual([11, ...Array(11).fill(1)])
    const ended = await rows()
    expect(ended.filter((row) => row.state === 'done')).toHaveLength(10)
    expect(ended.find((row) => row.business_id === 'poison')).toMatchObject({
      state: 'ready',
      last_error: 'poisoned',
      attempts: 1,
    })

    await put('ten_a', names('more', 10))
    groups.length = 0
    await passTime()
    await runJobs(scene.service.deps, undefined, known)
    // What has failed once is no company for others.
    expect(groups.toSorted()).toEqual([1, 10])
  })
})
