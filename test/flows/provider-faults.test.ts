/**
 * Every fault of the simulator at every call of the saga. While it lasts nothing may be wrong; once it is over and recovery
 * has run nothing may be unfinished, and each order has ended as the provider's books say.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { recoverOrders } from '../../src/workers/recover-orders.ts'
import { endLease, endSending, expire, makeDue, orderOf } from '../support/aging.ts'
import { audit, expectBooksInOrder } from '../support/audit.ts'
import type { BookedPayment, FaultRule } from '../support/books.ts'
import { type Client, cart } from '../support/client.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { until } from '../support/until.ts'

const faults: Pick<FaultRule, 'fault' | 'latency_ms'>[] = [
  { fault: 'latency', latency_ms: 700 },
  { fault: 'drop_before' },
  { fault: 'drop_after' },
  { fault: 'error_before' },
  { fault: 'error_after' },
  { fault: 'rate_limit' },
  { fault: 'hang' },
]
const payments = {
  paid: cart(),
  held: cart({ capture: 'manual' }),
  declined: cart({ payment_method: 'pm_card_chargeDeclined' }),
  authenticated: cart({ payment_method: 'pm_card_threeDSecure2Required' }),
}

let scene: Scene
/** Waits for no answer as long as the faults let it. */
let hasty: { shop: Client; recover: () => Promise<number> }
beforeAll(async () => {
  scene = await startScene()
  const service = await scene.start({
    PROVIDER_TIMEOUT_MS: '400',
    CHECKOUT_BUDGET_MS: '1000',
    RECONCILE_AFTER_MS: '20',
  })
  hasty = { shop: scene.shop.at(service.url), recover: () => recoverOrders(service.deps) }
  // Cold starts must not eat the short budget.
  await hasty.shop.checkout(newKey())
})
afterEach(async () => {
  await scene.books.noFaults()
  await expectBooksInOrder(scene)
})
afterAll(() => scene.stop())

describe.each(faults)('$fault', (fault) => {
  it('at the charge: each order ends as the books say', async () => {
    await scene.books.fault({ method: 'POST', path: '/v1/payment_intents', ...fault })
    const keys = await checkoutAll()
    await nothingIsWrong(keys)
    await scene.books.noFaults()
    await finishAll(keys)
  })

  it('at the charge, once: the same request makes up for it where it can', async () => {
    await scene.books.fault({ method: 'POST', path: '/v1/payment_intents', ...fault, times: 2 })
    const keys = await checkoutAll()
    await nothingIsWrong(keys)
    await scene.books.noFaults()
    await finishAll(keys)
  })

  it('at a look by id: a customer who has acted is settled when the provider can be read again', async () => {
    const [good, bad] = [await threeD(), await threeD()]
    await scene.books.act((await orderOf(scene.db, good)).intent_id as string, 'succeed')
    await scene.books.act((await orderOf(scene.db, bad)).intent_id as string, 'fail')
    await scene.books.fault({ method: 'GET', path: '/v1/payment_intents/', ...fault })
    await nothingIsWrong([good, bad])
    await scene.books.noFaults()
    await finishAll([good, bad])
    expect((await orderOf(scene.db, good)).status).toBe('paid')
    expect((await orderOf(scene.db, bad)).status).toBe('payment_failed')
  })

  it('at a search: a charge whose answer was lost for good is found when the list can be read again, and absence is never made up', async () => {
    const keys = await inDoubtForGood()
    await scene.books.fault({ method: 'GET', path: '/v1/payment_intents', ...fault })
    for (const key of keys) await endSending(scene.db, key)
    await nothingIsWrong(keys)
    await scene.books.noFaults()
    await finishAll(keys)
    const [charged, absent] = keys as [string, string]
    expect((await orderOf(scene.db, charged)).status).toBe('paid')
    expect((await orderOf(scene.db, absent)).status).toBe('canceled')
  })

  it('at the closing of an expired payment: it is canceled there before it is here', async () => {
    const keys = [await threeD(), await threeD()]
    await scene.books.fault({ method: 'POST', path: '/v1/payment_intents/', ...fault })
    for (const key of keys) await expire(scene.db, key)
    await nothingIsWrong(keys)
    for (const key of keys) {
      const [payment] = await scene.books.paymentsFor(key)
      if ((await orderOf(scene.db, key)).status === 'canceled') expect(payment?.status).toBe('canceled')
    }
    await scene.books.noFaults()
    await finishAll(keys, 'leave')
    for (const key of keys) expect((await orderOf(scene.db, key)).status).toBe('canceled')
  })
})

/** One checkout of every kind, at the same time. */
async function checkoutAll(): Promise<string[]> {
  return Promise.all(
    Object.values(payments).map(async (body) => {
      const key = newKey()
      const reply = await hasty.shop.checkout(key, body)
      expect([201, 202, 402, 503]).toContain(reply.status)
      return key
    }),
  )
}

async function threeD(): Promise<string> {
  const key = newKey()
  expect((await scene.shop.checkout(key, payments.authenticated)).json.status).toBe('requires_action')
  return key
}

/** One that was charged and one that was not, of which the key tells nothing for ever. */
async function inDoubtForGood(): Promise<string[]> {
  const keys: string[] = []
  for (const fault of ['error_after', 'error_before'] as const) {
    const key = newKey()
    await scene.books.fault({ method: 'POST', path: '/v1/payment_intents', fault })
    expect((await scene.shop.checkout(key)).json.status).toBe('needs_reconcile')
    await scene.books.noFaults()
    keys.push(key)
  }
  return keys
}

/** Everybody tries while the fault lasts: recovery, and each customer. */
async function nothingIsWrong(keys: string[]): Promise<void> {
  for (const key of keys) await makeDue(scene.db, key)
  await hasty.recover()
  for (const key of keys) await makeDue(scene.db, key)
  await Promise.all(keys.map(async (key) => repeat(key)))
  expect((await audit(scene)).filter(({ severity }) => severity === 'wrong')).toEqual([])
}

/** The fault is over, and time passes: customers act or leave, leases and waits end, recovery runs. */
async function finishAll(keys: string[], customers: 'act' | 'leave' = 'act'): Promise<void> {
  await until(
    async () => {
      for (const key of keys) {
        await endLease(scene.db, key)
        if (customers === 'act') await act(key)
        if (await isDoubtForGood(key)) await endSending(scene.db, key)
        // Where surely nothing was sent, only the customer goes on.
        const attempt = await scene.db
          .selectFrom('attempts')
          .select('state')
          .where('key', '=', key)
          .executeTakeFirstOrThrow()
        if (attempt.state === 'resumable') await repeat(key)
      }
      await recoverOrders(scene.service.deps)
      const orders = await Promise.all(keys.map((key) => orderOf(scene.db, key)))
      return orders.every(({ status }) => !['pending', 'requires_action', 'needs_reconcile'].includes(status))
    },
    { what: 'every order to end' },
  )
  for (const key of keys) {
    const { status } = await orderOf(scene.db, key)
    expect(endsOf(await scene.books.paymentsFor(key)), key).toContain(status)
    const calls = (await scene.books.chargesSeen(key)).length
    const first = await repeat(key)
    const again = await repeat(key)
    expect([again.text, again.replayed]).toEqual([first.text, true])
    expect(await scene.books.chargesSeen(key)).toHaveLength(calls)
  }
}

/** The customer finishes 3-D Secure, where the order waits for it and they have not done it yet. */
async function act(key: string): Promise<void> {
  const { status, intent_id } = await orderOf(scene.db, key)
  if (status !== 'requires_action' || intent_id === null) return
  const [payment] = await scene.books.paymentsFor(key)
  if (payment?.status === 'requires_action') await scene.books.act(intent_id, 'succeed')
}

async function repeat(key: string) {
  const { payment_method, capture } = await orderOf(scene.db, key)
  return hasty.shop.checkout(key, cart({ payment_method, capture }))
}

async function isDoubtForGood(key: string): Promise<boolean> {
  const { send_is_pointless, intent_id } = await orderOf(scene.db, key)
  return send_is_pointless && intent_id === null
}

/** What an order may be, by the payments that there are for it. */
function endsOf([payment, ...others]: BookedPayment[]): string[] {
  expect(others).toEqual([])
  switch (payment?.status) {
    case undefined:
      return ['canceled']
    case 'succeeded':
      return ['paid']
    case 'requires_capture':
      return ['authorized']
    case 'canceled':
      return ['canceled', 'payment_failed']
    default:
      return ['payment_failed']
  }
}
