/** When recovery and a client's repeat may send a charge again, and when they only look. */
import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Deps } from '../../src/deps.ts'
import { recoverOrders } from '../../src/workers/recover-orders.ts'
import { endLease, endSending, expire, makeDue, makeOlder, orderOf } from '../support/aging.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import type { FaultRule } from '../support/books.ts'
import { type Client, cart, type Reply } from '../support/client.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { until } from '../support/until.ts'

const charges = { method: 'POST', path: '/v1/payment_intents' } as const

let scene: Scene
let deps: Deps
/** Gives up on the provider soon, so that doubt arises soon. */
let hasty: Client
beforeAll(async () => {
  scene = await startScene()
  deps = scene.service.deps
  hasty = scene.shop.at((await scene.start({ PROVIDER_TIMEOUT_MS: '300', CHECKOUT_BUDGET_MS: '1000' })).url)
})
afterEach(async () => {
  await scene.books.noFaults()
  await expectBooksInOrder(scene)
})
afterAll(() => scene.stop())

/** A checkout whose charge met this fault on every try, so that nobody knows what became of it. */
async function leaveInDoubt(fault: FaultRule['fault'], overrides: Record<string, unknown> = {}): Promise<string> {
  const key = newKey()
  await scene.books.fault({ ...charges, fault })
  const reply = await until(
    async () => {
      const reply: Reply = await hasty.checkout(key, cart(overrides))
      // A busy machine may leave no time for a first call: then nothing was sent, and the same key goes on.
      return reply.status === 503 ? undefined : reply
    },
    { what: 'an answer in doubt' },
  )
  await scene.books.noFaults()
  expect(reply.status).toBe(202)
  expect(reply.json.status).toBe('needs_reconcile')
  return key
}

async function callsOf(key: string): Promise<string[]> {
  const rows = await scene.db
    .selectFrom('provider_calls')
    .innerJoin('orders', (join) =>
      join
        .onRef('orders.tenant_id', '=', 'provider_calls.tenant_id')
        .onRef('orders.order_id', '=', 'provider_calls.order_id'),
    )
    .select('operation')
    .where('attempt_key', '=', key)
    .orderBy('started_at')
    .execute()
  return rows.map((row) => row.operation)
}

describe('recovery sends the charge again', () => {
  it('within its window, with the same key and parameters: it is the first to arrive', async () => {
    const key = await leaveInDoubt('drop_before')
    expect(await scene.books.paymentsFor(key)).toEqual([])
    await makeDue(scene.db, key)
    expect(await recoverOrders(deps)).toBe(1)
    expect(await orderOf(scene.db, key)).toMatchObject({ status: 'paid', captured: 1250 })
    const order = await orderOf(scene.db, key)
    expect(await scene.books.paymentsFor(key)).toMatchObject([
      {
        idempotency_key: `ten_demo:${key}`,
        metadata: { tenant: 'ten_demo', order: order.order_id, key },
        amount_received: 1250,
      },
    ])
    const repeat = await scene.shop.checkout(key)
    expect([repeat.status, repeat.replayed]).toEqual([201, true])
  })

  it('within its window, where it had arrived: the provider replays it', async () => {
    const key = await leaveInDoubt('drop_after')
    await makeDue(scene.db, key)
    await recoverOrders(deps)
    expect((await orderOf(scene.db, key)).status).toBe('paid')
    expect(await scene.books.paymentsFor(key)).toHaveLength(1)
  })

  it('of a process that died while it held the lease', async () => {
    const key = newKey()
    const lost = await scene.shop.checkout(key)
    expect(lost.status).toBe(201)
    // As it was when the process died after its call: claimed, charged, not settled.
    await pretendUnsettled(key)
    await endLease(scene.db, key)
    expect(await recoverOrders(deps)).toBe(1)
    expect((await orderOf(scene.db, key)).status).toBe('paid')
    expect(await scene.books.paymentsFor(key)).toHaveLength(1)
  })
})

describe('recovery only looks', () => {
  it('after its window: finds in the list what had arrived', async () => {
    const key = await leaveInDoubt('drop_after')
    await makeOlder(scene.db, key, 6)
    const before = await scene.books.paymentsFor(key)
    await recoverOrders(deps)
    expect((await orderOf(scene.db, key)).status).toBe('paid')
    expect((await callsOf(key)).at(-1)).toBe('payment.list')
    expect((await scene.books.paymentsFor(key))[0]?.requests).toBe(before[0]?.requests)
  })

  it('after its window: what never arrived ends the order once nothing sent can still arrive, and not before', async () => {
    const cartId = newKey()
    const before = await available('tee')
    const key = await leaveInDoubt('drop_before', { cart_id: cartId, items: [{ sku: 'tee', quantity: 2 }] })
    await makeOlder(scene.db, key, 6)
    await recoverOrders(deps)
    expect((await orderOf(scene.db, key)).status).toBe('needs_reconcile')
    expect(await available('tee')).toBe(before - 2)

    await endSending(scene.db, key)
    await recoverOrders(deps)
    expect((await orderOf(scene.db, key)).status).toBe('canceled')
    expect(await scene.books.paymentsFor(key)).toEqual([])
    expect(await available('tee')).toBe(before)
    const body = cart({ cart_id: cartId, items: [{ sku: 'tee', quantity: 2 }] })
    const repeat = await scene.shop.checkout(key, body)
    expect(repeat.status).toBe(409)
    expect(repeat.json).toMatchObject({ code: 'checkout_canceled', new_key_safe: true })
    expect((await scene.shop.checkout(newKey(), body)).status).toBe(201)
  })

  it('once the provider has replayed a stored failure, which it will do for ever', async () => {
    const key = newKey()
    await scene.books.fault({ ...charges, fault: 'error_after', times: 1 })
    expect((await scene.shop.checkout(key)).status).toBe(202)
    await makeDue(scene.db, key)
    expect((await scene.shop.checkout(key)).status).toBe(202)
    expect(await orderOf(scene.db, key)).toMatchObject({ status: 'needs_reconcile', send_is_pointless: true })
    const [payment] = await scene.books.paymentsFor(key)
    await makeDue(scene.db, key)
    expect((await scene.shop.checkout(key)).status).toBe(201)
    expect((await scene.books.paymentsFor(key))[0]?.requests).toBe(payment?.requests)
  })

  it('where the provider knows the key with other parameters', async () => {
    const key = newKey()
    await sendDirectly(`ten_demo:${key}`, { amount: '999' })
    expect((await scene.shop.checkout(key)).status).toBe(202)
    expect(await orderOf(scene.db, key)).toMatchObject({
      reconcile_reason: 'idempotency_error',
      send_is_pointless: true,
    })
    await endSending(scene.db, key)
    await recoverOrders(deps)
    expect((await orderOf(scene.db, key)).status).toBe('canceled')
    expect((await callsOf(key)).filter((operation) => operation === 'payment.create')).toHaveLength(1)
  })

  it('where it is older than the claim and cannot build its parameters', async () => {
    const key = await leaveInDoubt('drop_after')
    await scene.db.updateTable('orders').set({ parameter_version: 99 }).where('attempt_key', '=', key).execute()
    await makeDue(scene.db, key)
    expect((await scene.shop.checkout(key)).status).toBe(201)
    expect((await callsOf(key)).at(-1)).toBe('payment.list')
  })

  it('by its id, where an answer told which payment it is; while it is under way the order waits', async () => {
    const key = newKey()
    expect((await scene.shop.checkout(key, cart({ payment_method: 'pm_card_sim_processing' }))).status).toBe(202)
    const order = await orderOf(scene.db, key)
    expect(order).toMatchObject({ status: 'needs_reconcile', reconcile_reason: 'processing' })
    expect(order.intent_id).toMatch(/^pi_/)
    await makeDue(scene.db, key)
    await recoverOrders(deps)
    expect(await orderOf(scene.db, key)).toMatchObject({ status: 'needs_reconcile', asks: order.asks + 1 })
    await scene.books.act(order.intent_id ?? '', 'succeed')
    await makeDue(scene.db, key)
    await recoverOrders(deps)
    expect((await orderOf(scene.db, key)).status).toBe('paid')
    expect(await callsOf(key)).toEqual(['payment.create', 'payment.retrieve', 'payment.retrieve'])
  })

  it('and closes at the provider what a lost decline left behind', async () => {
    const key = await leaveInDoubt('drop_after', { payment_method: 'pm_card_chargeDeclinedInsufficientFunds' })
    await makeOlder(scene.db, key, 6)
    await recoverOrders(deps)
    expect(await orderOf(scene.db, key)).toMatchObject({
      status: 'payment_failed',
      decline_code: 'insufficient_funds',
    })
    expect((await scene.books.paymentsFor(key))[0]?.status).toBe('canceled')
    const repeat = await scene.shop.checkout(key, cart({ payment_method: 'pm_card_chargeDeclinedInsufficientFunds' }))
    expect(repeat.status).toBe(402)
    expect(repeat.json).toMatchObject({ code: 'card_declined', decline_code: 'insufficient_funds' })
  })
})

describe('what was surely not sent', () => {
  it('is never sent by recovery: the customer may have left', async () => {
    const key = await leaveUnsent()
    await makeDue(scene.db, key)
    expect(await recoverOrders(deps)).toBe(1)
    expect((await orderOf(scene.db, key)).status).toBe('pending')
    expect(await scene.books.paymentsFor(key)).toEqual([])
    expect(await callsOf(key)).toEqual(['payment.create'])
    await expire(scene.db, key)
    await recoverOrders(deps)
  })

  it('is sent by the repeat at once, whenever the provider may be asked next', async () => {
    const key = await leaveUnsent()
    const { next_ask_at } = await orderOf(scene.db, key)
    expect(next_ask_at.getTime()).toBeGreaterThan(Date.now() + 60_000)
    expect((await scene.shop.checkout(key)).status).toBe(201)
    expect(await scene.books.paymentsFor(key)).toHaveLength(1)
  })

  it('and waits too long is ended without asking', async () => {
    const before = await available('poster')
    const key = await leaveUnsent({ items: [{ sku: 'poster', quantity: 1 }] })
    await expire(scene.db, key)
    await recoverOrders(deps)
    expect((await orderOf(scene.db, key)).status).toBe('canceled')
    expect(await callsOf(key)).toEqual(['payment.create'])
    expect(await available('poster')).toBe(before)
  })

  it('is unknown once a process has died with its lease', async () => {
    const key = await leaveUnsent()
    await scene.db
      .updateTable('attempts')
      .set({ state: 'running', lease_token: sql`gen_random_uuid()`, lease_expires_at: sql`now()` })
      .where('key', '=', key)
      .execute()
    await endLease(scene.db, key)
    await recoverOrders(deps)
    // Perhaps it had been sent: the window lets recovery find out.
    expect(await orderOf(scene.db, key)).toMatchObject({ status: 'paid', maybe_sent: true })
  })
})

describe("a client's repeat", () => {
  it("sends after recovery's window", async () => {
    const key = await leaveInDoubt('drop_before')
    await makeOlder(scene.db, key, 30)
    expect((await scene.shop.checkout(key)).status).toBe(201)
    expect(await scene.books.paymentsFor(key)).toHaveLength(1)
  })

  it('never sends when the provider may have forgotten the key', async () => {
    const key = await leaveInDoubt('drop_before')
    await scene.db
      .updateTable('orders')
      .set({ expires_at: sql`now() + interval '1 day'` })
      .where('attempt_key', '=', key)
      .execute()
    await makeOlder(scene.db, key, 23 * 60 + 1)
    const sends = (await callsOf(key)).length
    expect((await scene.shop.checkout(key)).status).toBe(202)
    expect((await callsOf(key)).slice(sends)).toEqual(['payment.list'])
    expect(await scene.books.paymentsFor(key)).toEqual([])
    await endSending(scene.db, key)
    await recoverOrders(deps)
  })

  it('never sends after the order has expired', async () => {
    const key = await leaveInDoubt('drop_before')
    await expire(scene.db, key)
    expect((await scene.shop.checkout(key)).status).toBe(202)
    expect(await scene.books.paymentsFor(key)).toEqual([])
    await endSending(scene.db, key)
    expect((await scene.shop.checkout(key)).json).toMatchObject({ code: 'checkout_canceled' })
  })
})

describe('another account or mode', () => {
  const elsewhere = { connected_account: 'acct_elsewhere' }

  it('is sent nothing and asked nothing; the order waits for a person, and goes on when the account is back', async () => {
    const key = await leaveInDoubt('drop_after')
    const calls = await callsOf(key)
    await scene.db.updateTable('tenants').set(elsewhere).where('tenant_id', '=', 'ten_demo').execute()
    try {
      await makeDue(scene.db, key)
      await recoverOrders(deps)
      expect(await orderOf(scene.db, key)).toMatchObject({
        status: 'needs_reconcile',
        reconcile_reason: 'provider_account_changed',
      })
      expect(await callsOf(key)).toEqual(calls)
    } finally {
      await scene.db
        .updateTable('tenants')
        .set({ connected_account: null })
        .where('tenant_id', '=', 'ten_demo')
        .execute()
    }
    await makeDue(scene.db, key)
    await recoverOrders(deps)
    expect((await orderOf(scene.db, key)).status).toBe('paid')
  })

  it('of another secret key likewise, also for who waits for the customer', async () => {
    const key = newKey()
    const body = cart({ payment_method: 'pm_card_threeDSecure2Required' })
    const { json } = await scene.shop.checkout(key, body)
    const other = await scene.start({ STRIPE_SECRET_KEY: 'sk_test_acct_another_secret' })
    await makeDue(scene.db, key)
    await recoverOrders(other.deps)
    expect(await orderOf(scene.db, key)).toMatchObject({
      status: 'needs_reconcile',
      reconcile_reason: 'provider_account_changed',
    })
    await scene.books.act(json.payment.reference, 'succeed')
    await makeDue(scene.db, key)
    expect((await scene.shop.checkout(key, body)).status).toBe(201)
  })

  it('does not make recovery send what was never sent', async () => {
    const key = await leaveUnsent()
    await scene.db.updateTable('tenants').set(elsewhere).where('tenant_id', '=', 'ten_demo').execute()
    try {
      expect((await scene.shop.checkout(key)).status).toBe(202)
      expect((await orderOf(scene.db, key)).reconcile_reason).toBe('provider_account_changed')
    } finally {
      await scene.db
        .updateTable('tenants')
        .set({ connected_account: null })
        .where('tenant_id', '=', 'ten_demo')
        .execute()
    }
    await makeDue(scene.db, key)
    await recoverOrders(deps)
    expect(await orderOf(scene.db, key)).toMatchObject({ status: 'needs_reconcile', maybe_sent: false })
    expect(await scene.books.paymentsFor(key)).toEqual([])
    await makeDue(scene.db, key)
    expect((await scene.shop.checkout(key)).status).toBe(201)
  })
})

/** A checkout that the provider has turned away before it did anything. */
async function leaveUnsent(overrides: Record<string, unknown> = {}): Promise<string> {
  const key = newKey()
  await scene.books.fault({ ...charges, fault: 'rate_limit', times: 1 })
  const reply = await scene.shop.checkout(key, cart(overrides))
  expect(reply.status).toBe(503)
  expect(reply.json).toMatchObject({ code: 'provider_unavailable', new_key_safe: false })
  return key
}

/** Takes the settlement of a paid checkout back out of the database. */
async function pretendUnsettled(key: string): Promise<void> {
  const { order_id } = await orderOf(scene.db, key)
  await scene.db
    .updateTable('orders')
    .set({ status: 'pending', intent_id: null, charge_id: null, payment_status: null, captured: 0 })
    .where('order_id', '=', order_id)
    .execute()
  await scene.db
    .updateTable('attempts')
    .set({
      state: 'running',
      lease_token: sql`gen_random_uuid()`,
      lease_expires_at: sql`now()`,
      response_status: null,
      response_body: null,
      settled_at: null,
    })
    .where('key', '=', key)
    .execute()
  for (const table of ['order_transitions', 'ledger_transfers', 'provider_calls'] as const) {
    await scene.db.deleteFrom(table).where('order_id', '=', order_id).execute()
  }
  await scene.db.deleteFrom('jobs').where('business_id', 'like', `${order_id}:%`).execute()
}

/** What somebody else with our credentials asks of the provider. */
async function sendDirectly(idempotencyKey: string, parameters: Record<string, string>): Promise<void> {
  const response = await fetch(`${scene.simulatorUrl}/v1/payment_intents`, {
    method: 'POST',
    headers: { authorization: 'Bearer sk_test_scene', 'idempotency-key': idempotencyKey },
    body: new URLSearchParams({ currency: 'eur', 'payment_method_types[]': 'card', ...parameters }),
  })
  expect(response.status).toBe(200)
}

async function available(sku: string): Promise<number> {
  return (await scene.shop.get(`/v1/products/${sku}`)).json.available
}
