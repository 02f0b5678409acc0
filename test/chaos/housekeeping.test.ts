/** A process is killed at every step of forgetting and of comparing the books, and a new process goes on. */
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import { cart, keys } from '../support/client.ts'
import { endAllLeases, strandAndKill, takeOver } from '../support/deaths.ts'
import { type Audience, effectsOf, paidFor, startAudience } from '../support/effects.ts'
import { unhurried } from '../support/money-back.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { startServiceProcess } from '../support/service-process.ts'
import { expectKilledAtEachStep } from './steps.ts'

// Each starts two processes.
vi.setConfig({ testTimeout: 240_000 })

const paid = paidFor(1)

let scene: Scene
let audience: Audience
beforeAll(async () => {
  audience = await startAudience()
  // What a process still answers from memory for a minute is no news of what is stored.
  scene = await startScene({ settings: { ...audience.settings, REPLAY_CACHE_SECONDS: '0' } })
  await scene.books.webhooks({ drop: 1 })
  await scene.backend.put('/v1/webhook-endpoint', { url: audience.merchant.url })
})
afterAll(async () => {
  await scene.stop()
  await audience.stop()
})

interface Sold {
  key: string
  body: Record<string, unknown>
  order: string
  customer: string
}

async function sell(name: string): Promise<Sold> {
  const [key, body] = [newKey(), cart({ customer: { email: `${name}@example.com`, name }, metadata: { note: name } })]
  const { json } = await scene.shop.checkout(key, body)
  await runJobs(unhurried(scene.service))
  return { key, body, order: json.id, customer: json.customer_id }
}

/** The key has been used, and that alone is still known. */
async function expectForgotten({ key, body, order }: Sold): Promise<void> {
  const late = await scene.shop.checkout(key, body)
  expect([late.status, late.json.code, late.json.order_id]).toEqual([409, 'idempotency_key_expired', order])
  expect(await effectsOf(scene, audience, order)).toEqual(paid)
}

describe('a process killed while it erases a person', () => {
  it('is gone on with by another: the person is forgotten, their money is not, and nobody is told twice', async () => {
    const points = ['erasure.requested', 'erasure.batch_erased', 'erasure.person_erased']
    const people = new Map<string, Sold>()
    for (const point of points) people.set(point, await sell(point.replace('.', '-')))
    const path = ({ customer }: Sold) => `/v1/customers/${customer}/personal-data`
    const victim = await startServiceProcess(scene.env(audience.settings))
    await strandAndKill(
      victim,
      [...people].map(([point, person]) => ({
        point,
        provoke: ({ shop }) => shop.withKey(keys.backend).delete(path(person)),
      })),
    )
    await takeOver(scene, audience.settings)
    for (const person of people.values()) {
      const { customer, order } = person
      const known = await scene.db.selectFrom('customers').selectAll().where('customer_id', '=', customer).execute()
      expect(known).toMatchObject([{ email: null, name: null }])
      expect(await scene.db.selectFrom('orders').select('metadata').where('order_id', '=', order).execute()).toEqual([
        { metadata: null },
      ])
      const wishes = scene.db.selectFrom('erasures').selectAll().where('customer_id', '=', customer)
      expect(await wishes.execute()).toMatchObject([{ completed_at: expect.any(Date) }])
      const again = await scene.backend.delete(path(person))
      expect([again.status, again.json.status]).toEqual([200, 'completed'])
      await expectForgotten(person)
    }
  })
})

describe('a worker killed while it sweeps', () => {
  it('is gone on with by another: answers past their time are gone, keys are not', async () => {
    const old = await sell('long-ago')
    await scene.db
      .updateTable('attempts')
      .set({
        created_at: sql<Date>`created_at - interval '80 hours'`,
        settled_at: sql<Date>`settled_at - interval '80 hours'`,
      })
      .where('key', '=', old.key)
      .execute()
    const settings = { ...audience.settings, ROLES: 'worker', SWEEP_INTERVAL_MS: '50' }
    const victim = await startServiceProcess(scene.env(settings), { 'sweep.swept': { do: 'kill' } })
    await victim.gone
    await takeOver(scene, audience.settings)
    await expectForgotten(old)
  })
})

describe('a worker killed while it compares our books with the provider’s', () => {
  it.each(['report.window_compared', 'report.window_kept'])(
    'at %s is gone on with: each is counted once',
    async (point) => {
      const { order } = await sell('refunded-in-the-dashboard')
      const [payment] = (await scene.books.payments()).filter(({ metadata }) => metadata.order === order)
      await scene.books.control('POST', '/refunds', { payment_intent: payment?.id, amount: 250 })
      const asked = await scene.admin.post('/v1/admin/reports', {
        from: new Date(Date.now() - 3 * 24 * 3_600_000).toISOString(),
        to: new Date(Date.now() + 60_000).toISOString(),
      })
      expect(asked.status).toBe(202)
      // The last window is the one with something in it.
      const settings = { ...audience.settings, ROLES: 'worker', WORKER_POLL_MS: '20' }
      const victim = await startServiceProcess(scene.env(settings), { [point]: { do: 'kill', skip: 2 } })
      await victim.gone
      expect((await scene.admin.get(`/v1/admin/reports/${asked.json.id}`)).json.state).toBe('running')
      await takeOver(scene, audience.settings)
      const { json } = await scene.admin.get(`/v1/admin/reports/${asked.json.id}`)
      const others = (await scene.books.payments()).length - 1
      expect(json).toMatchObject({ state: 'done', matched: others, amount_differs: 1, missing_here: 0 })
      const { data } = (await scene.admin.get(`/v1/admin/reports/${asked.json.id}/findings`)).json
      expect(data).toMatchObject([{ kind: 'amount_differs', order_id: order, ours: 1250, theirs: 1000 }])
      await scene.admin.post(`/v1/admin/orders/${order}/reconcile`)
      await scene.admin.post(`/v1/admin/orders/${order}/decide`, { outcome: 'acknowledge', reason: 'read again' })
    },
  )
})

it('leaves our books equal to the provider’s', async () => {
  await endAllLeases(scene)
  await runJobs(unhurried(scene.service))
  await expectBooksInOrder(scene)
})

expectKilledAtEachStep(import.meta.filename)
