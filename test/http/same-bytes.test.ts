/** Repeats that are the same to the byte are answered unread; that must show nowhere but in what they cost. */
import { Agent, request } from 'node:http'
import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import type { Twins } from '../../src/flows/saga/twins.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import { cart, keys, type Reply } from '../support/client.ts'
import { heldUp } from '../support/held-up.ts'
import { sendBytes } from '../support/raw-http.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { until } from '../support/until.ts'

let scene: Scene
beforeAll(async () => {
  scene = await startScene()
})
afterEach(async () => {
  vi.restoreAllMocks()
  await expectBooksInOrder(scene)
})
afterAll(() => scene.stop())

/** How often this body was parsed in between. */
async function timesRead(body: string, work: () => Promise<unknown>): Promise<number> {
  const parse = vi.spyOn(JSON, 'parse')
  await work()
  const times = parse.mock.calls.filter(([text]) => text === body).length
  parse.mockRestore()
  return times
}

const post = (key: string, body: string, headers: Record<string, string> = {}) =>
  scene.shop.post('/v1/checkouts', body, { 'idempotency-key': key, ...headers })

describe('a repeat of a settled attempt', () => {
  it.each([
    ['paid', cart(), 201],
    ['declined', cart({ payment_method: 'pm_card_chargeDeclined' }), 402],
  ] as const)('%s: the same bytes are not read, others that say the same are', async (_what, said, status) => {
    const key = newKey()
    const body = JSON.stringify(said)
    const respelled = JSON.stringify(said, null, 2)
    const first = await post(key, body)
    expect([first.status, first.replayed]).toEqual([status, false])
    for (const [repeat, times] of [
      [body, 0],
      [respelled, 1],
      [body, 0],
    ] as const) {
      const read = await timesRead(repeat, async () => {
        const reply = await post(key, repeat)
        expect([reply.status, reply.text, reply.replayed]).toEqual([status, first.text, true])
        expect(reply.headers.get('location')).toBe(first.headers.get('location'))
        expect(reply.headers.get('content-type')).toBe(first.headers.get('content-type'))
        expect(reply.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'))
      })
      expect(read).toBe(times)
    }
  })

  it('is refused where the request around the bytes is wrong', async () => {
    const key = newKey()
    const body = JSON.stringify(cart())
    expect((await post(key, body)).status).toBe(201)
    expect((await scene.shop.withKey('pk_unknown').checkout(key)).status).toBe(401)
    expect((await scene.shop.withKey(keys.admin).checkout(key)).status).toBe(403)
    expect((await post(key, body, { 'content-type': 'text/plain' })).status).toBe(415)
    expect((await post(key, body, { 'content-encoding': 'gzip' })).status).toBe(415)
    const queried = await scene.shop.post('/v1/checkouts?x=1', body, { 'idempotency-key': key })
    expect(queried.status).toBe(400)
    expect((await post(`${key}, ${key}`, body)).status).toBe(400)
    expect((await scene.shop.post('/v1/checkouts', body)).json.code).toBe('idempotency_key_missing')
  })

  it('with other bytes is what it was: broken, or another request', async () => {
    const key = newKey()
    const body = JSON.stringify(cart())
    const first = await post(key, body)
    const broken = await post(key, body.slice(0, -1))
    expect([broken.status, broken.json.code, broken.json.new_key_safe]).toEqual([400, 'invalid_request', false])
    const none = await scene.shop.post('/v1/checkouts', undefined, { 'idempotency-key': key })
    expect([none.status, none.json.code]).toEqual([400, 'invalid_request'])
    const other = await post(key, body.replace('Ada', 'Eve'))
    expect([other.status, other.json.differing]).toEqual([409, ['customer']])
    expect((await post(key, body)).text).toBe(first.text)
  })

  it('belongs to its tenant: the same key and bytes of another are another attempt', async () => {
    const key = newKey()
    const mine = await scene.shop.checkout(key)
    const theirs = await scene.shop.withKey(keys.otherStorefront).checkout(key)
    expect([theirs.status, theirs.replayed]).toEqual([201, false])
    expect(theirs.json.id).not.toBe(mine.json.id)
  })

  it('belongs to its endpoint: the same key and bytes elsewhere are another request', async () => {
    const key = newKey()
    const hold = { customer: { email: 'a@b.de' }, payment_method: 'pm_card_visa', currency: 'EUR', hold_amount: 1000 }
    const run = await scene.backend.post('/v1/runs', hold, { 'idempotency-key': key })
    expect(run.status).toBe(201)
    const checkout = await scene.backend.post('/v1/checkouts', hold, { 'idempotency-key': key })
    expect([checkout.status, checkout.json.code]).toEqual([400, 'invalid_request'])
  })
})

describe('twins', () => {
  it('with the same bytes wait unread, those that say the same in others wait as well: one order', async () => {
    const key = newKey()
    const body = JSON.stringify(cart())
    const respelled = JSON.stringify(cart(), null, 1)
    const twins = scene.service?.deps.twins as Twins
    const waiting = vi.spyOn(twins, 'joinSame')
    const claims = await heldUp(
      scene.db,
      sql`SELECT 1 FROM products WHERE tenant_id = 'ten_demo' AND sku = 'mug' FOR UPDATE`,
    )
    const first = post(key, body)
    await until(() => twins.size === 1, { what: 'the first is under way' })
    const others: Promise<Reply>[] = []
    const read = await timesRead(body, async () => {
      others.push(post(key, body), post(key, respelled), post(key, body))
      await until(() => waiting.mock.results.length === 4, { what: 'all have come' })
    })
    await claims.release()
    const replies = await Promise.all([first, ...others])
    expect(read).toBe(0)
    expect(new Set(replies.map(({ text }) => text)).size).toBe(1)
    expect(replies.map(({ replayed }) => replayed)).toEqual([false, true, true, true])
  })

  it('of a refused attempt are refused alike, and the key stays free', async () => {
    const key = newKey()
    const body = JSON.stringify(cart({ expected_total: 1 }))
    const replies = await Promise.all(Array.from({ length: 5 }, () => post(key, body)))
    expect(new Set(replies.map(({ status, json }) => `${status} ${json.code}`))).toEqual(new Set(['409 price_changed']))
    expect((await post(key, JSON.stringify(cart()))).status).toBe(201)
  })
})

it('an attempt split into many packets is one whole', async () => {
  const key = newKey()
  const body = JSON.stringify(cart())
  const first = await post(key, body)
  const head = [
    'POST /v1/checkouts HTTP/1.1',
    'host: x',
    `authorization: Bearer ${keys.storefront}`,
    'content-type: application/json',
    `idempotency-key: ${key}`,
    'transfer-encoding: chunked',
    'connection: close',
  ]
  const chunks = [...body].map((each) => `1\r\n${each}\r\n`).join('')
  const answer = await sendBytes(scene.service?.url ?? '', `${head.join('\r\n')}\r\n\r\n${chunks}0\r\n\r\n`)
  expect(answer).toContain('idempotent-replayed: true')
  expect(answer.endsWith(first.text)).toBe(true)
})

it('who calls is asked with every request of a connection', async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const sockets = new Set<unknown>()
  const url = new URL('/v1/orders', scene.service?.url)
  const statusWith = (key: string) =>
    new Promise<number | undefined>((resolve, reject) => {
      const sent = request(url, { agent, headers: { authorization: `Bearer ${key}` } }, (response) => {
        sockets.add(response.socket)
        response.resume().on('end', () => resolve(response.statusCode))
      })
      sent.on('error', reject).end()
    })
  const statuses: (number | undefined)[] = []
  for (const key of [keys.storefront, keys.backend, keys.backend, 'sk_unknown', keys.backend, keys.storefront]) {
    statuses.push(await statusWith(key))
  }
  agent.destroy()
  expect(statuses).toEqual([403, 200, 200, 401, 200, 403])
  expect(sockets.size).toBe(1)
})
