/** A person is forgotten: everywhere, once their money is settled, and nothing else of the books changes. */
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { armCheckpoints } from '../../src/runtime/checkpoint.ts'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { sweep } from '../../src/workers/sweep.ts'
import { expire, orderOf } from '../support/aging.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import { Client, cart, keys, type Reply } from '../support/client.ts'
import { type MailServer, startMailServer } from '../support/mail-server.ts'
import { deliver, notification, providerObject } from '../support/notifications.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { activeRun, finalize, hold, use } from '../support/runs.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { type ServiceProcess, startServiceProcess } from '../support/service-process.ts'
import { until } from '../support/until.ts'

let scene: Scene
let mail: MailServer
let merchant: Receiver
let service: ServiceProcess
beforeAll(async () => {
  mail = await startMailServer()
  merchant = await startReceiver()
  scene = await startScene()
  service = await startServiceProcess(
    scene.env({
      ROLES: 'api,worker',
      LOG_LEVEL: 'trace',
      SMTP_URL: mail.url,
      MAIL_FROM: 'Demo shop <orders@shop.example>',
      MERCHANT_WEBHOOK_ALLOW_PRIVATE: 'true',
      RECONCILE_AFTER_MS: '200',
      REPLAY_CACHE_SECONDS: '0',
    }),
  )
})
afterAll(async () => {
  await service.stop()
  await expectBooksInOrder(scene, { unfinished: true })
  await scene.stop()
  await merchant.stop()
  await mail.stop()
})

/** Every table and column that holds the text, whatever its case, also within bytes; whole rows are searched. */
async function whereIs(marker: string): Promise<string[]> {
  const { rows: columns } = await sql<{ table_name: string; column_name: string }>`
    SELECT table_name, column_name FROM information_schema.columns c
    JOIN information_schema.tables t USING (table_schema, table_name)
    WHERE table_schema = 'public' AND table_type = 'BASE TABLE' ORDER BY 1, 2`.execute(scene.db)
  expect(columns.length).toBeGreaterThan(150)
  const found: string[] = []
  for (const { table_name, column_name } of columns) {
    const column = sql`lower(${sql.ref(column_name)}::text)`
    const { rows } = await sql`SELECT FROM ${sql.table(table_name)}
      WHERE strpos(${column}, ${marker}) > 0
        OR strpos(${column}, ${Buffer.from(marker).toString('hex')}) > 0 LIMIT 1`.execute(scene.db)
    if (rows.length > 0) found.push(`${table_name}.${column_name}`)
  }
  return found
}

function erase(customerId: string, key: string = keys.backend): Promise<Reply> {
  return new Client(service.url, key).delete(`/v1/customers/${customerId}/personal-data`)
}

function customerOf(reply: Reply): string {
  return reply.json.customer_id
}

describe('erasure', () => {
  it('leaves no trace of a person in any column of any table, nor in the log', async () => {
    const mark = 'zq7marker'
    const person = { email: `${mark}.ada@example.com`, name: `${mark} Lovelace` }
    const address = {
      name: `${mark} Lovelace`,
      line1: `${mark} Street 1`,
      line2: `${mark} floor`,
      city: `${mark}ville`,
      postal_code: mark,
      state: `${mark} shire`,
      country: 'GB',
    }
    const body = (more: Record<string, unknown> = {}) =>
      cart({ customer: person, shipping_address: address, metadata: { [`k_${mark}`]: `v ${mark}` }, ...more })
    const shop = service.shop
    const backend = shop.withKey(keys.backend)
    const admin = shop.withKey(keys.admin)
    expect((await backend.put('/v1/webhook-endpoint', { url: merchant.url })).status).toBe(200)

    const key = newKey()
    const paid = await shop.checkout(key, body())
    expect(paid.status).toBe(201)
    const customer = (await scene.backend.get(`/v1/orders/${paid.json.id}`)).json.customer_id
    expect((await shop.checkout(newKey(), body({ payment_method: 'pm_card_chargeDeclined' }))).status).toBe(402)
    expect((await shop.checkout(newKey(), body({ items: [{ sku: 'none', quantity: 1 }] }))).status).toBe(422)
    const refundKey = newKey()
    const refundBody = { amount: 100, reason: `${mark} broke it` }
    const refundPath = `/v1/orders/${paid.json.id}/refunds`
    const refunded = await backend.post(refundPath, refundBody, { 'idempotency-key': refundKey })
    expect(refunded.status).toBe(201)
    // A merchant may write anything into a refund's reason, also one that surely was not sent.
    await scene.books.fault({ method: 'POST', path: '/v1/refunds', fault: 'rate_limit' })
    const unsentKey = newKey()
    expect((await backend.post(refundPath, refundBody, { 'idempotency-key': unsentKey })).status).toBe(503)
    await scene.books.noFaults()
    const held = await shop.checkout(newKey(), body({ capture: 'manual' }))
    await backend.post(`/v1/orders/${held.json.id}/capture`, { amount: 500 })
    const run = await activeRun(backend, newKey(), hold({ customer: person }))
    await use(backend, run, 'input_tokens', 1_000_000)
    await finalize(backend, run)
    await scene.db
      .updateTable('orders')
      .set({ reconcile_reason: 'shown' })
      .where('order_id', '=', paid.json.id)
      .execute()
    const decision = { outcome: 'acknowledge', reason: `${mark} called` }
    expect((await admin.post(`/v1/admin/orders/${paid.json.id}/decide`, decision)).status).toBe(200)
    expect((await admin.get(`/v1/admin/orders?email=${encodeURIComponent(person.email)}`)).json.data).toHaveLength(4)
    // The provider's own notifications may name anybody.
    const payment = await providerObject(scene, `payment_intents/${paid.json.payment.reference}`)
    const told = notification('payment_intent.succeeded', {
      ...payment,
      receipt_email: person.email,
      description: mark,
      shipping: { name: person.name, address },
    })
    expect((await deliver(service.url, told)).status).toBe(200)
    await until(() => mail.received.some(({ to }) => to.includes(person.email)), { what: 'the confirmation email' })
    await until(() => merchant.received.some(({ body }) => body.includes('order.refunded')), { what: 'the news' })
    const idle = () => scene.db.selectFrom('jobs').select('topic').where('state', '=', 'ready').execute()
    await until(async () => (await idle()).length === 0, { what: 'all jobs to be done' })
    await admin.post('/v1/admin/reports', {
      from: new Date(Date.now() - 3_600_000).toISOString(),
      to: new Date().toISOString(),
    })

    expect(await whereIs(mark)).toEqual(
      [
        'audit_entries.reason',
        'customers.email',
        'customers.name',
        'orders.metadata',
        'orders.shipping_address',
        'refunds.reason',
        'attempts.response_body',
      ].sort(),
    )
    const ledger = await backend.get('/v1/ledger/transfers')

    const reply = await erase(customer)
    expect([reply.status, reply.json]).toEqual([
      200,
      { object: 'erasure', customer_id: customer, status: 'completed', open_orders: [] },
    ])
    expect(await whereIs(mark)).toEqual([])
    expect(service.log.filter((line) => line.toLowerCase().includes(mark))).toEqual([])
    expect(service.log.length).toBeGreaterThan(15)

    // Digests are made from personal data too.
    const attempts = await scene.db
      .selectFrom('attempts')
      .select(['digest', 'digest_tags', 'response_body', 'swept_at'])
      .where('tenant_id', '=', 'ten_demo')
      .execute()
    expect(attempts.length).toBe(6)
    for (const attempt of attempts) {
      expect(attempt).toEqual({ digest: null, digest_tags: null, response_body: null, swept_at: expect.any(Date) })
    }
    // Orders and ledger stay.
    expect((await backend.get('/v1/ledger/transfers')).text).toBe(ledger.text)
    expect((await backend.get(`/v1/orders/${paid.json.id}`)).json).toMatchObject({ total: 1250, metadata: {} })

    // A very late repeat finds that it was done, and does nothing again.
    const repeat = await shop.checkout(key, body())
    expect([repeat.status, repeat.json.code, repeat.json.order_id]).toEqual([
      409,
      'idempotency_key_expired',
      paid.json.id,
    ])
    expect(await scene.books.paymentsFor(key)).toHaveLength(1)
    for (const each of [refundKey, unsentKey]) {
      expect((await backend.post(refundPath, refundBody, { 'idempotency-key': each })).json.code).toBe(
        'idempotency_key_expired',
      )
    }
    const audit = await admin.get(`/v1/admin/audit?target=${customer}`)
    expect(audit.json.data).toMatchObject([{ action: 'erase_personal_data', outcome: 'requested', reason: null }])

    // Again is the same, and the person may come back as somebody new.
    expect((await erase(customer)).json.status).toBe('completed')
    const back = await shop.checkout(newKey(), cart({ customer: person }))
    expect(back.status).toBe(201)
    expect(customerOf(back)).not.toBe(customer)
    expect((await erase(customerOf(back))).json.status).toBe('completed')
    expect(await whereIs(mark)).toEqual([])
  })

  it('lets open money keep its data until it has settled, and then follows by itself', async () => {
    const mark = 'zq8marker'
    const body = cart({
      customer: { email: `${mark}@example.com` },
      payment_method: 'pm_card_threeDSecure2Required',
      metadata: { note: mark },
    })
    const key = newKey()
    const open = await service.shop.checkout(key, body)
    const done = await service.shop.checkout(newKey(), { ...body, payment_method: 'pm_card_visa' })
    expect([open.status, done.status]).toEqual([202, 201])
    const customer = customerOf(open)
    const reply = await erase(customer)
    expect([reply.status, reply.json]).toMatchObject([202, { status: 'waiting', open_orders: [open.json.id] }])
    const metadata = async () =>
      (
        await scene.db
          .selectFrom('orders')
          .select(['order_id', 'metadata'])
          .where('customer_id', '=', customer)
          .orderBy('order_id')
          .execute()
      ).map((order) => order.metadata)
    expect(await metadata()).toEqual([{ note: mark }, null])
    // The repeat of an open attempt is still told where it stands.
    expect((await service.shop.checkout(key, body)).json.status).toBe('requires_action')

    await scene.books.act(open.json.payment.reference, 'succeed')
    await until(async () => (await orderOf(scene.db, key)).status === 'paid', { what: 'the order to be paid' })
    await until(
      () => mail.received.some(({ to, text }) => to.includes(`${mark}@example.com`) && text.includes(open.json.id)),
      {
        what: 'its email',
      },
    )
    await lookAgain()
    await sweepAll()
    expect(await whereIs(mark)).toEqual([])
    const wish = () =>
      scene.db.selectFrom('erasures').selectAll().where('customer_id', '=', customer).executeTakeFirstOrThrow()
    expect((await wish()).completed_at).toBeInstanceOf(Date)

    // One more look, for what was claimed at the same moment; then the wish rests.
    await scene.db
      .updateTable('orders')
      .set({ metadata: JSON.stringify({ late: mark }) })
      .where('attempt_key', '=', key)
      .execute()
    await scene.db
      .updateTable('erasures')
      .set({ completed_at: sql`completed_at - interval '3 minutes'` })
      .where('customer_id', '=', customer)
      .execute()
    await lookAgain()
    await sweepAll()
    expect(await whereIs(mark)).toEqual([])
    expect((await wish()).next_look_at).toBeNull()
  })

  it('is done anew, by itself, for what is written about the person afterwards', async () => {
    const mark = 'zqdmarker'
    const paid = await scene.shop.checkout(newKey(), cart({ customer: { email: 'late@example.com' } }))
    const customer = customerOf(paid)
    const path = `/v1/orders/${paid.json.id}/refunds`
    const refund = (amount: number) =>
      scene.backend.post(path, { amount, reason: `${mark} called` }, { 'idempotency-key': newKey() })
    const decide = () =>
      scene.admin.post(`/v1/admin/orders/${paid.json.id}/decide`, { outcome: 'acknowledge', reason: `${mark} wrote` })
    expect((await erase(customer)).json.status).toBe('completed')
    const rest = () =>
      scene.db
        .updateTable('erasures')
        .set({ completed_at: new Date(0), next_look_at: null })
        .where('customer_id', '=', customer)
        .execute()

    await rest()
    expect((await refund(10)).json.reason).toContain(mark)
    await sweepAll()
    expect(await whereIs(mark)).toEqual([])

    await rest()
    await scene.db
      .updateTable('orders')
      .set({ reconcile_reason: 'shown' })
      .where('order_id', '=', paid.json.id)
      .execute()
    expect((await decide()).status).toBe(200)
    await sweepAll()
    expect(await whereIs(mark)).toEqual([])

    // Also what comes while the last look is under way and has passed the order.
    let late: Promise<Reply> | undefined
    armCheckpoints(async (point) => {
      if (point === 'erasure.batch_erased' && late === undefined) {
        late = refund(20)
        await late
      }
    })
    try {
      await scene.db
        .updateTable('erasures')
        .set({ completed_at: new Date(0), next_look_at: new Date(0) })
        .where('customer_id', '=', customer)
        .execute()
      await sweepAll()
    } finally {
      armCheckpoints(undefined)
    }
    expect((await late)?.status).toBe(201)
    await lookAgain()
    await sweepAll()
    expect(await whereIs(mark)).toEqual([])
  })

  it('waits for a refund that is in doubt', async () => {
    const mark = 'zq9marker'
    const paid = await scene.shop.checkout(newKey(), cart({ customer: { email: `${mark}@example.com` } }))
    await scene.db
      .insertInto('refunds')
      .values({
        tenant_id: 'ten_demo',
        refund_id: 'ref_in_doubt',
        order_id: paid.json.id,
        attempt_key: null,
        amount: 10,
        currency: 'EUR',
        reason: mark,
        status: 'pending',
        provider_refund_id: null,
        last_send_before: new Date(),
        next_ask_at: new Date(Date.now() + 3_600_000),
      })
      .execute()
    expect((await erase(customerOf(paid))).json.status).toBe('waiting')
    await scene.db.deleteFrom('refunds').where('refund_id', '=', 'ref_in_doubt').execute()
    expect((await erase(customerOf(paid))).json.status).toBe('completed')
    expect(await whereIs(mark)).toEqual([])
  })

  it('that an email waits for skips it', async () => {
    const mark = 'zqamarker'
    mail.faults.push({ refuse: 450 })
    const paid = await service.shop.checkout(newKey(), cart({ customer: { email: `${mark}@example.com` } }))
    await until(() => mail.faults.length === 0, { what: 'the mail server to refuse for now' })
    await erase(customerOf(paid))
    const row = () => scene.db.selectFrom('emails').selectAll().where('order_id', '=', paid.json.id).executeTakeFirst()
    await until(
      async () => {
        await scene.db
          .updateTable('jobs')
          .set({ run_at: new Date(0) })
          .where('topic', '=', 'send_email')
          .where('state', '=', 'ready')
          .execute()
        return (await row())?.state === 'skipped'
      },
      { what: 'the email to be skipped' },
    )
    expect((await row())?.reason).toBe('no_address')
    expect(mail.received.filter(({ to }) => to.includes(`${mark}@example.com`))).toEqual([])
  })

  it('is for the tenant’s own customers and for its backend alone', async () => {
    const paid = await scene.shop.checkout(newKey())
    const customer = customerOf(paid)
    expect((await erase(customer, keys.otherBackend)).status).toBe(404)
    expect((await erase('cus_none')).status).toBe(404)
    expect((await erase(customer, keys.storefront)).status).toBe(403)
    expect((await erase(customer, keys.admin)).status).toBe(403)
    expect(
      (await scene.db.selectFrom('customers').select('email').where('customer_id', '=', customer).executeTakeFirst())
        ?.email,
    ).toBe('ada@example.com')
  })

  it('while the same person buys loses no order and leaves nothing behind', async () => {
    const mark = 'zqbmarker'
    const body = cart({ customer: { email: `${mark}@example.com` }, metadata: { note: mark } })
    const first = await service.shop.checkout(newKey(), body)
    const customers = new Set([customerOf(first)])
    for (let round = 0; round < 5; round++) {
      const replies = await Promise.all([
        ...Array.from({ length: 6 }, () => service.shop.checkout(newKey(), body)),
        ...[...customers].map((id) => erase(id)),
      ])
      expect(replies.filter(({ status }) => status >= 500)).toEqual([])
      for (const reply of replies) if (reply.json.object === 'order') customers.add(customerOf(reply))
    }
    for (const id of customers) expect((await erase(id)).json.status).toBe('completed')
    expect(await whereIs(mark)).toEqual([])
  })

  it('of an order that expires unpaid is carried out then', async () => {
    const mark = 'zqcmarker'
    const key = newKey()
    const open = await service.shop.checkout(
      key,
      cart({ customer: { email: `${mark}@example.com` }, payment_method: 'pm_card_threeDSecure2Required' }),
    )
    expect((await erase(customerOf(open))).json.status).toBe('waiting')
    await expire(scene.db, key)
    await until(async () => (await orderOf(scene.db, key)).status === 'canceled', { what: 'the order to expire' })
    await runJobs(scene.service.deps)
    await lookAgain()
    await sweepAll()
    expect(await whereIs(mark)).toEqual([])
  })
})

/** As the worker does, until nothing is left to do. */
async function sweepAll(): Promise<void> {
  while ((await sweep(scene.service.deps)) > 0);
}

/** The pause before the next look at wishes is over. */
async function lookAgain(): Promise<void> {
  await scene.db
    .updateTable('erasures')
    .set({ next_look_at: new Date(0) })
    .where('next_look_at', 'is not', null)
    .execute()
}
