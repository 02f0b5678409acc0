import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { requeueJob } from '../../src/store/jobs.ts'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { orderOf } from '../support/aging.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import { cart } from '../support/client.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'

let scene: Scene
beforeAll(async () => {
  scene = await startScene({ settings: { PROVIDER_TIMEOUT_MS: '700', CHECKOUT_BUDGET_MS: '1500' } })
})
afterAll(() => scene.stop())
beforeEach(() => scene.books.noFaults())

const work = () => runJobs(scene.service.deps)

async function passTime(): Promise<void> {
  await scene.db
    .updateTable('jobs')
    .set({ run_at: new Date(0) })
    .where('state', '=', 'ready')
    .execute()
}

async function declined() {
  const key = newKey()
  await scene.shop.checkout(key, cart({ payment_method: 'pm_card_chargeDeclined' }))
  return orderOf(scene.db, key)
}

async function statusAtProvider(key: string): Promise<string | undefined> {
  return (await scene.books.paymentsFor(key))[0]?.status
}

function closing(intentId: string | null) {
  return scene.db
    .selectFrom('jobs')
    .select(['state', 'last_error'])
    .where('topic', '=', 'close_payment')
    .where('business_id', '=', intentId ?? '')
    .executeTakeFirst()
}

describe('a payment that a decline left behind', () => {
  it('is canceled at the provider, so that it can’t succeed later', async () => {
    const order = await declined()
    expect(await statusAtProvider(order.attempt_key)).toBe('requires_payment_method')
    await work()
    expect(await statusAtProvider(order.attempt_key)).toBe('canceled')
    expect(await closing(order.intent_id)).toEqual({ state: 'done', last_error: null })
    await requeueJob(scene.db, 'ten_demo', 'close_payment', order.intent_id as string)
    await work()
    expect(await closing(order.intent_id)).toEqual({ state: 'done', last_error: null })
  })

  it.each(['drop_after', 'drop_before', 'error_after', 'hang', 'rate_limit'] as const)(
    'is canceled in the end where the provider answers with %s',
    async (fault) => {
      const order = await declined()
      await scene.books.fault({
        method: 'POST',
        path: `/v1/payment_intents/${order.intent_id}/cancel`,
        fault,
        times: 1,
      })
      await work()
      await passTime()
      await work()
      expect(await statusAtProvider(order.attempt_key)).toBe('canceled')
      expect(await closing(order.intent_id)).toEqual({ state: 'done', last_error: null })
    },
  )

  it('that has succeeded meanwhile is booked and given back', async () => {
    await scene.books.webhooks({ drop: 1 })
    const order = await declined()
    await fetch(`${scene.simulatorUrl}/v1/payment_intents/${order.intent_id}/confirm`, {
      method: 'POST',
      headers: { authorization: 'Bearer sk_test_scene' },
      body: new URLSearchParams({ payment_method: 'pm_card_visa' }),
    })
    await work()
    await scene.books.webhooks({})
    const [payment] = await scene.books.paymentsFor(order.attempt_key)
    expect(payment?.refunds).toMatchObject([{ amount: 1250, status: 'succeeded' }])
    expect((await orderOf(scene.db, order.attempt_key)).status).toBe('payment_failed')
  })
})

describe('closing', () => {
  it('never touches the payment that an order lives on', async () => {
    const keys = [newKey(), newKey(), newKey()]
    await scene.shop.checkout(keys[0] as string, cart())
    await scene.shop.checkout(keys[1] as string, cart({ capture: 'manual' }))
    await scene.shop.checkout(keys[2] as string, cart({ payment_method: 'pm_card_threeDSecure2Required' }))
    const orders = await Promise.all(keys.map((key) => orderOf(scene.db, key)))
    await scene.db
      .insertInto('jobs')
      .values(
        orders.map((order) => ({
          tenant_id: 'ten_demo',
          topic: 'close_payment',
          business_id: order.intent_id as string,
          payload: { order_id: order.order_id },
          lease_token: null,
          last_error: null,
          finished_at: null,
        })),
      )
      .execute()
    await work()
    expect(await Promise.all(keys.map(statusAtProvider))).toEqual(['succeeded', 'requires_capture', 'requires_action'])
    for (const order of orders) expect(await closing(order.intent_id)).toEqual({ state: 'done', last_error: null })
  })

  it('of an order that is not there is given up', async () => {
    await scene.db
      .insertInto('jobs')
      .values({
        tenant_id: 'ten_demo',
        topic: 'close_payment',
        business_id: 'pi_unknown',
        payload: { order_id: 'ord_unknown' },
        lease_token: null,
        last_error: null,
        finished_at: null,
      })
      .execute()
    await work()
    expect(await closing('pi_unknown')).toEqual({ state: 'dead', last_error: 'order_missing' })
  })

  it('leaves the books in order', async () => {
    await passTime()
    await work()
    await expectBooksInOrder(scene, { unfinished: true })
  })
})
