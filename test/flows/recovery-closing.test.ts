/** An order ends unpaid only when its payment can't succeed any more, and money that comes all the same goes back once. */
import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Deps } from '../../src/deps.ts'
import { charge, deadlineFor } from '../../src/flows/saga/provider-calls.ts'
import { type SettleResult, settle } from '../../src/flows/saga/settlement.ts'
import { recoverOrders } from '../../src/workers/recover-orders.ts'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { endSending, expire, makeDue, orderOf } from '../support/aging.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import { type Client, cart, type Reply } from '../support/client.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { until } from '../support/until.ts'

const charges = { method: 'POST', path: '/v1/payment_intents' } as const
const threeDSecure = { payment_method: 'pm_card_threeDSecure2Required' }

let scene: Scene
let deps: Deps
/** Gives up on the provider soon, so that doubt arises soon. */
let hasty: Client
/** An order stays for a person. */
let unfinished = false
beforeAll(async () => {
  scene = await startScene()
  deps = scene.service.deps
  hasty = scene.shop.at((await scene.start({ PROVIDER_TIMEOUT_MS: '300', CHECKOUT_BUDGET_MS: '1000' })).url)
  await scene.books.webhooks({ drop: 1 })
})
afterEach(async () => {
  await scene.books.noFaults()
  await expectBooksInOrder(scene, unfinished ? { unfinished: true } : {})
})
afterAll(() => scene.stop())

async function waitingForCustomer(overrides: Record<string, unknown> = {}): Promise<{ key: string; intent: string }> {
  const key = newKey()
  const reply = await scene.shop.checkout(key, cart({ ...threeDSecure, ...overrides }))
  expect(reply.status).toBe(202)
  return { key, intent: reply.json.payment.reference }
}

/** A charge of which nobody knows what became. */
async function inDoubt(overrides: Record<string, unknown> = {}): Promise<string> {
  const key = newKey()
  await scene.books.fault({ ...charges, fault: 'error_after', times: 1 })
  expect((await scene.shop.checkout(key, cart(overrides))).status).toBe(202)
  return key
}

/** A charge that never arrived, of which nobody knows that. */
async function neverArrived(overrides: Record<string, unknown> = {}): Promise<string> {
  const key = newKey()
  await scene.books.fault({ ...charges, fault: 'drop_before' })
  // A busy machine may leave no time for a first call: then nothing was sent, and the same key goes on.
  const { status } = await until(async () => {
    const reply = await hasty.checkout(key, cart(overrides))
    return reply.status === 503 ? undefined : reply
  })
  expect(status).toBe(202)
  await scene.books.noFaults()
  return key
}

function cancel(key: string): Promise<Reply> {
  return scene.shop.post(`/v1/checkouts/${key}/cancel`)
}

async function statusAtProvider(key: string): Promise<string | undefined> {
  return (await scene.books.paymentsFor(key))[0]?.status
}

async function transfersOf(key: string): Promise<{ kind: string; amount: number }[]> {
  const { order_id } = await orderOf(scene.db, key)
  return scene.db
    .selectFrom('ledger_transfers')
    .select(['kind', 'amount'])
    .where('order_id', '=', order_id)
    .orderBy('kind')
    .execute()
}

describe('an order that waits for its customer', () => {
  it('ends as a decline when 3-D Secure fails, closed at the provider first', async () => {
    const { key, intent } = await waitingForCustomer()
    await scene.books.act(intent, 'fail')
    await makeDue(scene.db, key)
    const repeat = await scene.shop.checkout(key, cart(threeDSecure))
    expect(repeat.status).toBe(402)
    expect(repeat.json).toMatchObject({ code: 'card_declined', new_key_safe: true })
    expect(await statusAtProvider(key)).toBe('canceled')
  })

  it('waits on while the provider will not close it', async () => {
    const { key, intent } = await waitingForCustomer()
    await scene.books.act(intent, 'fail')
    await scene.books.fault({ method: 'POST', path: `/v1/payment_intents/${intent}/cancel`, fault: 'drop_before' })
    await makeDue(scene.db, key)
    await recoverOrders(deps)
    expect((await orderOf(scene.db, key)).status).toBe('requires_action')
    await scene.books.noFaults()
    await makeDue(scene.db, key)
    await recoverOrders(deps)
    expect((await orderOf(scene.db, key)).status).toBe('payment_failed')
  })

  it('expires: closed at the provider, then here, and stock and cart are free', async () => {
    const before = await available('tee')
    const cartId = newKey()
    const body = { items: [{ sku: 'tee', quantity: 2 }], cart_id: cartId }
    const { key, intent } = await waitingForCustomer(body)
    expect(await available('tee')).toBe(before - 2)
    await expire(scene.db, key)
    await recoverOrders(deps)
    expect((await orderOf(scene.db, key)).status).toBe('canceled')
    expect(await available('tee')).toBe(before)
    await expect(scene.books.act(intent, 'succeed')).rejects.toThrow()
    const repeat = await scene.shop.checkout(key, cart({ ...threeDSecure, ...body }))
    expect([repeat.status, repeat.json.code, repeat.replayed]).toEqual([409, 'checkout_canceled', true])
    expect((await scene.shop.checkout(newKey(), cart(body))).status).toBe(201)
  })

  it('that has succeeded by the time it expires is paid', async () => {
    const { key, intent } = await waitingForCustomer()
    await scene.books.act(intent, 'succeed')
    await expire(scene.db, key)
    await recoverOrders(deps)
    expect((await orderOf(scene.db, key)).status).toBe('paid')
  })

  it('is asked about when it expires, however far the pauses have grown', async () => {
    const { key } = await waitingForCustomer()
    await scene.db
      .updateTable('orders')
      .set({ asks: 12, expires_at: sql`clock_timestamp() + interval '3 minutes'` })
      .where('attempt_key', '=', key)
      .execute()
    await makeDue(scene.db, key)
    await recoverOrders(deps)
    const order = await orderOf(scene.db, key)
    expect(order.next_ask_at).toEqual(order.expires_at)
    await expire(scene.db, key)
    await recoverOrders(deps)
  })
})

describe('a customer who gives up', () => {
  it('while 3-D Secure waits: closed at the provider, then here', async () => {
    const { key, intent } = await waitingForCustomer()
    const reply = await cancel(key)
    expect([reply.status, reply.json.status]).toEqual([200, 'canceled'])
    await expect(scene.books.act(intent, 'succeed')).rejects.toThrow()
    expect((await cancel(key)).json.status).toBe('canceled')
    expect((await scene.shop.checkout(key, cart(threeDSecure))).json.code).toBe('checkout_canceled')
  })

  it('after paying is told so', async () => {
    const { key, intent } = await waitingForCustomer()
    await scene.books.act(intent, 'succeed')
    const reply = await cancel(key)
    expect(reply.status).toBe(409)
    expect(reply.json).toMatchObject({ code: 'checkout_already_settled', state: 'settled', new_key_safe: false })
    expect((await orderOf(scene.db, key)).status).toBe('paid')
  })

  it('of what was never sent: the provider is not asked', async () => {
    const key = newKey()
    await scene.books.fault({ ...charges, fault: 'rate_limit', times: 1 })
    expect((await scene.shop.checkout(key)).status).toBe(503)
    await scene.books.fault({ method: '*', path: '/v1', fault: 'drop_before' })
    expect((await cancel(key)).json.status).toBe('canceled')
  })

  it('of what is in doubt: a payment is not sent again, and where it has been made the order is paid', async () => {
    const key = await inDoubt()
    const requests = (await scene.books.paymentsFor(key))[0]?.requests
    expect((await cancel(key)).status).toBe(409)
    expect((await orderOf(scene.db, key)).status).toBe('paid')
    expect((await scene.books.paymentsFor(key))[0]?.requests).toBe(requests)
  })

  it('of a hold in doubt: the hold is let go', async () => {
    const key = await inDoubt({ capture: 'manual' })
    expect((await cancel(key)).json.status).toBe('canceled')
    expect(await scene.books.paymentsFor(key)).toMatchObject([{ status: 'canceled', amount_capturable: 0 }])
  })

  it('while the provider is away: the order stays open and is never sent again, and recovery closes it', async () => {
    const { key } = await waitingForCustomer()
    await scene.books.fault({ method: '*', path: '/v1', fault: 'drop_before' })
    expect((await cancel(key)).status).toBe(202)
    expect((await orderOf(scene.db, key)).status).toBe('requires_action')
    await scene.books.noFaults()
    await makeDue(scene.db, key)
    await recoverOrders(deps)
    expect((await orderOf(scene.db, key)).status).toBe('canceled')
    expect(await statusAtProvider(key)).toBe('canceled')
  })

  it('before anything is known: what was sent is waited for, and the repeat does not send', async () => {
    const key = await neverArrived()
    expect((await cancel(key)).status).toBe(202)
    await makeDue(scene.db, key)
    expect((await scene.shop.checkout(key)).status).toBe(202)
    expect(await scene.books.paymentsFor(key)).toEqual([])
    await endSending(scene.db, key)
    expect((await cancel(key)).json.status).toBe('canceled')
  })
})

describe('what comes after the end', () => {
  /** An order that ended because nothing of it was found, and the answer that its frozen first owner gets now. */
  async function endedAndSentLate(
    overrides: Record<string, unknown> = {},
  ): Promise<{ key: string; late: () => Promise<SettleResult> }> {
    const key = await neverArrived(overrides)
    const frozen = await orderOf(scene.db, key)
    await cancel(key)
    await endSending(scene.db, key)
    await recoverOrders(deps)
    expect((await orderOf(scene.db, key)).status).toBe('canceled')
    const { outcome, calls } = await charge(deps, frozen, deadlineFor(deps, performance.now()))
    return { key, late: () => settle(deps, frozen, outcome, { cause: 'answer', actor: 'req_late', calls }) }
  }

  it('money is refunded once, both ways in the ledger, and the order stays closed', async () => {
    const { key, late } = await endedAndSentLate()
    const told = await late()
    expect(told.applied).toBe(false)
    expect(JSON.parse(told.answer.body)).toMatchObject({ code: 'checkout_canceled' })
    await late()
    await runJobs(deps)
    await late()
    await runJobs(deps)
    expect(await transfersOf(key)).toEqual([
      { kind: 'late_capture', amount: 1250 },
      { kind: 'late_refund', amount: 1250 },
    ])
    expect(await scene.books.paymentsFor(key)).toMatchObject([{ refunds: [{ amount: 1250, status: 'succeeded' }] }])
    expect((await orderOf(scene.db, key)).status).toBe('canceled')
  })

  it('a hold is let go', async () => {
    const { key, late } = await endedAndSentLate({ capture: 'manual' })
    await late()
    await runJobs(deps)
    expect(await scene.books.paymentsFor(key)).toMatchObject([{ status: 'canceled', amount_capturable: 0 }])
    expect(await transfersOf(key)).toEqual([])
  })

  it('a payment that could still succeed is closed', async () => {
    const { key, late } = await endedAndSentLate(threeDSecure)
    await late()
    await runJobs(deps)
    expect(await statusAtProvider(key)).toBe('canceled')
  })

  it('a decline leaves nothing open behind', async () => {
    const { key, late } = await endedAndSentLate({ payment_method: 'pm_card_chargeDeclined' })
    await late()
    await runJobs(deps)
    expect(await statusAtProvider(key)).toBe('canceled')
    expect((await orderOf(scene.db, key)).status).toBe('canceled')
  })
})

describe('money that does not match its order', () => {
  it('goes to suspense once, the order waits for a person, and nothing closes it over the money', async () => {
    unfinished = true
    const key = await neverArrived()
    const order = await orderOf(scene.db, key)
    await pay({ amount: '1249', 'metadata[tenant]': order.tenant_id, 'metadata[order]': order.order_id })
    await scene.db.updateTable('orders').set({ send_is_pointless: true }).where('attempt_key', '=', key).execute()
    await makeDue(scene.db, key)
    await recoverOrders(deps)
    expect(await orderOf(scene.db, key)).toMatchObject({
      status: 'needs_reconcile',
      reconcile_reason: 'amount_mismatch',
    })
    await expire(scene.db, key)
    await recoverOrders(deps)
    expect((await cancel(key)).status).toBe(202)
    expect((await orderOf(scene.db, key)).status).toBe('needs_reconcile')
    expect(await transfersOf(key)).toEqual([{ kind: 'mismatch', amount: 1249 }])
  })
})

/** What somebody else with our credentials charges. */
async function pay(parameters: Record<string, string>): Promise<void> {
  const response = await fetch(`${scene.simulatorUrl}/v1/payment_intents`, {
    method: 'POST',
    headers: { authorization: 'Bearer sk_test_scene' },
    body: new URLSearchParams({
      currency: 'eur',
      'payment_method_types[]': 'card',
      payment_method: 'pm_card_visa',
      confirm: 'true',
      ...parameters,
    }),
  })
  expect(response.status).toBe(200)
}

async function available(sku: string): Promise<number> {
  return (await scene.shop.get(`/v1/products/${sku}`)).json.available
}
