/** The operator's API: what needs a person is found, every button works once and is kept, and tenants do not see each other. */
import { createHash } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { recoverOrders } from '../../src/workers/recover-orders.ts'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { makeDue } from '../support/aging.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import { type Client, cart, keys } from '../support/client.ts'
import { type MailServer, startMailServer } from '../support/mail-server.ts'
import { deliver, notification, providerObject } from '../support/notifications.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { chargedInDoubt, neverArrived, waitsForCustomer } from '../support/stuck.ts'

let scene: Scene
let mail: MailServer
let merchant: Receiver
let otherAdmin: Client
beforeAll(async () => {
  mail = await startMailServer()
  merchant = await startReceiver()
  scene = await startScene({
    settings: {
      CHECKOUT_BUDGET_MS: '4000',
      SMTP_URL: mail.url,
      MAIL_FROM: 'Demo shop <orders@shop.example>',
      MERCHANT_WEBHOOK_ALLOW_PRIVATE: 'true',
    },
  })
  await adminKey('ak_other', 'ten_other')
  otherAdmin = scene.admin.withKey('ak_other')
  await scene.books.webhooks({ drop: 1 })
})
beforeEach(() => scene.books.noFaults())
afterAll(async () => {
  await expectBooksInOrder(scene, { unfinished: true })
  await scene.stop()
  await mail.stop()
  await merchant.stop()
})

async function adminKey(key: string, tenantId: string): Promise<void> {
  const key_hash = createHash('sha256').update(key).digest()
  await scene.db
    .insertInto('api_keys')
    .values({ key_hash, tenant_id: tenantId, role: 'admin', label: 'other admin', revoked_at: null })
    .execute()
}

/** Its admin's key is named after the account. */
async function tenantWithAccount(account: string): Promise<void> {
  await scene.db
    .insertInto('tenants')
    .values({ tenant_id: `ten_${account}`, name: account, connected_account: account })
    .execute()
  await adminKey(`ak_${account}`, `ten_${account}`)
}

const work = () => runJobs(scene.service.deps)
const ids = (list: { json: { data: { id: string }[] } }) => list.json.data.map(({ id }) => id)

async function actions(query = ''): Promise<string[]> {
  const { json } = await scene.admin.get(`/v1/admin/audit${query}`)
  return json.data.map(({ action, outcome }: { action: string; outcome: string }) => `${action} ${outcome}`)
}

const gets = [
  '/v1/admin/orders',
  '/v1/admin/orders/ord_x',
  '/v1/admin/events',
  '/v1/admin/events/evt_x',
  '/v1/admin/jobs',
  '/v1/admin/jobs/a:b',
  '/v1/admin/emails',
  '/v1/admin/deliveries',
  '/v1/admin/reports',
  '/v1/admin/reports/rep_x',
  '/v1/admin/reports/rep_x/findings',
  '/v1/admin/audit',
  '/v1/admin/figures',
]
const posts = [
  '/v1/admin/orders/ord_x/reconcile',
  '/v1/admin/orders/ord_x/decide',
  '/v1/admin/events/evt_x/replay',
  '/v1/admin/jobs/a:b/requeue',
  '/v1/admin/jobs/a:b/discard',
  '/v1/admin/emails/ord_x:paid/sent',
  '/v1/admin/emails/ord_x:paid/send-again',
  '/v1/admin/merchant-events/evt_x/redeliver',
  '/v1/admin/reports',
]

describe('the operator’s API', () => {
  it.each(['storefront', 'backend'] as const)('is closed to the role %s and to nobody', async (role) => {
    for (const path of gets) expect((await scene.shop.withKey(keys[role]).get(path)).status).toBe(403)
    for (const path of posts) {
      expect((await scene.shop.withKey(keys[role]).post(path)).status).toBe(403)
      expect((await scene.shop.withKey('ak_test_none').post(path)).status).toBe(401)
    }
  })

  it('finds nothing where there is nothing, and keeps no line of that', async () => {
    const before = (await actions()).length
    for (const path of gets) {
      const { status } = await scene.admin.get(path)
      expect([path, status]).toEqual([path, path.includes('_x') || path.includes('a:b') ? 404 : 200])
    }
    for (const path of posts.filter((each) => !each.endsWith('reports'))) {
      const body = path.endsWith('decide') ? { outcome: 'canceled', reason: 'x' } : undefined
      expect([path, (await scene.admin.post(path, body)).status]).toEqual([path, 404])
    }
    expect((await actions()).length).toBe(before)
  })

  it('refuses what it does not know', async () => {
    for (const [path, body] of [
      ['/v1/admin/orders/ord_x/decide', { outcome: 'forgiven', reason: 'x' }],
      ['/v1/admin/orders/ord_x/decide', { outcome: 'canceled' }],
      ['/v1/admin/orders/ord_x/decide', { outcome: 'canceled', reason: '   ' }],
      ['/v1/admin/orders/ord_x/decide', { outcome: 'canceled', reason: 'x', force: true }],
      ['/v1/admin/orders/ord_x/reconcile', { force: true }],
      ['/v1/admin/orders/ord_x/reconcile?force=true', undefined],
    ] as const) {
      expect((await scene.admin.post(path, body)).json.code).toBe('invalid_request')
    }
    for (const query of ['?status=gone', '?limit=101', '?limit=0', '?flagged=yes', '?nothing=1', '?cursor=!']) {
      expect((await scene.admin.get(`/v1/admin/orders${query}`)).json.code).toBe('invalid_request')
    }
  })
})

describe('orders that need a person', () => {
  it('are found by status, reason, key, payment, customer and flag, page by page, with reason and age', async () => {
    const doubts = [await neverArrived(scene), await neverArrived(scene), await neverArrived(scene)]
    const key = newKey()
    const paid = (await scene.shop.checkout(key, cart({ customer: { email: 'grace@example.com' } }))).json
    const list = await scene.admin.get('/v1/admin/orders?status=needs_reconcile')
    expect(ids(list)).toEqual(doubts.map(({ id }) => id).reverse())
    expect(list.json.data[0]).toMatchObject({
      status: 'needs_reconcile',
      reconcile_reason: 'provider_error',
      attempt_key: doubts[2]?.key,
      status_since: expect.stringMatching(/^\d{4}-/),
      status_age_seconds: expect.any(Number),
      maybe_sent: true,
    })
    const first = await scene.admin.get('/v1/admin/orders?status=needs_reconcile&limit=2')
    expect(first.json.has_more).toBe(true)
    const second = await scene.admin.get(
      `/v1/admin/orders?status=needs_reconcile&limit=2&cursor=${first.json.next_cursor}`,
    )
    expect([...ids(first), ...ids(second)]).toEqual(ids(list))
    expect(second.json.has_more).toBe(false)

    for (const query of [
      `key=${encodeURIComponent(key)}`,
      `reference=${paid.payment.reference}`,
      'email=grace%40example.com',
    ]) {
      expect([query, ids(await scene.admin.get(`/v1/admin/orders?${query}`))]).toEqual([query, [paid.id]])
    }
    expect(ids(await scene.admin.get('/v1/admin/orders?flagged=true'))).toEqual(ids(list))
    expect(ids(await scene.admin.get('/v1/admin/orders?reason=provider_error'))).toEqual(ids(list))
    expect(ids(await scene.admin.get('/v1/admin/orders?email=nobody%40example.com'))).toEqual([])

    const refund = newKey()
    await scene.backend.post(`/v1/orders/${paid.id}/refunds`, { amount: 5 }, { 'idempotency-key': refund })
    expect(ids(await scene.admin.get(`/v1/admin/orders?key=${refund}`))).toEqual([paid.id])
    const { provider_refund_id: made } = await scene.db
      .selectFrom('refunds')
      .select('provider_refund_id')
      .where('attempt_key', '=', refund)
      .executeTakeFirstOrThrow()
    expect(ids(await scene.admin.get(`/v1/admin/orders?reference=${made}`))).toEqual([paid.id])
    // Whose payment it is, the provider knows.
    expect(ids(await otherAdmin.get(`/v1/admin/orders?reference=${paid.payment.reference}`))).toEqual([])
    expect(ids(await scene.admin.get('/v1/admin/orders?reference=pi_none'))).toEqual([])
    expect(ids(await scene.admin.get('/v1/admin/orders?reference=a%2Fb'))).toEqual([])
    await scene.books.fault({ method: 'GET', path: '/v1/payment_intents', fault: 'error_before', times: 1 })
    const unheard = await scene.admin.get(`/v1/admin/orders?reference=${paid.payment.reference}`)
    expect(unheard.json.code).toBe('provider_unavailable')
    expect(ids(await otherAdmin.get('/v1/admin/orders'))).toEqual([])
    for (const call of ['', '/reconcile']) {
      const path = `/v1/admin/orders/${paid.id}${call}`
      expect((await (call === '' ? otherAdmin.get(path) : otherAdmin.post(path))).status).toBe(404)
    }
  })

  it('tell their whole story, without digest, stored answer or secret', async () => {
    await scene.backend.put('/v1/webhook-endpoint', { url: merchant.url })
    const { id, key } = await chargedInDoubt(scene, { metadata: { note: 'gift' } })
    const [payment] = await scene.books.paymentsFor(key)
    const told = notification('payment_intent.succeeded', await providerObject(scene, `payment_intents/${payment?.id}`))
    await deliver(scene.service.url, told)
    await work()
    await scene.backend.post(
      `/v1/orders/${id}/refunds`,
      { amount: 5, reason: 'broken' },
      { 'idempotency-key': newKey() },
    )
    await work()
    const { json, text } = await scene.admin.get(`/v1/admin/orders/${id}`)
    expect(json).toMatchObject({
      id,
      status: 'partially_refunded',
      metadata: { note: 'gift' },
      customer: { email: 'ada@example.com', name: 'Ada' },
      attempt: { key, kind: 'checkout', state: 'settled', response_status: 201 },
      provider_events: [{ event_id: told.id, type: 'payment_intent.succeeded', state: 'done' }],
      transitions: [
        { from_status: 'needs_reconcile', to_status: 'paid', cause: 'notification', actor: told.id },
        { from_status: 'pending', to_status: 'needs_reconcile', cause: 'answer' },
      ],
      ledger: [
        { kind: 'refund', amount: 5 },
        { kind: 'capture', amount: 1250 },
      ],
      stock_movements: [{ kind: 'reserve', sku: 'mug', quantity: 1 }],
      refunds: [{ amount: 5, reason: 'broken', status: 'succeeded' }],
      disputes: [],
      hold_ending: null,
      run: null,
      audit: [],
    })
    expect(json.provider_calls.length).toBeGreaterThan(1)
    expect(json.jobs.map(({ topic }: { topic: string }) => topic).sort()).toEqual([
      'deliver_event',
      'deliver_event',
      'order_news',
      'order_news',
      'provider_event',
      'send_email',
      'send_email',
    ])
    expect(json.emails.map(({ state }: { state: string }) => state)).toEqual(['sent', 'sent'])
    expect(json.deliveries.map(({ delivered }: { delivered: boolean }) => delivered)).toEqual([true, true])
    expect(json.merchant_events).toHaveLength(2)
    for (const secret of ['digest', 'response_body', 'client_secret', 'whsec']) expect(text).not.toContain(secret)
    await scene.backend.delete('/v1/webhook-endpoint')
  })
})

describe('provider events', () => {
  it('are listed with filters and replayed under their own id', async () => {
    const { id, key } = await chargedInDoubt(scene)
    const [payment] = await scene.books.paymentsFor(key)
    const intent = await providerObject(scene, `payment_intents/${payment?.id}`)
    const told = notification('payment_intent.succeeded', intent)
    const strange = notification('payment_intent.succeeded', { ...intent, id: 'pi_strange', metadata: {} })
    await deliver(scene.service.url, told)
    await deliver(scene.service.url, strange)
    const waiting = await scene.admin.get('/v1/admin/events?state=waiting')
    expect(ids(waiting)).toEqual([told.id])
    expect(waiting.json.data[0]).toMatchObject({ about: 'payment_intent', order_id: id, amount: 1250 })
    const replay = await scene.admin.post(`/v1/admin/events/${told.id}/replay`)
    expect([replay.status, replay.json.state, replay.json.reason]).toEqual([200, 'done', 'settled'])
    expect((await scene.admin.post(`/v1/admin/events/${told.id}/replay`)).json.reason).toBe('nothing_new')
    await work()
    expect(await actions(`?order_id=${id}`)).toEqual(['replay done', 'replay done'])
    expect(ids(await scene.admin.get(`/v1/admin/events?order_id=${id}&type=payment_intent.succeeded`))).toEqual([
      told.id,
    ])
    expect(ids(await scene.admin.get('/v1/admin/events?unnamed=true'))).toEqual([strange.id])
    expect((await scene.admin.get(`/v1/admin/events/${strange.id}`)).json.state).toBe('foreign')
    expect(ids(await otherAdmin.get('/v1/admin/events'))).toEqual([])
    const gone = notification('payment_intent.succeeded', { ...intent, metadata: { tenant: 'ten_gone', order: id } })
    await deliver(scene.service.url, gone)
    expect(ids(await scene.admin.get('/v1/admin/events?state=waiting&unnamed=true'))).toEqual([gone.id])
    await work()
    expect(ids(await scene.admin.get('/v1/admin/events?state=foreign&unnamed=true'))).toEqual([gone.id, strange.id])
    expect((await scene.admin.post(`/v1/admin/events/${gone.id}/replay`)).json.reason).toBe('order_unknown')
    for (const path of [`/v1/admin/events/${told.id}/replay`]) expect((await otherAdmin.post(path)).status).toBe(404)
    expect(await scene.db.selectFrom('ledger_transfers').select('kind').where('order_id', '=', id).execute()).toEqual([
      { kind: 'capture' },
    ])
  })

  it('that cannot be replayed now are told so, and that is kept too', async () => {
    const { key, id } = await chargedInDoubt(scene)
    const [payment] = await scene.books.paymentsFor(key)
    const told = notification(
      'payment_intent.processing',
      await providerObject(scene, `payment_intents/${payment?.id}`),
    )
    await deliver(scene.service.url, told)
    await scene.books.fault({ method: 'GET', path: '/v1/payment_intents', fault: 'error_before' })
    expect((await scene.admin.post(`/v1/admin/events/${told.id}/replay`)).json.code).toBe('provider_unavailable')
    await scene.books.noFaults()
    await work()
    expect(await actions(`?order_id=${id}`)).toEqual(['replay provider_unavailable'])
  })
})

describe('jobs', () => {
  it('that died are listed, run again under their own id, or given up', async () => {
    const { id } = (await scene.shop.checkout(newKey())).json
    const job = `order_news:${id}:paid`
    await scene.db
      .updateTable('jobs')
      .set({ state: 'dead', attempts: 36, last_error: 'unexpected_error', finished_at: new Date() })
      .where('business_id', '=', `${id}:paid`)
      .execute()
    const dead = await scene.admin.get('/v1/admin/jobs?state=dead')
    expect(dead.json.data).toMatchObject([{ id: job, state: 'dead', attempts: 36, last_error: 'unexpected_error' }])
    expect(ids(await otherAdmin.get('/v1/admin/jobs?state=dead'))).toEqual([])
    expect((await otherAdmin.post(`/v1/admin/jobs/${job}/requeue`)).status).toBe(404)

    expect((await scene.admin.post(`/v1/admin/jobs/${job}/discard`)).json.state).toBe('discarded')
    const again = await scene.admin.post(`/v1/admin/jobs/${job}/discard`)
    expect([again.json.code, again.json.state]).toEqual(['job_state_conflict', 'discarded'])
    expect((await scene.admin.post(`/v1/admin/jobs/${job}/requeue`)).json).toMatchObject({
      state: 'ready',
      attempts: 0,
    })
    await work()
    await scene.admin.post(`/v1/admin/jobs/${job}/requeue`)
    await work()
    expect((await scene.admin.get(`/v1/admin/jobs/${job}`)).json.state).toBe('done')
    expect((await scene.admin.post(`/v1/admin/jobs/${job}/discard`)).json.code).toBe('job_state_conflict')
    // However often it ran, its effects are there once.
    const emails = await scene.db.selectFrom('emails').select('kind').where('order_id', '=', id).execute()
    expect(emails).toEqual([{ kind: 'paid' }])
    expect(await actions(`?order_id=${id}`)).toEqual(['requeue_job done', 'requeue_job done', 'discard_job done'])
  })

  it('of events that name no tenant of ours are for those whose account they are of, until they are about a tenant', async () => {
    const { id, key } = await chargedInDoubt(scene)
    const [payment] = await scene.books.paymentsFor(key)
    const intent = await providerObject(scene, `payment_intents/${payment?.id}`)
    const unnamed = notification('charge.refunded', { object: 'charge', id: 'ch_x', payment_intent: 'pi_x' })
    const gone = notification('payment_intent.succeeded', { ...intent, metadata: { tenant: 'ten_gone', order: id } })
    const elsewhere = notification('payment_intent.succeeded', { ...intent, metadata: {} }, { account: 'acct_other' })
    const events = [unnamed, gone, elsewhere]
    for (const event of events) expect((await deliver(scene.service.url, event)).status).toBe(200)
    await scene.db
      .updateTable('jobs')
      .set({ state: 'dead', attempts: 36, last_error: 'not_reached', finished_at: new Date() })
      .where(
        'business_id',
        'in',
        events.map((event) => event.id),
      )
      .execute()
    const list = '/v1/admin/jobs?state=dead&unnamed=true'
    const jobIds = [unnamed, gone].map((event) => `provider_event:${event.id}`)
    expect(ids(await scene.admin.get(list)).sort()).toEqual(jobIds.toSorted())
    expect(ids(await scene.admin.get('/v1/admin/jobs?state=dead'))).toEqual([])
    const job = `/v1/admin/jobs/provider_event:${elsewhere.id}`
    expect((await scene.admin.get(job)).status).toBe(404)
    expect((await scene.admin.post(`${job}/discard`)).status).toBe(404)

    await tenantWithAccount('acct_other')
    const owner = scene.admin.withKey('ak_acct_other')
    expect(ids(await owner.get(list))).toEqual([`provider_event:${elsewhere.id}`])
    expect((await owner.post(`/v1/admin/jobs/${jobIds[0]}/requeue`)).status).toBe(404)
    expect((await owner.post(`${job}/discard`)).json.state).toBe('discarded')

    expect((await scene.admin.get(`/v1/admin/jobs/${jobIds[0]}`)).json.last_error).toBe('not_reached')
    expect((await scene.admin.post(`/v1/admin/jobs/${jobIds[0]}/requeue`)).json.state).toBe('ready')
    expect((await scene.admin.post(`/v1/admin/jobs/${jobIds[1]}/discard`)).json.state).toBe('discarded')
    await work()
    expect((await scene.admin.get(`/v1/admin/jobs/${jobIds[0]}`)).json.state).toBe('done')
    expect(ids(await scene.admin.get(list))).toEqual([])
    expect((await actions()).slice(0, 2)).toEqual(['discard_job done', 'requeue_job done'])
    // One that turned out to be about another tenant is that tenant's.
    await scene.db
      .updateTable('provider_events')
      .set({ tenant_id: 'ten_other' })
      .where('event_id', '=', unnamed.id)
      .execute()
    expect((await scene.admin.get(`/v1/admin/jobs/${jobIds[0]}`)).status).toBe(404)
    expect((await otherAdmin.get(`/v1/admin/jobs/${jobIds[0]}`)).status).toBe(200)
  })

  it('that run this moment are not touched', async () => {
    const { id } = (await scene.shop.checkout(newKey())).json
    const lease = { lease_token: crypto.randomUUID(), run_at: new Date(Date.now() + 60_000) }
    await scene.db.updateTable('jobs').set(lease).where('business_id', '=', `${id}:paid`).execute()
    for (const button of ['requeue', 'discard']) {
      expect((await scene.admin.post(`/v1/admin/jobs/order_news:${id}:paid/${button}`)).json).toMatchObject({
        code: 'job_state_conflict',
        running: true,
      })
    }
    expect(await actions(`?order_id=${id}`)).toEqual([])
    await scene.db
      .updateTable('jobs')
      .set({ lease_token: null, run_at: new Date() })
      .where('business_id', '=', `${id}:paid`)
      .execute()
    await work()
  })
})

describe('emails in doubt', () => {
  it('are decided by a person: it arrived, or it is sent again', async () => {
    await work()
    mail.faults.push('vanish', 'vanish')
    const [one, two] = [(await scene.shop.checkout(newKey())).json.id, (await scene.shop.checkout(newKey())).json.id]
    await work()
    const list = await scene.admin.get('/v1/admin/emails')
    expect(ids(list)).toEqual([`${one}:paid`, `${two}:paid`])
    expect(list.json.data[0].state).toBe('uncertain')
    expect(ids(await otherAdmin.get('/v1/admin/emails'))).toEqual([])
    expect((await otherAdmin.post(`/v1/admin/emails/${one}:paid/sent`)).status).toBe(404)
    expect((await scene.admin.post(`/v1/admin/emails/${one}:paid/sent`)).json.state).toBe('sent')
    expect((await scene.admin.post(`/v1/admin/emails/${one}:paid/sent`)).json.code).toBe('email_state_conflict')
    mail.received.length = 0
    mail.faults.length = 0
    expect((await scene.admin.post(`/v1/admin/emails/${two}:paid/send-again`)).json.state).toBe('waiting')
    await work()
    expect(mail.received).toHaveLength(1)
    expect(mail.received[0]?.text).toContain(two)
    expect(ids(await scene.admin.get('/v1/admin/emails'))).toEqual([])
    expect(await actions(`?order_id=${one}`)).toEqual(['email_was_sent done'])
    expect(await actions(`?order_id=${two}`)).toEqual(['send_email_again done'])
  })
})

describe('deliveries to merchants', () => {
  it('that failed are listed, and their event is delivered again under its id', async () => {
    await work()
    await scene.backend.put('/v1/webhook-endpoint', { url: merchant.url })
    merchant.answer((_post, response) => void response.writeHead(500).end())
    const { id } = (await scene.shop.checkout(newKey())).json
    await work()
    const failed = await scene.admin.get('/v1/admin/deliveries?failed=true')
    expect(failed.json.data[0]).toMatchObject({ order_id: id, delivered: false, http_status: 500, attempt: 1 })
    const event = failed.json.data[0].event_id
    expect((await otherAdmin.post(`/v1/admin/merchant-events/${event}/redeliver`)).status).toBe(404)
    merchant.answer((_post, response) => void response.writeHead(204).end())
    merchant.received.length = 0
    expect((await scene.admin.post(`/v1/admin/merchant-events/${event}/redeliver`)).json).toMatchObject({
      id: event,
      type: 'order.paid',
    })
    await work()
    expect(merchant.received.map(({ headers }) => headers['webhook-id'])).toEqual([event])
    const all = await scene.admin.get(`/v1/admin/deliveries?event_id=${event}`)
    expect(all.json.data.map(({ delivered }: { delivered: boolean }) => delivered)).toEqual([true, false])
    expect(await actions(`?order_id=${id}`)).toEqual(['redeliver done'])
  })

  it('of an event that had nowhere to go begin when a person asks for it', async () => {
    await scene.db
      .updateTable('webhook_endpoints')
      .set({ disabled_at: new Date(), disabled_reason: 'failing' })
      .execute()
    const { id } = (await scene.shop.checkout(newKey())).json
    await work()
    const [event] = (await scene.admin.get(`/v1/admin/orders/${id}`)).json.merchant_events
    await scene.backend.put('/v1/webhook-endpoint', { url: merchant.url })
    merchant.received.length = 0
    await scene.admin.post(`/v1/admin/merchant-events/${event.event_id}/redeliver`)
    await work()
    expect(merchant.received.map(({ headers }) => headers['webhook-id'])).toEqual([event.event_id])
    await scene.backend.delete('/v1/webhook-endpoint')
  })
})

describe('the audit log', () => {
  it('names who did it, and is the tenant’s own', async () => {
    const { id } = await waitsForCustomer(scene)
    const reply = await scene.admin.post(`/v1/admin/orders/${id}/decide`, {
      outcome: 'canceled',
      reason: 'asked for it',
    })
    const { json } = await scene.admin.get('/v1/admin/audit?action=decide_canceled&limit=1')
    expect(json.data[0]).toMatchObject({
      object: 'audit_entry',
      actor: 'demo',
      key_id: createHash('sha256').update(keys.admin).digest('hex').slice(0, 16),
      request_id: reply.headers.get('x-request-id'),
      target: { type: 'order', id },
      reason: 'asked for it',
      outcome: 'canceled',
      created_at: expect.any(String),
      ended_at: expect.any(String),
    })
    expect((await otherAdmin.get('/v1/admin/audit')).json.data).toEqual([])
    const first = await scene.admin.get('/v1/admin/audit?limit=3')
    const second = await scene.admin.get(`/v1/admin/audit?limit=100&cursor=${first.json.next_cursor}`)
    const all = await scene.admin.get('/v1/admin/audit?limit=100')
    expect([...ids(first), ...ids(second)].slice(0, 100)).toEqual(ids(all))
  })
})

describe('recovery, a repeat, an operator and a notification, all at once on one order', () => {
  it('make one transition, one story, one effect, round after round', async () => {
    const rounds = 8
    const winners = new Set<string>()
    for (let round = 0; round < rounds; round++) {
      const { id, key } = await chargedInDoubt(scene)
      const [payment] = await scene.books.paymentsFor(key)
      const told = notification(
        'payment_intent.succeeded',
        await providerObject(scene, `payment_intents/${payment?.id}`),
      )
      await deliver(scene.service.url, told)
      await makeDue(scene.db, key)
      const [failed, , , repeat] = await Promise.all([
        scene.admin.post(`/v1/admin/orders/${id}/decide`, { outcome: 'payment_failed', reason: 'impatient' }),
        scene.admin.post(`/v1/admin/orders/${id}/reconcile`),
        scene.admin.post(`/v1/admin/events/${told.id}/replay`),
        scene.shop.checkout(key, cart()),
        recoverOrders(scene.service.deps),
        work(),
      ])
      expect([failed.status, failed.json.code]).toEqual([409, 'provider_disagrees'])
      expect([201, 202]).toContain(repeat.status)
      const { json } = await scene.admin.get(`/v1/admin/orders/${id}`)
      expect(json.status).toBe('paid')
      const paid = json.transitions.filter(({ to_status }: { to_status: string }) => to_status === 'paid')
      expect(paid).toHaveLength(1)
      winners.add(paid[0].cause)
      expect(['recovery', 'repeat', 'operator', 'notification']).toContain(paid[0].cause)
      expect(json.ledger.map(({ kind }: { kind: string }) => kind)).toEqual(['capture'])
      expect(json.jobs.filter(({ topic }: { topic: string }) => topic === 'order_news').length).toBe(1)
      expect(json.audit.map(({ outcome }: { outcome: string }) => outcome).sort()).toEqual([
        'done',
        'paid',
        'provider_disagrees',
      ])
      expect(await scene.books.paymentsFor(key)).toMatchObject([{ amount_received: 1250, refunds: [] }])
    }
    expect(winners.size).toBeGreaterThan(0)
  })
})
