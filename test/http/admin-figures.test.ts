/** The figures of the start page: one tenant's, the same from every process where the database knows them. */
import { createHash } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { type Client, cart, keys } from '../support/client.ts'
import { deliver, notification, providerObject } from '../support/notifications.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { neverArrived } from '../support/stuck.ts'

let scene: Scene
let otherAdmin: Client
beforeAll(async () => {
  scene = await startScene({ settings: { CHECKOUT_BUDGET_MS: '4000' } })
  await scene.db
    .insertInto('api_keys')
    .values({
      key_hash: createHash('sha256').update('ak_other').digest(),
      tenant_id: 'ten_other',
      role: 'admin',
      label: 'other admin',
      revoked_at: null,
    })
    .execute()
  otherAdmin = scene.admin.withKey('ak_other')
  await scene.books.webhooks({ drop: 1 })
})
afterAll(() => scene?.stop())

async function figures(client = scene.admin, query = '') {
  const { status, json } = await client.get(`/v1/admin/figures${query}`)
  expect(status).toBe(200)
  return json
}

function startedIn(read: { started: { orders: number }[] }): number {
  return read.started.reduce((sum, { orders }) => sum + orders, 0)
}

it('a quiet tenant has nothing that waits', async () => {
  const { tenant, actor, waiting, started } = await figures()
  expect([tenant, actor]).toEqual([{ id: 'ten_demo', name: 'Demo shop' }, 'demo'])
  expect(Object.values(waiting).filter((value) => value !== 0 && value !== null)).toEqual([])
  expect(started).toHaveLength(30)
  const minute = 60_000
  const times = started.map(({ at }: { at: string }) => Date.parse(at))
  expect(times.every((at: number, index: number) => at === times[0] + index * minute)).toBe(true)
  expect((await figures(scene.admin, '?minutes=2')).started).toHaveLength(2)
})

it('what waits is counted, with the age of the oldest, and to nobody else', async () => {
  const before = Date.now()
  const stuck = await neverArrived(scene)
  const paid = (await scene.shop.checkout(newKey())).json
  await scene.db
    .updateTable('orders')
    .set({ reconcile_reason: 'notification_mismatch' })
    .where('order_id', '=', paid.id)
    .execute()
  const intent = await providerObject(scene, `payment_intents/${paid.payment.reference}`)
  const ours = { ...intent, id: 'pi_strange' }
  await deliver(scene.service.url, notification('payment_intent.succeeded', { ...ours, metadata: {} }))
  await runJobs(scene.service.deps)
  await deliver(scene.service.url, notification('payment_intent.succeeded', intent))
  await scene.db
    .insertInto('jobs')
    .values(
      [
        { tenant_id: 'ten_demo', topic: 'send_email', business_id: 'x:1', state: 'dead', run_at: new Date(before) },
        { tenant_id: 'ten_other', topic: 'send_email', business_id: 'x:1', state: 'dead', run_at: new Date(before) },
      ].map((job) => ({
        ...job,
        state: 'dead' as const,
        lease_token: null,
        last_error: null,
        finished_at: new Date(),
      })),
    )
    .execute()
  for (const state of ['uncertain', 'failed', 'sent'] as const) {
    await scene.db
      .insertInto('emails')
      .values({
        tenant_id: 'ten_demo',
        order_id: stuck.id,
        kind: state,
        state,
        reason: null,
        amount: null,
        claim_token: null,
      })
      .execute()
  }
  const { waiting, started, ...rest } = await figures()
  expect(waiting).toMatchObject({
    needs_reconcile: 1,
    flagged: 1,
    dead_jobs: 1,
    due_jobs: 1,
    uncertain_emails: 1,
    failed_emails: 1,
    undelivered: 0,
    foreign_events: 0,
    unnamed_events: 1,
  })
  const flagged = await scene.admin.get('/v1/admin/orders?flagged=settled')
  expect(flagged.json.data.map(({ id }: { id: string }) => id)).toEqual([paid.id])
  expect((await scene.admin.get('/v1/admin/orders?flagged=true')).json.data).toHaveLength(2)
  const oldest = Date.parse(waiting.oldest_needs_reconcile_at)
  expect(Math.abs(oldest - before)).toBeLessThan(60_000)
  expect(Date.parse(waiting.oldest_due_at)).toBeLessThanOrEqual(Date.now())
  expect(startedIn({ started })).toBe(2)
  expect(rest.process.replays).toBe(0)

  const others = await figures(otherAdmin)
  expect(others.waiting).toMatchObject({
    needs_reconcile: 0,
    flagged: 0,
    dead_jobs: 1,
    due_jobs: 0,
    uncertain_emails: 0,
  })
  expect([startedIn(others), others.tenant.id]).toEqual([0, 'ten_other'])
})

it('an event to the merchant is counted while its latest delivery has failed', async () => {
  await scene.db
    .insertInto('merchant_events')
    .values(
      [1, 2].map((n) => ({
        tenant_id: 'ten_demo',
        event_id: `evt_${n}`,
        order_id: 'ord_x',
        type: 'order.paid',
        transition: `${n}`,
        body: '',
      })),
    )
    .execute()
  await scene.db
    .insertInto('event_deliveries')
    .values(
      [
        ['dlv_1', 'evt_1', false],
        ['dlv_2', 'evt_1', true],
        ['dlv_3', 'evt_2', false],
        ['dlv_4', 'evt_2', false],
      ].map(([delivery_id, event_id, delivered], attempt) => ({
        tenant_id: 'ten_demo',
        delivery_id: delivery_id as string,
        event_id: event_id as string,
        delivered: delivered as boolean,
        attempt,
        duration_ms: 1,
        http_status: null,
        error: null,
      })),
    )
    .execute()
  expect((await figures()).waiting.undelivered).toBe(1)
  // Made by hand, and not of the form that ids have: not read through the contract.
  const reply = await fetch(`${scene.service.url}/v1/admin/deliveries?undelivered=true`, {
    headers: { authorization: `Bearer ${keys.admin}` },
  })
  const { data } = (await reply.json()) as { data: { id: string }[] }
  expect(data.map(({ id }) => id)).toEqual(['dlv_4'])
})

it('replays and conflicts are counted by each process for itself, and by tenant', async () => {
  const key = newKey()
  await scene.shop.checkout(key)
  await scene.shop.checkout(key)
  await scene.shop.checkout(key, cart({ payment_method: 'pm_card_mastercard' }))
  await scene.shop.withKey(keys.otherStorefront).checkout(key)
  const here = (await figures()).process
  expect([here.replays, here.conflicts]).toEqual([1, 1])
  expect((await figures(otherAdmin)).process).toEqual({ ...here, replays: 0, conflicts: 0 })

  const second = await scene.start()
  const there = await figures(scene.admin.at(second.url))
  expect(there.process.id).not.toBe(here.id)
  expect([there.process.replays, there.process.conflicts]).toEqual([0, 0])
  const { waiting, started } = await figures()
  expect([there.waiting, startedIn(there)]).toEqual([waiting, startedIn({ started })])
})

it('asks for so many minutes and no others', async () => {
  for (const query of ['?minutes=0', '?minutes=61', '?minutes=x', '?hours=1']) {
    expect((await scene.admin.get(`/v1/admin/figures${query}`)).json.code).toBe('invalid_request')
  }
})
