/** Postgres restarts, dies, loses connections or answers while customers pay. */
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { orderOf } from '../support/aging.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import { cart } from '../support/client.ts'
import { type Load, startLoad } from '../support/load.ts'
import { startProxy } from '../support/proxy.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import type { TcpProxy } from '../support/tcp-proxy.ts'
import { startThrowawayPostgres, type ThrowawayPostgres } from '../support/throwaway-postgres.ts'
import { until } from '../support/until.ts'

/** Leases end soon, so that what an outage has cut off is soon taken over. */
const settings = {
  CHECKOUT_BUDGET_MS: '4000',
  IDEMPOTENCY_LEASE_SECONDS: '5',
  IDEMPOTENCY_WAIT_MS: '3000',
  RECONCILE_AFTER_MS: '200',
}

let postgres: ThrowawayPostgres
let proxy: TcpProxy
let scene: Scene
beforeAll(async () => {
  postgres = await startThrowawayPostgres()
  proxy = await startProxy(postgres.url)
  scene = await startScene({ databaseUrl: proxy.through(postgres.url), settings })
  await scene.books.webhooks({ drop: 1 })
})
afterEach(async () => {
  await scene.books.noFaults()
  // A pool may have to find out that its connections are gone.
  await until(async () => (await scene.shop.get('/v1/products/mug')).status === 200, {
    what: 'the database to be back',
  })
  await runJobs(scene.service.deps)
  await expectBooksInOrder(scene)
})
afterAll(async () => {
  await scene.stop()
  await proxy.close()
  await postgres.stop()
})

/** Some purchases have been made since. */
async function sell(load: Load, more = 12): Promise<void> {
  const enough = load.purchases.length + more
  await until(() => load.purchases.length >= enough, { what: `${more} more purchases` })
}

/** Nobody was told anything wrong, and what was told as final is told again, byte for byte. */
async function expectPromisesKept(load: Load): Promise<void> {
  expect(load.wrong).toEqual([])
  for (const { key, body, end } of load.purchases) {
    const repeat = await scene.shop.checkout(key, body)
    expect([repeat.status, repeat.text, repeat.replayed]).toEqual([end.status, end.text, true])
  }
}

describe('under load', () => {
  it('Postgres is restarted: clients see answers or a 503 that tells when to come back', async () => {
    const load = startLoad(() => scene.shop)
    for (let round = 0; round < 2; round++) {
      await sell(load)
      await postgres.restart()
    }
    await sell(load)
    await load.end()
    await expectPromisesKept(load)
  })

  it('Postgres is killed: nothing that a client was told is lost', async () => {
    const load = startLoad(() => scene.shop)
    for (let round = 0; round < 2; round++) {
      await sell(load)
      await postgres.kill9()
      await delay(300)
      await postgres.restart()
    }
    await sell(load)
    await load.end()
    await expectPromisesKept(load)
  })

  it('connections are cut again and again', async () => {
    const load = startLoad(() => scene.shop)
    let cut = 0
    for (let round = 0; round < 10; round++) {
      await sell(load, 4)
      cut += proxy.cutAll()
    }
    expect(cut).toBeGreaterThan(9)
    await sell(load)
    await load.end()
    await expectPromisesKept(load)
  })
})

describe('an answer that is lost after its commit', () => {
  const lost = [
    ['the claim', 'claim_checkouts'],
    ['the settle', 'settle_orders'],
  ] as const
  it.each(lost)('of %s is found again: the client gets its first answer', async (_what, statement) => {
    const key = newKey()
    const isLost = proxy.loseAnswer(statement)
    const reply = await scene.shop.checkout(key)
    await isLost
    expect([reply.status, reply.replayed]).toEqual([201, false])
    const { order_id } = await orderOf(scene.db, key)
    const calls = await scene.db
      .selectFrom('provider_calls')
      .select('outcome')
      .where('order_id', '=', order_id)
      .execute()
    expect(calls).toEqual([{ outcome: 'succeeded' }])
    const transitions = await scene.db
      .selectFrom('order_transitions')
      .selectAll()
      .where('order_id', '=', order_id)
      .execute()
    expect(transitions).toHaveLength(1)
    const repeat = await scene.shop.checkout(key)
    expect([repeat.text, repeat.replayed]).toEqual([reply.text, true])
  })

  it('of the settle of what was not sent: the client is told to come back, and the same key goes on', async () => {
    const key = newKey()
    await scene.books.fault({ method: 'POST', path: '/v1/payment_intents', fault: 'rate_limit', times: 1 })
    const isLost = proxy.loseAnswer('settle_orders')
    const reply = await scene.shop.checkout(key)
    await isLost
    expect([reply.status, reply.json.code]).toEqual([503, 'provider_unavailable'])
    expect((await scene.shop.checkout(key)).status).toBe(201)
  })

  it('of a decline: the stock is given back once', async () => {
    const before = await available('poster')
    const isLost = proxy.loseAnswer('settle_orders')
    const reply = await scene.shop.checkout(
      newKey(),
      cart({ items: [{ sku: 'poster', quantity: 3 }], payment_method: 'pm_card_chargeDeclined' }),
    )
    await isLost
    expect(reply.status).toBe(402)
    expect(await available('poster')).toBe(before)
  })

  it('of taking a lease over: it ends by itself, and the same key goes on', async () => {
    const key = newKey()
    await scene.books.fault({ method: 'POST', path: '/v1/payment_intents', fault: 'rate_limit', times: 1 })
    expect((await scene.shop.checkout(key)).status).toBe(503)
    const isLost = proxy.loseAnswer('take_lease')
    const replies = [await scene.shop.checkout(key)]
    await isLost
    await until(
      async () => {
        const reply = await scene.shop.checkout(key)
        replies.push(reply)
        return reply.status === 201
      },
      { what: 'the lease to end' },
    )
    for (const reply of replies) expect([201, 409, 503]).toContain(reply.status)
  })
})

async function available(sku: string): Promise<number> {
  return (await scene.shop.get(`/v1/products/${sku}`)).json.available
}
