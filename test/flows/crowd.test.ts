/** A slow provider and far more requests than connections: those who wait hold nothing that others need. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { expectBooksInOrder } from '../support/audit.ts'
import { type Client, cart, keys, type Reply } from '../support/client.ts'
import { startProxy } from '../support/proxy.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { type ServiceProcess, startServiceProcess } from '../support/service-process.ts'
import { until } from '../support/until.ts'

const charges = { method: 'POST', path: '/v1/payment_intents' } as const

let scene: Scene
const processes: ServiceProcess[] = []
beforeAll(async () => {
  scene = await startScene()
})
afterEach(async () => {
  await scene.books.noFaults()
  await expectBooksInOrder(scene)
})
afterAll(async () => {
  await Promise.all(processes.map((each) => each.stop()))
  await scene.stop()
})

describe('300 twins and 100 distinct checkouts at a slow provider, over a pool of ten', () => {
  it('leave reads and health checks free: those are answered before any checkout is', async () => {
    // The provider says nothing until it is let: whatever is answered meanwhile waits for nobody who waits for it.
    const provider = await startProxy(scene.simulatorUrl)
    const service = await scene.start({
      DATABASE_POOL_SIZE: '10',
      STRIPE_API_BASE: provider.through(scene.simulatorUrl).replace(/\/$/, ''),
      PROVIDER_TIMEOUT_MS: '40000',
      CHECKOUT_BUDGET_MS: '45000',
      IDEMPOTENCY_WAIT_MS: '50000',
      IDEMPOTENCY_LEASE_SECONDS: '60',
    })
    const shop = scene.shop.at(service.url)
    expect((await shop.checkout(newKey())).status).toBe(201)
    provider.silence()
    const [twinKey, distinct] = [newKey(), Array.from({ length: 100 }, newKey)]
    let answered = 0
    const count = async (reply: Promise<Reply>) => {
      const got = await reply
      answered += 1
      return got
    }
    const twins = Array.from({ length: 300 }, () => count(shop.checkout(twinKey)))
    const others = distinct.map((key) => count(shop.checkout(key)))
    await until(
      async () => {
        const orders = await scene.db.selectFrom('orders').select('order_id').where('status', '=', 'pending').execute()
        return orders.length === 101
      },
      { what: 'all checkouts to be at the provider' },
    )
    const reads = await Promise.all([
      ...Array.from({ length: 30 }, () => shop.get('/v1/products/mug')),
      ...Array.from({ length: 10 }, () => shop.withKey(keys.backend).get('/v1/orders')),
      ...distinct.slice(0, 10).map((key) => shop.get(`/v1/checkouts/${key}`)),
      ...['/healthz', '/readyz'].map((path) => shop.get(path)),
    ])
    const idle = await sql<{ states: number }>`
      SELECT count(*) AS states FROM pg_stat_activity
      WHERE datname = current_database() AND state LIKE 'idle in transaction%'`.execute(scene.db)
    expect(answered).toBe(0)
    expect(reads.map((reply) => reply.status)).toEqual(reads.map(() => 200))
    expect(Number(idle.rows[0]?.states)).toBe(0)

    provider.resume()
    const replies = await Promise.all([...twins, ...others])
    expect(replies.map((reply) => reply.status)).toEqual(replies.map(() => 201))
    expect(replies.slice(0, 300).filter((reply) => !reply.replayed)).toHaveLength(1)
    expect(await scene.books.paymentsFor(twinKey)).toHaveLength(1)
    await service.stop()
    await provider.close()
  })

  it('more than can be at the provider at once are a 503 at once, leave nothing and can be repeated', async () => {
    const provider = await startProxy(scene.simulatorUrl)
    const service = await scene.start({
      STRIPE_API_BASE: provider.through(scene.simulatorUrl).replace(/\/$/, ''),
      PROVIDER_TIMEOUT_MS: '40000',
      CHECKOUT_BUDGET_MS: '45000',
      IDEMPOTENCY_WAIT_MS: '50000',
      IDEMPOTENCY_LEASE_SECONDS: '60',
      ATTEMPTS_AT_ONCE_PER_TENANT: '1000',
    })
    const shop = scene.shop.at(service.url)
    expect((await shop.checkout(newKey())).status).toBe(201)
    provider.silence()
    const all = Array.from({ length: 540 }, newKey)
    const refused: { key: string; reply: Reply }[] = []
    const sent = all.map(async (key) => {
      const reply = await shop.checkout(key)
      if (reply.status !== 201) refused.push({ key, reply })
      return reply
    })
    // They are told while the others still wait for a provider that says nothing.
    await until(() => refused.length === 28, { what: 'those beyond 512 to be refused' })
    for (const { key, reply } of refused) {
      expect([reply.status, reply.json.code, reply.json.new_key_safe]).toEqual([503, 'overloaded', false])
      expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0)
      expect((await shop.get(`/v1/checkouts/${key}`)).status).toBe(404)
    }
    provider.resume()
    await Promise.all(sent)
    expect(refused).toHaveLength(28)
    for (const { key } of refused) expect((await shop.checkout(key)).status).toBe(201)
    await service.stop()
    await provider.close()
  })

  it('are not cut off by SIGTERM: every one is answered, then the process ends', async () => {
    await scene.books.fault({ ...charges, fault: 'latency', latency_ms: 1500 })
    const leaving = await startServiceProcess(scene.env({ LOG_LEVEL: 'info' }))
    processes.push(leaving)
    const [twinKey, distinct] = [newKey(), Array.from({ length: 20 }, newKey)]
    const replies = [
      ...Array.from({ length: 30 }, () => leaving.shop.checkout(twinKey)),
      ...distinct.map((key) => leaving.shop.checkout(key)),
    ]
    await until(async () => {
      const rows = await scene.db
        .selectFrom('orders')
        .select('order_id')
        .where('attempt_key', 'in', [twinKey, ...distinct])
        .execute()
      return rows.length === 21
    })
    const exit = leaving.stop()
    for (const reply of await Promise.all(replies)) expect([reply.status, reply.json.status]).toEqual([201, 'paid'])
    expect(await exit).toBe(0)
    await expect(leaving.shop.get('/healthz')).rejects.toThrow()
    expect(leaving.log.filter((line) => JSON.parse(line).level >= 50)).toEqual([])
  })

  it('and connections that were opened in advance and never used do not hold the end up', async () => {
    const leaving = await startServiceProcess(scene.env())
    processes.push(leaving)
    const { hostname, port } = new URL(leaving.url)
    const unused = Array.from({ length: 5 }, () => connect({ host: hostname, port: Number(port) }))
    await Promise.all(unused.map((socket) => once(socket, 'connect')))
    await leaving.shop.checkout(newKey())
    // Node alone would wait for a minute.
    expect(await leaving.stop()).toBe(0)
    for (const socket of unused) socket.destroy()
  }, 30_000)

  it('whose clients hang up: each is charged once and settled all the same', async () => {
    await scene.books.fault({ ...charges, fault: 'latency', latency_ms: 500 })
    const impatient = Array.from({ length: 20 }, newKey)
    await Promise.all(impatient.map((key) => hangUp(scene.shop, key)))
    await until(async () => {
      const rows = await scene.db.selectFrom('orders').select('status').where('attempt_key', 'in', impatient).execute()
      return rows.length === 20 && rows.every((row) => row.status === 'paid')
    })
    for (const key of impatient) {
      const repeat = await scene.shop.checkout(key)
      expect([repeat.status, repeat.replayed]).toEqual([201, true])
      expect(await scene.books.paymentsFor(key)).toMatchObject([{ requests: 1 }])
    }
  })
})

/** Sends a checkout and hangs up when its order is there, before the answer is. */
async function hangUp(shop: Client, key: string): Promise<void> {
  const abort = new AbortController()
  const sent = fetch(`${shop.url}/v1/checkouts`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${keys.storefront}`,
      'content-type': 'application/json',
      'idempotency-key': key,
    },
    body: JSON.stringify(cart()),
    signal: abort.signal,
  })
  const aborted = expect(sent).rejects.toThrow()
  await until(
    async () =>
      (await scene.db.selectFrom('orders').select('order_id').where('attempt_key', '=', key).execute()).length,
  )
  abort.abort()
  await aborted
}
