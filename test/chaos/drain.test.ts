/** SIGTERM to real processes under load: whatever was begun ends, nothing new begins, and no role depends on another. */
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { expectBooksInOrder } from '../support/audit.ts'
import { Client, cart, keys, type Reply } from '../support/client.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { type ServiceProcess, startServiceProcess } from '../support/service-process.ts'
import { until } from '../support/until.ts'

let scene: Scene
const processes: ServiceProcess[] = []
beforeAll(async () => {
  scene = await startScene()
  await scene.books.webhooks({ drop: 1 })
})
afterAll(async () => {
  await scene.books.noFaults()
  await Promise.all(processes.map((process) => process.stop()))
  await scene.stop()
})

async function start(...args: Parameters<typeof startServiceProcess>): Promise<ServiceProcess> {
  const [settings, reactions] = args
  const process = await startServiceProcess(scene.env(settings), reactions)
  processes.push(process)
  return process
}

async function attemptStates(states: string[]): Promise<number> {
  const { length } = await scene.db
    .selectFrom('attempts')
    .select('key')
    .where('state', 'in', states as never[])
    .execute()
  return length
}

function jobs(state: 'ready' | 'done') {
  return scene.db.selectFrom('jobs').selectAll().where('state', '=', state).execute()
}

describe('an API process', () => {
  it('answers everything that it has begun before it ends', async () => {
    const api = await start({ ROLES: 'api' }, { 'checkout.claimed': { do: 'delay', ms: 500, every: true } })
    const begun = Array.from({ length: 8 }, () => api.shop.checkout(newKey()))
    await api.reached('checkout.claimed', 8)
    const code = api.stop()
    const replies = await Promise.all(begun)
    expect(replies.map(({ status }) => status)).toEqual(Array(8).fill(201))
    expect(await code).toBe(0)
    expect(await attemptStates(['running'])).toBe(0)
    await expect(api.shop.get('/healthz')).rejects.toThrow()
  })

  it('says that it is not ready while it drains', async () => {
    const api = await start({ ROLES: 'api' }, { 'checkout.claimed': { do: 'pause' } })
    const client = new Client(api.url, keys.storefront)
    expect((await client.get('/readyz')).status).toBe(200)
    const begun = api.shop.checkout(newKey())
    await api.reached('checkout.claimed')
    const code = api.stop()
    // A connection that was open before may still get through; a new one never does.
    await until(async () => {
      const reply = await client.get('/readyz').catch(() => undefined)
      return reply === undefined || reply.status === 503
    })
    api.resume('checkout.claimed')
    const reply = await begun
    expect([reply.status, reply.headers.get('connection')]).toEqual([201, 'close'])
    expect(await code).toBe(0)
  })

  it('finishes the attempt of a client that has gone', async () => {
    const api = await start({ ROLES: 'api' }, { 'checkout.claimed': { do: 'pause' } })
    const key = newKey()
    const gone = new AbortController()
    const request = fetch(`${api.url}/v1/checkouts`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${keys.storefront}`,
        'content-type': 'application/json',
        'idempotency-key': key,
      },
      body: JSON.stringify(cart()),
      signal: gone.signal,
    })
    await api.reached('checkout.claimed')
    gone.abort()
    await expect(request).rejects.toThrow()
    const code = api.stop()
    api.resume('checkout.claimed')
    expect(await code).toBe(0)
    expect((await scene.shop.checkout(key)).json.status).toBe('paid')
    expect(await scene.books.paymentsFor(key)).toHaveLength(1)
  })

  it('that ends under load costs nobody their order: the same key goes on elsewhere', async () => {
    await scene.books.fault({ method: 'POST', path: '/v1/payment_intents', fault: 'latency', latency_ms: 50 })
    const [first, second] = await Promise.all([start({ ROLES: 'api' }), start({ ROLES: 'api' })])
    let stopping = false
    let told = 0
    const answered = new Map<string, Reply>()
    const customer = async () => {
      for (let n = 0; n < 12; n++) {
        const key = newKey()
        const url = n % 2 === 0 ? first.url : second.url
        const reply = await scene.shop
          .at(url)
          .checkout(key)
          .catch((error: unknown) => {
            // Only after it was told to end may a request come to nothing.
            if (!stopping || url !== first.url) throw error
            return undefined
          })
        answered.set(key, reply?.status === 201 ? reply : await scene.shop.at(second.url).checkout(key))
        told += 1
      }
    }
    const customers = Promise.all(Array.from({ length: 10 }, customer))
    await until(() => told >= 30, { what: 'the load to be under way' })
    stopping = true
    expect(await first.stop()).toBe(0)
    await customers
    expect([...answered.values()].filter(({ status }) => status !== 201)).toEqual([])
    expect(answered.size).toBe(120)
    const payments = await scene.books.payments()
    const charged = Map.groupBy(payments, ({ metadata }) => metadata.key ?? '')
    expect([...answered.keys()].filter((key) => charged.get(key)?.length !== 1)).toEqual([])
    expect(await attemptStates(['running', 'resumable', 'open'])).toBe(0)
    await scene.books.noFaults()
    await second.stop()
  })
})

describe('a worker process', () => {
  it('ends the jobs that it has taken, and takes no more', async () => {
    // What the tests before have left is done by whoever works first.
    const idle = await start({ ROLES: 'worker' })
    await until(async () => (await jobs('ready')).length === 0, { what: 'all jobs to be done' })
    expect(idle.url).toBe('')
    expect(await idle.stop()).toBe(0)

    await scene.shop.checkout(newKey())
    const [job] = await jobs('ready')
    expect(job?.topic).toBe('order_news')
    const worker = await start({ ROLES: 'worker', METRICS_PORT: '0' }, { 'order_news.read': { do: 'pause' } })
    await worker.reached('order_news.read')
    const code = worker.stop()
    // A signal takes its time to be heard on a busy machine.
    await until(async () => (await fetch(`${worker.operationsUrl}/readyz`)).status === 503, { what: 'it to drain' })
    await scene.shop.checkout(newKey())
    worker.resume('order_news.read')
    expect(await code).toBe(0)
    const done = (await jobs('done')).find(({ business_id }) => business_id === job?.business_id)
    expect(done).toMatchObject({ attempts: 1, lease_token: null })
    expect(await jobs('ready')).toHaveLength(1)
  })

  it('ends the recovery of an order that it has begun', async () => {
    const key = newKey()
    await scene.books.fault({ method: 'POST', path: '/v1/payment_intents', fault: 'error_after', times: 1 })
    expect((await scene.shop.checkout(key)).status).toBe(202)
    await scene.books.noFaults()
    const worker = await start(
      { ROLES: 'worker' },
      { 'recovery.asked': { do: 'pause' }, 'recovery.sent': { do: 'pause' } },
    )
    await scene.db
      .updateTable('orders')
      .set({ next_ask_at: new Date(0), send_is_pointless: true })
      .where('attempt_key', '=', key)
      .execute()
    await worker.reached('recovery.asked')
    const code = worker.stop()
    worker.resume('recovery.asked')
    expect(await code).toBe(0)
    expect((await scene.shop.get(`/v1/checkouts/${key}`)).json).toMatchObject({
      state: 'settled',
      order: { status: 'paid' },
    })
  })

  it('leaves an idle sweep, poll and pause at once', async () => {
    const worker = await start({
      ROLES: 'worker',
      SWEEP_INTERVAL_MS: '3600000',
      RECOVERY_INTERVAL_MS: '3600000',
      WORKER_POLL_MS: '3600000',
    })
    const ended = await Promise.race([worker.stop(), delay(20_000).then(() => 'still there')])
    expect(ended).toBe(0)
  })
})

describe('roles', () => {
  it('are processes of their own: the API does no job, a worker listens nowhere, and any number of each works', async () => {
    const [api, other] = await Promise.all([start({ ROLES: 'api' }), start({ ROLES: 'api' })])
    const keysUsed = Array.from({ length: 10 }, newKey)
    await Promise.all(keysUsed.map((key, n) => scene.shop.at((n % 2 === 0 ? api : other).url).checkout(key)))
    const waiting = await jobs('ready')
    expect(waiting.length).toBeGreaterThanOrEqual(10)
    expect(waiting.every(({ attempts }) => attempts === 0)).toBe(true)
    const workers = await Promise.all([start({ ROLES: 'worker' }), start({ ROLES: 'worker' })])
    expect(workers.map(({ url }) => url)).toEqual(['', ''])
    await until(async () => (await jobs('ready')).length === 0, { what: 'all jobs to be done' })
    expect((await jobs('done')).filter(({ attempts }) => attempts !== 1)).toEqual([])
    expect(await Promise.all([api, other, ...workers].map((process) => process.stop()))).toEqual([0, 0, 0, 0])
    await expectBooksInOrder(scene)
  })
})
