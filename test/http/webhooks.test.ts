import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Service } from '../../src/service.ts'
import { cart } from '../support/client.ts'
import { createTestDatabase } from '../support/database.ts'
import { deliver, type Notification, notification, postRaw, signatureOf } from '../support/notifications.ts'
import { startProxy } from '../support/proxy.ts'
import { newKey, type Scene, startScene, webhookSecret } from '../support/scene.ts'
import { until } from '../support/until.ts'

const oldSecret = 'whsec_before_rotation'
let scene: Scene
let other: Service
let url: string

beforeAll(async () => {
  const settings = { STRIPE_WEBHOOK_SECRET: `${webhookSecret}, ${oldSecret}` }
  scene = await startScene({ settings })
  other = await scene.start(settings)
  url = scene.service.url as string
})
afterAll(() => scene.stop())

const unpaid = (): Notification => notification('payment_intent.processing', { object: 'payment_intent', id: 'pi_1' })

async function stored(event: Notification) {
  const rows = await scene.db.selectFrom('provider_events').selectAll().where('event_id', '=', event.id).execute()
  const jobs = await scene.db.selectFrom('jobs').selectAll().where('business_id', '=', event.id).execute()
  return { rows, jobs }
}

describe('the inbox takes', () => {
  it('an event once with its job, and answers 200 at once, also to duplicates', async () => {
    const event = unpaid()
    for (let delivery = 0; delivery < 3; delivery++) expect((await deliver(url, event)).status).toBe(200)
    const { rows, jobs } = await stored(event)
    expect(rows).toMatchObject([{ provider: 'stripe', type: event.type, state: 'waiting' }])
    expect(jobs).toMatchObject([{ topic: 'provider_event', state: 'ready' }])
  })

  it('forty deliveries of one event at once, by two processes, as one', async () => {
    const event = unpaid()
    const replies = await Promise.all(
      Array.from({ length: 40 }, (_, n) => deliver(n % 2 === 0 ? url : other.url, event)),
    )
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]))
    const { rows, jobs } = await stored(event)
    expect([rows.length, jobs.length]).toEqual([1, 1])
  })

  it('an event of a type that nobody uses, without a job', async () => {
    const event = notification('customer.created', { object: 'customer', id: 'cus_1', email: 'ada@example.com' })
    expect((await deliver(url, event)).status).toBe(200)
    const { rows, jobs } = await stored(event)
    expect(rows).toMatchObject([{ state: 'ignored', type: 'customer.created' }])
    expect(jobs).toEqual([])
  })

  it.each([
    ['odd spacing', (event: Notification) => JSON.stringify(event, null, '\t ')],
    ['a trailing newline', (event: Notification) => `${JSON.stringify(event)}\r\n\n`],
    ['unicode', (event: Notification) => JSON.stringify({ ...event, note: 'é e\u0301 🛒 \u2028' })],
    ['escapes', (event: Notification) => JSON.stringify(event).replaceAll('pi_1', '\\u0070i_1')],
    ['a key twice', (event: Notification) => `{"livemode":true,${JSON.stringify(event).slice(1)}`],
  ])('a body with %s, as it was signed', async (_what, write) => {
    const event = unpaid()
    const body = write(event)
    const reply = await postRaw(url, body, {
      'content-type': 'application/json',
      'stripe-signature': signatureOf(body),
    })
    expect(reply.status).toBe(200)
    expect((await stored(event)).rows).toHaveLength(1)
  })

  it.each([
    ['application/json; charset=utf-8'],
    ['text/plain'],
    ['application/octet-stream'],
    ['application/x-unheard-of'],
    [undefined],
  ])('any content type: %s', async (type) => {
    const event = unpaid()
    const body = JSON.stringify(event)
    const reply = await postRaw(url, body, {
      ...(type === undefined ? {} : { 'content-type': type }),
      'stripe-signature': signatureOf(body),
    })
    expect(reply.status).toBe(200)
  })

  it('what either secret has signed while they are rotated, or both', async () => {
    for (const secrets of [[webhookSecret], [oldSecret], [oldSecret, webhookSecret], ['whsec_strange', oldSecret]]) {
      expect((await deliver(url, unpaid(), { secrets })).status).toBe(200)
    }
  })

  it('signatures up to five minutes old, or from a clock that is ahead by as much', async () => {
    expect((await deliver(url, unpaid(), { age: 290 })).status).toBe(200)
    expect((await deliver(url, unpaid(), { age: -290 })).status).toBe(200)
  })

  it.each([1e300, 2 ** 53, -1, 1.5, '12', null])('an event about an absurd amount: %s', async (amount) => {
    const object = {
      object: 'payment_intent',
      id: 'pi_1',
      status: 'succeeded',
      amount_received: 0,
      amount_capturable: 0,
    }
    const whole = { ...object, currency: 'eur', livemode: false, created: 1, amount }
    expect((await deliver(url, notification('payment_intent.succeeded', whole))).status).toBe(200)
  })

  it('events of half a megabyte', async () => {
    const event = notification('payment_intent.processing', {
      object: 'payment_intent',
      id: 'pi_1',
      filler: 'x'.repeat(500_000),
    })
    expect((await deliver(url, event)).status).toBe(200)
  })
})

describe('the inbox refuses with 401 and keeps nothing of', () => {
  const send = async (headers: Record<string, string>, change: (body: string) => string = (body) => body) => {
    const event = unpaid()
    const body = JSON.stringify(event, null, 2)
    const reply = await postRaw(url, change(body), { 'content-type': 'application/json', ...headersFor(body, headers) })
    expect(reply.status).toBe(401)
    expect(reply.json).toMatchObject({ code: 'webhook_signature_invalid', status: 401 })
    expect(reply.headers.get('content-type')).toContain('application/problem+json')
    expect((await stored(event)).rows).toEqual([])
  }
  const headersFor = (body: string, headers: Record<string, string>) =>
    Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, value.replace('VALID', signatureOf(body))]),
    )

  it('a request without a signature', () => send({}))
  it.each([
    [''],
    ['nonsense'],
    ['t=,v1='],
    ['v1=00'],
    [`t=${Math.floor(Date.now() / 1000)}`],
    ['VALID,t=1'],
    [`t=${Math.floor(Date.now() / 1000)},v0=00`],
  ])('a malformed signature: %s', (signature) => send({ 'stripe-signature': signature }))
  it('a body that was serialised anew', () =>
    send({ 'stripe-signature': 'VALID' }, (body) => JSON.stringify(JSON.parse(body))))
  it('an empty body', () => send({ 'stripe-signature': 'VALID' }, () => ''))
  it('an event signed with another secret', async () => {
    expect((await deliver(url, unpaid(), { secrets: ['whsec_strange'] })).status).toBe(401)
  })
  it('a signature that is too old, or from the future', async () => {
    expect((await deliver(url, unpaid(), { age: 310 })).status).toBe(401)
    expect((await deliver(url, unpaid(), { age: -310 })).status).toBe(401)
    expect((await deliver(url, unpaid(), { age: -10 * 365 * 86_400 })).status).toBe(401)
  })
})

describe('the inbox refuses', () => {
  it('with 400 what is signed but no event', async () => {
    for (const body of [
      'null',
      '[]',
      '{}',
      'not json',
      '{"id":"evt_1"}',
      JSON.stringify({ ...unpaid(), id: 'no id' }),
    ]) {
      const reply = await postRaw(url, body, { 'stripe-signature': signatureOf(body) })
      expect([body, reply.status]).toEqual([body, 400])
      expect(reply.json.code).toBe('invalid_request')
    }
  })

  it('with 413 more than a megabyte', async () => {
    const body = 'x'.repeat(1024 * 1024 + 1)
    expect((await postRaw(url, body, { 'stripe-signature': signatureOf(body) })).status).toBe(413)
  })
})

it('leaves JSON elsewhere as it was', async () => {
  const paid = await scene.shop.checkout(newKey(), cart())
  expect(paid.status).toBe(201)
  const text = await scene.shop.post('/v1/checkouts', 'hello', {
    'content-type': 'text/plain',
    'idempotency-key': newKey(),
  })
  expect(text.status).toBe(415)
  const broken = await scene.shop.post('/v1/checkouts', '{"items":', { 'idempotency-key': newKey() })
  expect([broken.status, broken.json.code]).toEqual([400, 'invalid_request'])
})

it('answers 503 while the database is away, so that the provider delivers again', async () => {
  const database = await createTestDatabase()
  const proxy = await startProxy(database.url)
  const cutOff = await startScene({ databaseUrl: proxy.through(database.url) })
  try {
    const event = unpaid()
    proxy.refuse()
    proxy.cutAll()
    const refused = await deliver(cutOff.service.url, event)
    expect([refused.status, refused.json.code]).toEqual([503, 'database_unavailable'])
    await proxy.accept()
    await until(async () => (await deliver(cutOff.service.url, event)).status === 200)
    const rows = await cutOff.db.selectFrom('provider_events').select('event_id').execute()
    expect(rows).toEqual([{ event_id: event.id }])
  } finally {
    await cutOff.stop()
    await proxy.close()
    await database.drop()
  }
})
