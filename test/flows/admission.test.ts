/** How many attempts may be under way at once: in all, of one tenant, of one customer's address. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Service } from '../../src/service.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import { type Client, cart, keys, type Reply } from '../support/client.ts'
import { startProxy } from '../support/proxy.ts'
import { hold } from '../support/runs.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import type { TcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'

let scene: Scene
let provider: TcpProxy
let service: Service
let shop: Client
let other: Client
beforeAll(async () => {
  scene = await startScene()
  provider = await startProxy(scene.simulatorUrl)
  service = await scene.start({
    STRIPE_API_BASE: provider.through(scene.simulatorUrl).replace(/\/$/, ''),
    PROVIDER_TIMEOUT_MS: '20000',
    CHECKOUT_BUDGET_MS: '25000',
    IDEMPOTENCY_WAIT_MS: '26000',
    ATTEMPTS_AT_ONCE: '8',
    ATTEMPTS_AT_ONCE_PER_TENANT: '5',
    ATTEMPTS_AT_ONCE_PER_ADDRESS: '2',
    TRUST_PROXY: '127.0.0.0/8',
  })
  shop = scene.shop.at(service.url)
  other = shop.withKey(keys.otherStorefront)
  expect((await shop.checkout(newKey())).status).toBe(201)
})
beforeEach(() => provider.silence())
afterEach(async () => {
  provider.resume()
  await until(() => service.deps.twins.size === 0, { what: 'nothing is under way' })
  await expectBooksInOrder(scene)
})
afterAll(async () => {
  await provider?.close()
  await scene?.stop()
})

let nextAddress = 1
/** Of a customer whom nobody has seen yet. */
const newAddress = () => `198.51.100.${nextAddress++}`
const under = (client: Client, address: string, key = newKey()) => ({
  key,
  reply: client.checkout(key, cart(), { 'x-forwarded-for': address }),
})

/** Starts as many, each from its own address, and waits until they are under way. */
async function fill(client: Client, count: number) {
  const before = service.deps.twins.size
  const started = Array.from({ length: count }, () => under(client, newAddress()))
  await until(() => service.deps.twins.size === before + count, { what: 'all are under way' })
  return started
}

async function expectRefused(key: string, reply: Promise<Reply>, why: RegExp): Promise<void> {
  const { status, json, headers } = await reply
  expect([status, json.code, json.new_key_safe]).toEqual([503, 'overloaded', false])
  expect(json.detail).toMatch(why)
  expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
  expect((await shop.get(`/v1/checkouts/${key}`)).status).toBe(404)
}

describe('more attempts than', () => {
  it('one tenant may have are refused; another tenant’s go on, and its crowd ends at the limit of all', async () => {
    const mine = await fill(shop, 5)
    const surplus = under(shop, newAddress())
    await expectRefused(surplus.key, surplus.reply, /of this shop/)
    const theirs = await fill(other, 3)
    const last = under(other, newAddress())
    await expectRefused(last.key, last.reply, /^Too many checkouts are under way\./)
    expect((await shop.get('/v1/products')).status).toBe(200)
    provider.resume()
    for (const { reply } of [...mine, ...theirs]) expect((await reply).status).toBe(201)
    // The same keys, later.
    expect((await shop.checkout(surplus.key, cart(), { 'x-forwarded-for': newAddress() })).status).toBe(201)
    expect((await other.checkout(last.key, cart(), { 'x-forwarded-for': newAddress() })).status).toBe(201)
  })

  it.each([
    ['an address', '203.0.113.7', '203.0.113.7', '203.0.113.8'],
    ['a network of IPv6', '2001:db8:1:2::a', '2001:db8:1:2:ffff::1', '2001:db8:1:3::a'],
    ['an address, also written as IPv6,', '203.0.113.9', '::ffff:203.0.113.9', '203.0.113.10'],
  ])('%s may have are refused, and its neighbour’s are not', async (_what, address, same, neighbour) => {
    const mine = [under(shop, address), under(shop, same)]
    await until(() => service.deps.twins.size === 2, { what: 'both are under way' })
    const surplus = under(shop, address)
    await expectRefused(surplus.key, surplus.reply, /from this address/)
    const next = under(shop, neighbour)
    await until(() => service.deps.twins.size === 3, { what: 'the neighbour is under way' })
    provider.resume()
    for (const { reply } of [...mine, next]) expect((await reply).status).toBe(201)
  })
})

it('what repeats an attempt at hand needs no room; a surplus is refused before its body is read', async () => {
  provider.resume()
  const settled = under(shop, newAddress())
  expect((await settled.reply).status).toBe(201)
  provider.silence()
  const mine = await fill(shop, 5)
  const [first] = mine
  if (first === undefined) throw new Error('nothing was started')
  expect((await shop.checkout(settled.key, cart())).headers.get('idempotent-replayed')).toBe('true')
  const twin = shop.checkout(first.key, cart())
  const other = await shop.checkout(settled.key, cart({ items: [{ sku: 'mug', quantity: 2 }] }))
  expect([other.status, other.json.code]).toEqual([503, 'overloaded'])
  const unread = await shop.post('/v1/checkouts', '{"no JSON', { 'idempotency-key': newKey() })
  expect([unread.status, unread.json.code]).toEqual([503, 'overloaded'])
  provider.resume()
  const [answer, ...replies] = await Promise.all([first.reply, twin, ...mine.map(({ reply }) => reply)])
  expect(replies[0]?.text).toBe(answer.text)
  expect(replies.map(({ status }) => status)).toEqual([201, 201, 201, 201, 201, 201])
})

it('a double click takes no place of its own', async () => {
  const address = newAddress()
  const first = under(shop, address)
  const twins = Array.from({ length: 9 }, () => under(shop, address, first.key))
  await until(() => service.deps.twins.size === 1, { what: 'it is under way' })
  provider.resume()
  const replies = await Promise.all([first, ...twins].map(({ reply }) => reply))
  expect(new Set(replies.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
  expect(await scene.books.paymentsFor(first.key)).toHaveLength(1)
})

it('a tenant’s own machines are no customer: their address has no limit', async () => {
  const backend = scene.backend.at(service.url)
  const runs = Array.from({ length: 4 }, () => backend.post('/v1/runs', hold(), { 'idempotency-key': newKey() }))
  await until(() => service.deps.twins.size === 4, { what: 'all are under way' })
  provider.resume()
  for (const { status } of await Promise.all(runs)) expect(status).toBe(201)
})

it('an address that no trusted proxy has said is not believed', async () => {
  const direct = scene.shop.at(
    (
      await scene.start({
        ...{ ATTEMPTS_AT_ONCE_PER_ADDRESS: '1', PROVIDER_TIMEOUT_MS: '20000' },
        ...{ CHECKOUT_BUDGET_MS: '25000', IDEMPOTENCY_WAIT_MS: '26000' },
        STRIPE_API_BASE: provider.through(scene.simulatorUrl).replace(/\/$/, ''),
      })
    ).url,
  )
  provider.resume()
  expect((await direct.checkout(newKey())).status).toBe(201)
  provider.silence()
  const replies = [under(direct, newAddress()), under(direct, newAddress())]
  const first = await Promise.race(replies.map(async ({ reply }) => (await reply).status))
  expect(first).toBe(503)
  provider.resume()
  expect((await Promise.all(replies.map(({ reply }) => reply))).map(({ status }) => status).sort()).toEqual([201, 503])
})
