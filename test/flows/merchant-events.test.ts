import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { requeueJob } from '../../src/store/jobs.ts'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { cart, keys } from '../support/client.ts'
import { type ReceivedPost, type Receiver, startReceiver } from '../support/receiver.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'

let merchant: Receiver
let scene: Scene
beforeAll(async () => {
  merchant = await startReceiver()
  scene = await startScene({
    settings: { MERCHANT_WEBHOOK_ALLOW_PRIVATE: 'true', CHECKOUT_BUDGET_MS: '4000', PROVIDER_TIMEOUT_MS: '2000' },
  })
})
afterAll(async () => {
  await scene.stop()
  await merchant.stop()
})

const endpoint = '/v1/webhook-endpoint'
let secret: string
beforeEach(async () => {
  await runJobs(scene.service.deps)
  await scene.db.deleteFrom('webhook_endpoints').execute()
  merchant.answer((_post, response) => void response.writeHead(204).end())
  merchant.received.length = 0
  secret = (await scene.backend.put(endpoint, { url: `${merchant.url}/hook` })).json.secret
})

const work = () => runJobs(scene.service.deps)

async function order(body: Record<string, unknown> = {}) {
  return (await scene.shop.checkout(newKey(), cart(body))).json
}

/** As if the pause after a failure had passed. */
async function passTime(): Promise<void> {
  await scene.db
    .updateTable('jobs')
    .set({ run_at: new Date(0) })
    .where('state', '=', 'ready')
    .execute()
}

function verify(
  post: ReceivedPost | undefined,
  with_ = secret,
): { type: string; data: { order: { id: string; status: string } } } {
  return new Webhook(with_).verify(post?.body ?? '', post?.headers as Record<string, string>) as never
}

function deliveryJob() {
  return scene.db
    .selectFrom('jobs')
    .selectAll()
    .where('topic', '=', 'deliver_event')
    .orderBy('created_at', 'desc')
    .executeTakeFirst()
}

describe('an event for the merchant', () => {
  it('is signed, tells of the order without personal data, and comes once', async () => {
    const { id } = await order({
      customer: { email: 'ada@example.com', name: 'Ada Lovelace' },
      metadata: { note: 'ring twice' },
      shipping_address: { line1: '1 St James Square', city: 'London', country: 'GB' },
    })
    await work()
    expect(merchant.received).toHaveLength(1)
    const [post] = merchant.received
    expect(post?.path).toBe('/hook')
    expect(verify(post)).toMatchObject({
      type: 'order.paid',
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      data: { order: { id, object: 'order', status: 'paid', total: 1250, captured: 1250, currency: 'EUR' } },
    })
    expect(post?.body).not.toMatch(/ada|lovelace|ring twice|james/i)
    await requeueJob(scene.db, 'ten_demo', 'order_news', `${id}:paid`)
    await work()
    expect(merchant.received).toHaveLength(1)
  })

  it('comes never of what happened before there was an endpoint, whenever its news are spread and however often', async () => {
    await scene.backend.delete(endpoint)
    const before = await order()
    await work()
    await scene.backend.put(endpoint, { url: `${merchant.url}/hook` })
    await requeueJob(scene.db, 'ten_demo', 'order_news', `${before.id}:paid`)
    await work()
    expect(merchant.received).toEqual([])

    // Nor of what happened while there was another one, which is gone.
    await order()
    await scene.backend.delete(endpoint)
    secret = (await scene.backend.put(endpoint, { url: `${merchant.url}/hook` })).json.secret
    const after = await order()
    await work()
    expect(merchant.received.map((post) => verify(post).data.order.id)).toEqual([after.id])
  })

  it('has the same id and bytes on every delivery, until the merchant has taken it', async () => {
    let answers = 0
    merchant.answer((_post, response) => void response.writeHead([500, 503, 200][answers++] ?? 200).end('thank you'))
    await order()
    for (let tries = 0; tries < 4; tries++) {
      await work()
      await passTime()
    }
    expect(merchant.received).toHaveLength(3)
    expect(new Set(merchant.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
    expect(new Set(merchant.received.map(({ body }) => body)).size).toBe(1)
    for (const post of merchant.received) verify(post)

    const { data } = (await scene.backend.get(`${endpoint}/deliveries?limit=3`)).json
    expect(data).toMatchObject([
      { object: 'webhook_delivery', type: 'order.paid', attempt: 3, delivered: true, http_status: 200, error: null },
      { attempt: 2, delivered: false, http_status: 503, error: 'http_503' },
      { attempt: 1, delivered: false, http_status: 500, error: 'http_500' },
    ])
    expect(new Set(data.map((delivery: { event_id: string }) => delivery.event_id)).size).toBe(1)
  })

  it('comes of every transition, each with an id of its own', async () => {
    await order({ payment_method: 'pm_card_chargeDeclined' })
    await order({ capture: 'manual' })
    await work()
    expect(merchant.received.map((post) => verify(post).type).toSorted()).toEqual([
      'order.authorized',
      'order.payment_failed',
    ])
    expect(new Set(merchant.received.map(({ headers }) => headers['webhook-id'])).size).toBe(2)
  })

  it('is delivered again under its id where an operator requeues it', async () => {
    await order()
    await work()
    const job = await deliveryJob()
    await requeueJob(scene.db, 'ten_demo', 'deliver_event', job?.business_id ?? '')
    await work()
    expect(merchant.received.map(({ headers }) => headers['webhook-id'])).toEqual([job?.business_id, job?.business_id])
  })

  it('is signed with both secrets for a while after a new one was made', async () => {
    const { json } = await scene.backend.put(endpoint, { url: `${merchant.url}/hook` })
    expect(json.secret).not.toBe(secret)
    await order()
    await work()
    expect(verify(merchant.received[0]).type).toBe('order.paid')
    expect(verify(merchant.received[0], json.secret).type).toBe('order.paid')

    await scene.db
      .updateTable('webhook_endpoints')
      .set({ previous_secret_until: new Date(0) })
      .execute()
    await order()
    await work()
    expect(verify(merchant.received[1], json.secret).type).toBe('order.paid')
    expect(() => verify(merchant.received[1])).toThrow()
  })

  it('follows no redirect', async () => {
    const elsewhere = await startReceiver()
    try {
      merchant.answer((_post, response) => void response.writeHead(307, { location: `${elsewhere.url}/inner` }).end())
      await order()
      await work()
      expect(elsewhere.received).toEqual([])
      expect(await deliveryJob()).toMatchObject({ state: 'ready', last_error: 'http_307' })
    } finally {
      await elsewhere.stop()
    }
  })

  it('is sent over https only to who proves to be the one that was named', async () => {
    await scene.backend.put(endpoint, { url: merchant.url.replace('http:', 'https:') })
    await order()
    await work()
    expect(await deliveryJob()).toMatchObject({ state: 'ready', last_error: 'tls_failed' })
    expect(merchant.received).toEqual([])
  })

  it('is given up on a receiver that does not answer in time, and the answer is read no further than needed', async () => {
    merchant.answer(() => {})
    await order()
    await work()
    expect(await deliveryJob()).toMatchObject({ state: 'ready', last_error: 'timeout' })
    merchant.answer((_post, response) => {
      response.writeHead(200)
      const flood = () => {
        while (!response.destroyed && response.write('x'.repeat(65_536)));
      }
      response.on('drain', flood)
      flood()
    })
    await passTime()
    await work()
    expect(await deliveryJob()).toMatchObject({ state: 'done' })
  })

  it('ends dead after the last try, which disables an endpoint that nothing got through to', async () => {
    merchant.answer((_post, response) => void response.writeHead(500).end())
    await order()
    for (let tries = 0; tries < 12; tries++) {
      await work()
      await passTime()
    }
    expect(merchant.received).toHaveLength(10)
    expect(await deliveryJob()).toMatchObject({ state: 'dead', last_error: 'http_500', attempts: 10 })
    expect((await scene.backend.get(endpoint)).json).toMatchObject({ status: 'disabled', disabled_reason: 'failing' })
    await order()
    await work()
    expect(merchant.received).toHaveLength(10)
  })

  it('ends dead alone where others got through meanwhile', async () => {
    const dead = (await order()).id
    merchant.answer((post, response) => void response.writeHead(post.body.includes(dead) ? 500 : 200).end())
    for (let tries = 0; tries < 10; tries++) {
      if (tries === 5) await order()
      await work()
      await passTime()
    }
    expect((await scene.backend.get(endpoint)).json).toMatchObject({ status: 'enabled', disabled_reason: null })
  })

  it('answered with 410 Gone disables the endpoint at once; setting it anew enables it', async () => {
    merchant.answer((_post, response) => void response.writeHead(410).end())
    await order()
    await work()
    const job = await deliveryJob()
    expect(job).toMatchObject({ state: 'dead', last_error: 'http_410' })
    expect((await scene.backend.get(endpoint)).json).toMatchObject({ status: 'disabled', disabled_reason: 'gone' })
    await requeueJob(scene.db, 'ten_demo', 'deliver_event', job?.business_id ?? '')
    await work()
    expect(await deliveryJob()).toMatchObject({ state: 'dead', last_error: 'endpoint_disabled' })

    merchant.answer((_post, response) => void response.writeHead(200).end())
    await scene.backend.put(endpoint, { url: `${merchant.url}/new` })
    await requeueJob(scene.db, 'ten_demo', 'deliver_event', job?.business_id ?? '')
    await work()
    expect(merchant.received.at(-1)?.path).toBe('/new')
    expect(await deliveryJob()).toMatchObject({ state: 'done' })
  })

  it('is made for nobody where a tenant has no endpoint, and kept where it is disabled', async () => {
    await scene.backend.delete(endpoint)
    const { id } = await order()
    await work()
    expect(merchant.received).toEqual([])
    const events = (orderId: string) =>
      scene.db.selectFrom('merchant_events').select('type').where('order_id', '=', orderId).execute()
    expect(await events(id)).toEqual([])
    await scene.backend.put(endpoint, { url: merchant.url })
    await scene.db.updateTable('webhook_endpoints').set({ disabled_at: new Date(), disabled_reason: 'gone' }).execute()
    const second = (await order()).id
    await work()
    expect(merchant.received).toEqual([])
    expect(await events(second)).toEqual([{ type: 'order.paid' }])
  })
})

describe('the endpoint', () => {
  it('is shown without its secret, and is its own tenant’s alone', async () => {
    const shown = await scene.backend.get(endpoint)
    expect(shown.json).toMatchObject({ object: 'webhook_endpoint', url: `${merchant.url}/hook`, status: 'enabled' })
    expect(shown.text).not.toContain('whsec')
    expect((await scene.backend.withKey(keys.otherBackend).get(endpoint)).status).toBe(404)
    expect((await scene.shop.get(endpoint)).status).toBe(403)
    expect((await scene.backend.withKey(keys.otherBackend).get(`${endpoint}/deliveries`)).json.data).toEqual([])
    expect((await scene.backend.delete(endpoint)).status).toBe(204)
    expect((await scene.backend.delete(endpoint)).status).toBe(404)
  })

  it('takes a key like one that Standard Webhooks describes', async () => {
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
  })
})

describe('without leave to reach private networks', () => {
  let strict: Awaited<ReturnType<Scene['start']>>
  beforeAll(async () => {
    strict = await scene.start()
  })

  it.each([
    'http://shop.example/hook',
    'https://127.0.0.1/hook',
    'https://2130706433/hook',
    'https://0x7f.1/hook',
    'https://0/',
    'https://10.1.2.3/',
    'https://100.64.0.1/',
    'https://169.254.169.254/latest/meta-data',
    'https://192.168.0.1/',
    'https://172.16.0.1/',
    'https://198.18.0.1/',
    'https://224.0.0.1/',
    'https://255.255.255.255/',
    'https://[::1]/',
    'https://[::]/',
    'https://[::ffff:127.0.0.1]/',
    'https://[::127.0.0.1]/',
    'https://[64:ff9b::7f00:1]/',
    'https://[2002:7f00:1::]/',
    'https://[2001:0:7f00:1::]/',
    'https://[fc00::1]/',
    'https://[fd12:3456::1]/',
    'https://[fe80::1]/',
    'https://[fec0::1]/',
    'https://[ff02::1]/',
    'https://localhost/',
    'https://intranet/',
    'https://user:secret@shop.example/',
    'ftp://shop.example/',
    'file:///etc/passwd',
    'shop.example/hook',
  ])('the endpoint %s is refused', async (url) => {
    const reply = await scene.backend.at(strict.url).put(endpoint, { url })
    expect(reply.status).toBe(400)
    expect(reply.json.code).toBe('invalid_request')
  })

  it('an endpoint that got in otherwise, or whose name leads inside, is refused at the delivery', async () => {
    for (const url of [
      `${merchant.url}/hook`.replace('http:', 'https:'),
      'https://localhost.localdomain/',
      'https://a.localhost/',
    ]) {
      await scene.db.updateTable('webhook_endpoints').set({ url }).execute()
      await order()
      await runJobs(strict.deps)
      expect((await deliveryJob())?.last_error).toMatch(/^(address_not_public|name_not_found)$/)
    }
    expect(merchant.received).toEqual([])
  })

  it('a public address is allowed', async () => {
    expect((await scene.backend.at(strict.url).put(endpoint, { url: 'https://shop.example/hook?a=b' })).status).toBe(
      200,
    )
    expect((await scene.backend.at(strict.url).put(endpoint, { url: 'https://93.184.215.14:8443/' })).status).toBe(200)
    expect((await scene.backend.at(strict.url).put(endpoint, { url: 'https://[2606:4700::1111]/' })).status).toBe(200)
  })
})
