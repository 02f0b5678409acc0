/** The provider's books against ours: what differs is found, listed and flagged, and nothing else is. */
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Deps } from '../../src/deps.ts'
import { firstIdFrom, newId } from '../../src/domain/ids.ts'
import type { Operator } from '../../src/flows/operators/operator.ts'
import { makeReport } from '../../src/flows/operators/reconciliation-report.ts'
import { armCheckpoints } from '../../src/runtime/checkpoint.ts'
import { Gate } from '../../src/runtime/gate.ts'
import { listFindings } from '../../src/store/reports.ts'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { cart } from '../support/client.ts'
import { providerCall } from '../support/notifications.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { chargedInDoubt } from '../support/stuck.ts'

const by: Operator = { tenantId: 'ten_demo', actor: 'test', keyId: null, requestId: 'test' }

let scene: Scene
let deps: Deps
beforeAll(async () => {
  scene = await startScene({ settings: { CHECKOUT_BUDGET_MS: '4000' } })
  deps = { ...scene.service.deps, gate: new Gate({ perSecond: 10_000, customersMax: 100, patienceMs: 0 }) }
  await scene.books.webhooks({ drop: 1 })
})
afterAll(() => scene.stop())

const anHourAgo = () => new Date(Date.now() - 3_600_000)

async function report(period: { from?: Date; to?: Date } = {}) {
  const made = await makeReport(deps, by, { from: anHourAgo(), to: new Date(), ...period }, () => {})
  const findings = await listFindings(scene.db, 'ten_demo', made.report_id, { limit: 1000, after: null })
  return { ...made, findings }
}

async function paid(overrides: Record<string, unknown> = {}) {
  const { status, json } = await scene.shop.checkout(newKey(), cart(overrides))
  expect(status).toBeLessThan(400)
  return { id: json.id as string, intent: json.payment.reference as string }
}

async function reasonOf(id: string) {
  const row = await scene.db
    .selectFrom('orders')
    .select('reconcile_reason')
    .where('order_id', '=', id)
    .executeTakeFirstOrThrow()
  return row.reconcile_reason
}

/** A payment of the tenant's that somebody made behind our back. */
async function payment(amount: number, metadata: { tenant: string; order: string }) {
  const { id } = await providerCall(
    scene,
    'POST',
    'payment_intents',
    {
      amount: String(amount),
      currency: 'eur',
      confirm: 'true',
      payment_method: 'pm_card_visa',
      'payment_method_types[]': 'card',
      'metadata[tenant]': metadata.tenant,
      'metadata[order]': metadata.order,
    },
    { 'stripe-version': deps.provider.versions.api },
  )
  return id as string
}

describe('a reconciliation report', () => {
  it('finds nothing wrong in books that agree, whatever has happened to the orders', async () => {
    await paid()
    await scene.shop.checkout(newKey(), cart({ payment_method: 'pm_card_chargeDeclined' }))
    await scene.shop.checkout(newKey(), cart({ payment_method: 'pm_card_threeDSecure2Required' }))
    await paid({ capture: 'manual' })
    const captured = await paid({ capture: 'manual' })
    await scene.backend.post(`/v1/orders/${captured.id}/capture`, { amount: 700 })
    const refunded = await paid()
    const refund = await scene.backend.post(
      `/v1/orders/${refunded.id}/refunds`,
      { amount: 333 },
      { 'idempotency-key': newKey() },
    )
    expect(refund.status).toBe(201)
    await payment(5000, { tenant: 'ten_other', order: newId('ord') })
    await runJobs(deps)
    const { findings, ...made } = await report()
    expect(findings).toEqual([])
    expect(made).toMatchObject({ state: 'done', matched: 6, missing_here: 0, missing_there: 0, amount_differs: 0 })
    expect(made.compared_to).toEqual(made.period_to)
    expect(made.finished_at).toBeInstanceOf(Date)
  })

  it('finds money that our books do not have, of an order and of none', async () => {
    const inDoubt = await chargedInDoubt(scene)
    // A process may be charging this moment: that is no finding yet.
    expect((await report()).findings).toEqual([])
    await scene.db
      .updateTable('orders')
      .set({ created_at: sql`created_at - interval '1 minute'` })
      .where('order_id', '=', inDoubt.id)
      .execute()
    const stranger = newId('ord')
    const intent = await payment(4200, { tenant: 'ten_demo', order: stranger })
    const { findings, missing_here } = await report()
    expect(missing_here).toBe(2)
    expect(findings).toHaveLength(2)
    expect(findings).toContainEqual({
      subject: intent,
      kind: 'missing_here',
      order_id: null,
      intent_id: intent,
      ours: 0,
      theirs: 4200,
      currency: 'EUR',
    })
    expect(findings).toContainEqual(
      expect.objectContaining({ kind: 'missing_here', order_id: inDoubt.id, theirs: 1250 }),
    )
    // It is recovery's, and keeps recovery's reason.
    expect(await reasonOf(inDoubt.id)).not.toBe('charge_not_booked')
    await scene.admin.post(`/v1/admin/orders/${inDoubt.id}/reconcile`)
    await providerCall(scene, 'POST', 'refunds', { payment_intent: intent })
    expect((await report()).findings).toEqual([])
  })

  it('finds an amount that differs, flags the order, and leaves other flags alone', async () => {
    const order = await paid()
    const flagged = await paid()
    await scene.db.updateTable('orders').set({ reconcile_reason: 'first' }).where('order_id', '=', flagged.id).execute()
    for (const { intent } of [order, flagged]) {
      await scene.books.control('POST', '/refunds', { payment_intent: intent, amount: 250 })
    }
    const { findings, amount_differs } = await report()
    expect(amount_differs).toBe(2)
    expect(findings).toContainEqual({
      subject: order.intent,
      kind: 'amount_differs',
      order_id: order.id,
      intent_id: order.intent,
      ours: 1250,
      theirs: 1000,
      currency: 'EUR',
    })
    expect(await reasonOf(order.id)).toBe('amount_differs_at_provider')
    expect(await reasonOf(flagged.id)).toBe('first')
    const listed = await scene.admin.get('/v1/admin/orders?flagged=true')
    expect(listed.json.data.map(({ id }: { id: string }) => id)).toContain(order.id)
    for (const { id } of [order, flagged]) {
      await scene.admin.post(`/v1/admin/orders/${id}/reconcile`)
      await scene.admin.post(`/v1/admin/orders/${id}/decide`, { outcome: 'acknowledge', reason: 'read again' })
    }
    expect((await report()).findings).toEqual([])
  })

  it('finds a payment that the provider does not have', async () => {
    const order = await paid()
    await scene.db.updateTable('orders').set({ intent_id: 'pi_lost' }).where('order_id', '=', order.id).execute()
    const { findings } = await report()
    expect(findings).toContainEqual({
      subject: 'pi_lost',
      kind: 'missing_there',
      order_id: order.id,
      intent_id: 'pi_lost',
      ours: 1250,
      theirs: null,
      currency: 'EUR',
    })
    // And the payment that is there is nobody's.
    expect(findings).toContainEqual(
      expect.objectContaining({ kind: 'missing_here', intent_id: order.intent, theirs: 1250 }),
    )
    expect(await reasonOf(order.id)).toBe('missing_at_provider')
    await scene.db
      .updateTable('orders')
      .set({ intent_id: order.intent, reconcile_reason: null })
      .where('order_id', '=', order.id)
      .execute()
    expect((await report()).findings).toEqual([])
  })

  it('compares each payment once, however the period is cut', async () => {
    const whole = await report()
    const from = anHourAgo()
    const { rows } = await sql<{ middle: Date }>`SELECT clock_timestamp() - interval '1.3 seconds' AS middle`.execute(
      scene.db,
    )
    const middle = new Date(Math.floor((rows[0]?.middle ?? from).getTime() / 1000) * 1000)
    const first = await report({ from, to: middle })
    const second = await report({ from: middle })
    expect(first.matched + second.matched).toBe(whole.matched)
    expect([...first.findings, ...second.findings]).toEqual([])
  })

  it('goes on where it died, and counts nothing twice', async () => {
    const whole = await report()
    const reply = await scene.admin.post('/v1/admin/reports', {
      from: new Date(Date.now() - 40 * 24 * 3_600_000).toISOString(),
      to: new Date().toISOString(),
    })
    expect([reply.status, reply.json.state]).toEqual([202, 'running'])
    expect(reply.headers.get('location')).toBe(`/v1/admin/reports/${reply.json.id}`)
    let windows = 0
    armCheckpoints((point) => {
      if (point === 'report.window_compared' && ++windows === 30) throw new Error('died')
    })
    await runJobs(deps)
    armCheckpoints(undefined)
    const halfway = (await scene.admin.get(`/v1/admin/reports/${reply.json.id}`)).json
    expect(halfway.state).toBe('running')
    expect(halfway.compared_to > halfway.from && halfway.compared_to < halfway.to).toBe(true)
    await scene.db
      .updateTable('jobs')
      .set({ run_at: new Date(0) })
      .where('topic', '=', 'reconciliation_report')
      .execute()
    await Promise.all([runJobs(deps), runJobs(deps)])
    const done = (await scene.admin.get(`/v1/admin/reports/${reply.json.id}`)).json
    expect(done).toMatchObject({ state: 'done', matched: whole.matched, missing_here: 0, amount_differs: 0 })
    expect((await scene.admin.get('/v1/admin/reports')).json.data[0].id).toBe(reply.json.id)
    expect((await scene.admin.get(`/v1/admin/reports/${reply.json.id}/findings`)).json.data).toEqual([])
  })

  it('cuts the period finer where there are many orders, and still compares each once', async () => {
    const from = new Date(Date.now() - 10 * 24 * 3_600_000)
    const { rows } = await sql<{ order_id: string }>`
      SELECT order_id FROM orders WHERE tenant_id = 'ten_demo' AND status = 'payment_failed' LIMIT 1`.execute(scene.db)
    const ids = Array.from({ length: 2500 }, (_, n) =>
      firstIdFrom('ord', new Date(from.getTime() + 3_600_000 + n * 1000)),
    )
    // Unpaid orders of an afternoon long ago.
    await sql`INSERT INTO orders SELECT (jsonb_populate_record(o, jsonb_build_object(
        'order_id', id, 'attempt_key', id, 'intent_id', NULL, 'created_at', now() - interval '9 days'))).*
      FROM orders o, unnest(${ids}::text[]) AS id WHERE o.order_id = ${rows[0]?.order_id}`.execute(scene.db)
    const windows: Date[] = []
    const made = await makeReport(deps, by, { from, to: new Date() }, ({ compared_to }) => windows.push(compared_to))
    expect(made).toMatchObject({ state: 'done', missing_here: 0, missing_there: 0, amount_differs: 0 })
    expect(windows.length).toBeGreaterThan(10)
    await sql`DELETE FROM orders WHERE order_id = ANY (${ids}::text[])`.execute(scene.db)
  })

  it('says that it failed where the provider does not answer, and is tried again as a job', async () => {
    await scene.books.fault({ method: 'GET', path: '/v1/payment_intents', fault: 'error_before' })
    await expect(report()).rejects.toThrow('could not be listed')
    const [failed] = (await scene.admin.get('/v1/admin/reports?limit=1')).json.data
    expect(failed).toMatchObject({ state: 'failed', reason: 'not_reached' })
    const reply = await scene.admin.post('/v1/admin/reports', {
      from: anHourAgo().toISOString(),
      to: new Date().toISOString(),
    })
    await runJobs(deps)
    expect((await scene.admin.get(`/v1/admin/jobs/reconciliation_report:${reply.json.id}`)).json).toMatchObject({
      state: 'ready',
      last_error: 'not_reached',
      attempts: 1,
    })
    await scene.books.noFaults()
    await scene.admin.post(`/v1/admin/jobs/reconciliation_report:${reply.json.id}/requeue`)
    await runJobs(deps)
    expect((await scene.admin.get(`/v1/admin/reports/${reply.json.id}`)).json.state).toBe('done')
  })

  it('refuses a period that is none', async () => {
    const now = new Date().toISOString()
    for (const body of [
      { from: now, to: anHourAgo().toISOString() },
      { from: now, to: now },
      { from: new Date(Date.now() + 60_000).toISOString(), to: new Date(Date.now() + 120_000).toISOString() },
      { from: 'yesterday', to: now },
      { from: '0000-01-01T00:00:00Z', to: now },
      { from: new Date(Date.now() - 367 * 24 * 3_600_000).toISOString(), to: now },
      { from: now },
    ]) {
      expect((await scene.admin.post('/v1/admin/reports', body)).json.code).toBe('invalid_request')
    }
    expect((await scene.admin.get('/v1/admin/reports/rep_none')).status).toBe(404)
    expect((await scene.admin.get('/v1/admin/reports/rep_none/findings')).status).toBe(404)
  })
})
