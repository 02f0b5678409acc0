/** The provider is away, dies, or never answers while customers pay. */
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Service } from '../../src/service.ts'
import { recoverOrders } from '../../src/workers/recover-orders.ts'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { expire, makeDue, orderOf } from '../support/aging.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import { type Client, cart } from '../support/client.ts'
import { startLoad } from '../support/load.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { type SimulatorProcess, simulatorProcess } from '../support/simulator-process.ts'
import { until } from '../support/until.ts'

let simulator: SimulatorProcess
/** With the simulator's process in the place of the one that a scene brings. */
let scene: Scene
let service: Service
let shop: Client
beforeAll(async () => {
  simulator = await simulatorProcess()
  const stage = await startScene()
  service = await stage.start({
    STRIPE_API_BASE: simulator.url,
    PROVIDER_TIMEOUT_MS: '1500',
    CHECKOUT_BUDGET_MS: '3000',
    RECONCILE_AFTER_MS: '100',
  })
  shop = stage.shop.at(service.url)
  scene = { ...stage, books: simulator.books }
})
afterEach(async () => {
  await simulator.books.noFaults()
  await runJobs(service.deps)
  await expectBooksInOrder(scene)
})
afterAll(async () => {
  await scene.stop()
  await simulator.remove()
})

// This one comes first: nobody has ever told who we are.
describe('a provider that is away', () => {
  it('from the start: 503, nothing is stored, and the same key works once it is there', async () => {
    const key = newKey()
    const reply = await shop.checkout(key)
    expect(reply.status).toBe(503)
    expect(reply.json).toMatchObject({ code: 'provider_unavailable', new_key_safe: false })
    expect(reply.headers.has('retry-after')).toBe(true)
    expect(await scene.db.selectFrom('attempts').select('key').execute()).toEqual([])
    await simulator.start()
    expect((await shop.checkout(key)).status).toBe(201)
  })

  it('later: 503, the customer may give up or come back, and recovery sends for nobody', async () => {
    await simulator.kill()
    const [comesBack, givesUp, stays] = [newKey(), newKey(), newKey()]
    for (const key of [comesBack, givesUp, stays]) {
      const reply = await shop.checkout(key)
      expect([reply.status, reply.json.code]).toEqual([503, 'provider_unavailable'])
    }
    expect((await shop.post(`/v1/checkouts/${givesUp}/cancel`)).json.status).toBe('canceled')
    await simulator.start()
    await makeDue(scene.db, stays)
    await recoverOrders(service.deps)
    expect((await orderOf(scene.db, stays)).status).toBe('pending')
    await expire(scene.db, stays)
    await recoverOrders(service.deps)
    expect((await orderOf(scene.db, stays)).status).toBe('canceled')
    expect((await shop.checkout(comesBack)).status).toBe(201)
    expect(await scene.books.payments()).toHaveLength(2)
  })
})

it('a provider that dies again and again under load: every purchase comes to one end, charged once', async () => {
  const load = startLoad(() => shop)
  for (let round = 0; round < 2; round++) {
    const enough = load.purchases.length + 10
    await until(() => load.purchases.length >= enough, { what: 'ten more purchases' })
    await simulator.kill()
    await delay(200)
    await simulator.start()
  }
  await load.end()
  expect(load.wrong).toEqual([])
  for (const { key, body, end } of load.purchases) expect((await shop.checkout(key, body)).text).toBe(end.text)
})

it('a provider that never answers: every client is told to wait, and each is charged once', async () => {
  await simulator.books.fault({ method: 'POST', path: '/v1/payment_intents', fault: 'hang' })
  const keys = Array.from({ length: 30 }, newKey)
  const replies = await Promise.all(keys.map((key) => shop.checkout(key, cart())))
  // A busy machine may leave no time for a call: then nothing was sent.
  for (const { status } of replies) expect([202, 503]).toContain(status)
  expect(replies.some(({ status }) => status === 202)).toBe(true)
  await simulator.books.noFaults()
  for (const key of keys) {
    await until(async () => (await shop.checkout(key, cart())).status === 201, { what: 'the repeat to be told' })
    expect(await simulator.books.paymentsFor(key)).toHaveLength(1)
  }
})
