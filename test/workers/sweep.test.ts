/** What is past its retention is forgotten, and nothing else: no key ever starts a second effect. */
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { firstIdFrom } from '../../src/domain/ids.ts'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { sweep } from '../../src/workers/sweep.ts'
import { administer } from '../support/administer.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import { cart } from '../support/client.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'

let scene: Scene
beforeAll(async () => {
  scene = await startScene({ settings: { REPLAY_CACHE_SECONDS: '0' } })
  await scene.books.webhooks({ drop: 1 })
})
afterAll(async () => {
  await expectBooksInOrder(scene, { unfinished: true })
  await scene.stop()
})

const run = () => sweep(scene.service.deps)

async function age(key: string, hours: number): Promise<void> {
  await scene.db
    .updateTable('attempts')
    .set({
      created_at: sql`created_at - ${hours} * interval '1 hour'`,
      settled_at: sql`settled_at - ${hours} * interval '1 hour'`,
    })
    .where('key', '=', key)
    .execute()
}

function attempt(key: string) {
  return scene.db.selectFrom('attempts').selectAll().where('key', '=', key).executeTakeFirstOrThrow()
}

async function callsOf(orderId: string): Promise<number> {
  return (await scene.db.selectFrom('provider_calls').select('call_id').where('order_id', '=', orderId).execute())
    .length
}

async function reports(): Promise<string[]> {
  const rows = await scene.db.selectFrom('reports').select('report_id').orderBy('report_id').execute()
  return rows.map(({ report_id }) => report_id)
}

describe('the sweep', () => {
  it('empties what a settled attempt has stored, once the retention is over, and keeps the key for good', async () => {
    const [young, old, declined] = [newKey(), newKey(), newKey()]
    const bad = cart({ payment_method: 'pm_card_chargeDeclined' })
    const first = await scene.shop.checkout(young)
    await scene.shop.checkout(old)
    await scene.shop.checkout(declined, bad)
    await age(young, 71)
    for (const key of [old, declined]) await age(key, 73)
    expect(await run()).toBe(2)
    expect(await run()).toBe(0)

    expect((await scene.shop.checkout(young)).text).toBe(first.text)
    for (const [key, body] of [
      [old, cart()],
      [declined, bad],
    ] as const) {
      expect(await attempt(key)).toMatchObject({
        state: 'settled',
        digest: null,
        digest_tags: null,
        digest_secret_id: null,
        response_status: null,
        response_body: null,
        swept_at: expect.any(Date),
      })
      for (const each of [body, cart({ items: [{ sku: 'tee', quantity: 1 }] })]) {
        const reply = await scene.shop.checkout(key, each)
        expect([reply.status, reply.json.code]).toEqual([409, 'idempotency_key_expired'])
        expect(reply.json.order_id).toMatch(/^ord_/)
      }
      expect(await scene.books.paymentsFor(key)).toHaveLength(1)
    }
    const look = await scene.shop.get(`/v1/checkouts/${old}`)
    expect(look.json).toMatchObject({ state: 'expired', new_key_safe: false, order: { status: 'paid' } })
    expect((await scene.shop.get(`/v1/checkouts/${declined}`)).json).toMatchObject({
      state: 'expired',
      new_key_safe: true,
    })
  })

  it('counts from the settling, and never touches what is open, however old', async () => {
    const [open, late] = [newKey(), newKey()]
    await scene.shop.checkout(open, cart({ payment_method: 'pm_card_threeDSecure2Required' }))
    await scene.shop.checkout(late)
    await age(open, 24 * 365)
    await scene.db
      .updateTable('attempts')
      .set({ created_at: sql`created_at - interval '1000 hours'` })
      .where('key', '=', late)
      .execute()
    expect(await run()).toBe(0)
    expect((await attempt(open)).digest).not.toBeNull()
    expect((await attempt(late)).response_body).not.toBeNull()
    const repeat = await scene.shop.checkout(open, cart({ payment_method: 'pm_card_threeDSecure2Required' }))
    expect(repeat.json.status).toBe('requires_action')
  })

  it('empties the attempts of refunds and runs too', async () => {
    const order = (await scene.shop.checkout(newKey())).json
    const [refundKey, runKey] = [newKey(), newKey()]
    const path = `/v1/orders/${order.id}/refunds`
    const refund = await scene.backend.post(path, { amount: 10 }, { 'idempotency-key': refundKey })
    expect(refund.status).toBe(201)
    const body = {
      customer: { email: 'a@example.com' },
      payment_method: 'pm_card_visa',
      currency: 'EUR',
      hold_amount: 500,
    }
    const started = await scene.backend.post('/v1/runs', body, { 'idempotency-key': runKey })
    expect(started.status).toBe(201)
    for (const key of [refundKey, runKey]) await age(key, 100)
    expect(await run()).toBe(2)
    const again = await scene.backend.post(path, { amount: 10 }, { 'idempotency-key': refundKey })
    expect([again.json.code, again.json.refund_id]).toEqual(['idempotency_key_expired', refund.json.id])
    const second = await scene.backend.post('/v1/runs', body, { 'idempotency-key': runKey })
    expect([second.json.code, second.json.run_id]).toEqual(['idempotency_key_expired', started.json.id])
    await scene.backend.post(`/v1/runs/${started.json.id}/finalize`)
  })

  it('goes in batches, and two sweepers share the work without waiting for each other', async () => {
    await scene.db.deleteFrom('attempts').where('key', 'like', 'old-%').execute()
    await sql`INSERT INTO attempts (tenant_id, key, kind, object_id, state, response_status, response_body, created_at, settled_at)
      SELECT 'ten_swept', 'old-' || n, 'refund', 'ref_' || n, 'settled', 201, '{}', now() - interval '90 hours', now() - interval '80 hours'
      FROM generate_series(1, 1200) n`.execute(scene.db)
    const first = await Promise.all([run(), run()])
    expect(first.every((swept) => swept <= 500)).toBe(true)
    let swept = first[0] + first[1]
    for (let round = 0; swept < 1200 && round < 10; round++)
      swept += (await Promise.all([run(), run()])).reduce((a, b) => a + b)
    expect(swept).toBe(1200)
    await scene.db.deleteFrom('attempts').where('tenant_id', '=', 'ten_swept').execute()
  })

  it('leaves alone what somebody has locked, and does not wait for it', async () => {
    const key = newKey()
    await scene.shop.checkout(key)
    await age(key, 100)
    await scene.db.transaction().execute(async (tx) => {
      await tx.selectFrom('attempts').select('key').where('key', '=', key).forUpdate().execute()
      expect(await run()).toBe(0)
    })
    expect(await run()).toBe(1)
  })

  it('finds what is old by its index, whatever else there is', async () => {
    await administer(scene.databaseUrl, 'ANALYZE attempts')
    const { rows } = await sql<{ 'QUERY PLAN': string }>`EXPLAIN SELECT tenant_id, key FROM attempts
      WHERE swept_at IS NULL AND created_at < now() - interval '72 hours' AND state = 'settled'
        AND settled_at < now() - interval '72 hours'
      ORDER BY created_at LIMIT 500 FOR NO KEY UPDATE SKIP LOCKED`.execute(scene.db)
    expect(rows.map((row) => row['QUERY PLAN']).join('\n')).toContain('attempts_unswept')
  })

  it('forgets notifications, jobs that are done and events for merchants in their time, and no dead job', async () => {
    await scene.shop.checkout(newKey())
    await runJobs(scene.service.deps)
    await sql`UPDATE jobs SET finished_at = finished_at - interval '8 days' WHERE state = 'done'`.execute(scene.db)
    const [dead] = await scene.db
      .selectFrom('jobs')
      .select(['topic', 'business_id'])
      .where('topic', '=', 'order_news')
      .limit(1)
      .execute()
    await scene.db
      .updateTable('jobs')
      .set({ state: 'dead' })
      .where('business_id', '=', dead?.business_id ?? '')
      .execute()
    await sql`UPDATE merchant_events SET created_at = created_at - interval '46 days'`.execute(scene.db)
    await sql`INSERT INTO provider_events (provider, event_id, type, livemode, created_at, object, readable, state, received_at)
      VALUES ('stripe', 'evt_old', 'x', false, now(), 'other', true, 'ignored', now() - interval '46 days'),
             ('stripe', 'evt_new', 'x', false, now(), 'other', true, 'ignored', now() - interval '44 days')`.execute(
      scene.db,
    )
    while ((await run()) > 0);
    const left = await scene.db
      .selectFrom('jobs')
      .select('business_id')
      .where('state', 'in', ['done', 'dead'])
      .execute()
    expect(left.map(({ business_id }) => business_id)).toEqual([dead?.business_id])
    expect(await scene.db.selectFrom('merchant_events').select('event_id').execute()).toEqual([])
    const events = await scene.db.selectFrom('provider_events').select('event_id').execute()
    expect(events).toEqual([{ event_id: 'evt_new' }])
    // For the books' own rules: news that has been spread long ago.
    await sql`INSERT INTO jobs (tenant_id, topic, business_id, state)
      SELECT tenant_id, 'order_news', order_id || ':' || status, 'done' FROM orders
      WHERE status NOT IN ('pending', 'requires_action', 'needs_reconcile') ON CONFLICT DO NOTHING`.execute(scene.db)
  })

  it('forgets calls to the provider and reports in their time, of what has ended; orders and ledger stay', async () => {
    const [ended, open] = [newKey(), newKey()]
    const paid = await scene.shop.checkout(ended)
    const waiting = await scene.shop.checkout(open, cart({ payment_method: 'pm_card_threeDSecure2Required' }))
    const oldest = 'rep_00000000000000000000000000'
    const running = 'rep_00000000000000000000000001'
    const newest = firstIdFrom('rep', new Date())
    await sql`INSERT INTO reports (tenant_id, report_id, period_from, period_to, compared_to, state)
      SELECT 'ten_demo', id, now() - interval '1 day', now(), now(), CASE id WHEN ${running} THEN 'running' ELSE 'done' END
      FROM unnest(${[oldest, running, newest]}::text[]) id`.execute(scene.db)
    await sql`INSERT INTO report_findings (tenant_id, report_id, subject, kind)
      SELECT 'ten_demo', report_id, 'pi_' || n, 'missing_here' FROM reports, generate_series(1, 600) n`.execute(
      scene.db,
    )

    while ((await run()) > 0);
    expect(await reports()).toEqual([running, newest])
    expect(await callsOf(paid.json.id)).toBeGreaterThan(0)

    const forgetful = await scene.start({ RECORDS_RETENTION_DAYS: '0' })
    while ((await sweep(forgetful.deps)) > 0);
    await forgetful.stop()
    expect(await reports()).toEqual([running])
    expect([await callsOf(paid.json.id), await callsOf(waiting.json.id)]).toEqual([0, 1])
    const story = await scene.admin.get(`/v1/admin/orders/${paid.json.id}`)
    expect(story.json).toMatchObject({ status: 'paid', provider_calls: [], ledger: [{ kind: 'capture' }] })
    expect((await scene.shop.checkout(ended)).text).toBe(paid.text)
    for (const table of ['reports', 'report_findings'] as const) await scene.db.deleteFrom(table).execute()
  })

  it('forgets the signing secret that was replaced, once it no longer signs', async () => {
    const put = () => scene.backend.put('/v1/webhook-endpoint', { url: 'https://shop.example/hook' })
    await put()
    const { secret } = (await put()).json
    const kept = () =>
      scene.db
        .selectFrom('webhook_endpoints')
        .select(['secret', 'previous_secret', 'previous_secret_until'])
        .executeTakeFirstOrThrow()
    expect(await run()).toBe(0)
    expect((await kept()).previous_secret).toMatch(/^whsec_/)
    await sql`UPDATE webhook_endpoints SET previous_secret_until = now()`.execute(scene.db)
    expect(await run()).toBe(1)
    expect(await kept()).toEqual({ secret, previous_secret: null, previous_secret_until: null })
    await scene.db.deleteFrom('webhook_endpoints').execute()
  })

  it('finds old calls to the provider by their key, however many there are', async () => {
    await sql`INSERT INTO provider_calls (tenant_id, order_id, operation, outcome, duration_ms, replayed, started_at)
      SELECT 'ten_demo', 'ord_7' || n, 'payment.create', 'succeeded', 1, false, now() FROM generate_series(1, 5000) n`.execute(
      scene.db,
    )
    await administer(scene.databaseUrl, 'ANALYZE')
    const { rows } = await sql<{ 'QUERY PLAN': string }>`EXPLAIN SELECT FROM tenants t CROSS JOIN LATERAL (
      SELECT c.call_id FROM provider_calls c WHERE c.tenant_id = t.tenant_id AND c.order_id < 'ord_0' AND c.started_at < now()
        AND EXISTS (SELECT FROM orders o WHERE o.tenant_id = c.tenant_id AND o.order_id = c.order_id
                      AND o.status IN ('paid', 'payment_failed', 'canceled'))
      ORDER BY c.order_id LIMIT 500 FOR UPDATE OF c SKIP LOCKED) old LIMIT 500`.execute(scene.db)
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
    expect(plan).toContain('provider_calls_pkey')
    expect(plan).not.toContain('Seq Scan on provider_calls')
    await scene.db.deleteFrom('provider_calls').where('order_id', 'like', 'ord_7%').execute()
  })

  it('runs in a worker process by itself', async () => {
    const key = newKey()
    await scene.shop.checkout(key)
    await age(key, 100)
    const worker = await scene.start({ ROLES: 'worker', SWEEP_INTERVAL_MS: '50' })
    await expect.poll(async () => (await attempt(key)).swept_at, { timeout: 30_000 }).not.toBeNull()
    await worker.stop()
  })
})
