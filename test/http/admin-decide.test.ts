/** A person decides: the provider is asked first, its word stands, and everything is kept in the audit log. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { recoverOrders } from '../../src/workers/recover-orders.ts'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { endSending, makeDue, orderOf } from '../support/aging.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import type { Reply } from '../support/client.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { chargedInDoubt, mismatched, neverArrived, waitsForCustomer } from '../support/stuck.ts'

let scene: Scene
beforeAll(async () => {
  scene = await startScene({ settings: { CHECKOUT_BUDGET_MS: '4000' } })
  await scene.books.webhooks({ drop: 1 })
})
afterEach(() => scene.books.noFaults())
afterAll(async () => {
  await expectBooksInOrder(scene, { unfinished: true })
  await scene.stop()
})

function decide(id: string, outcome: string, reason = 'the customer called'): Promise<Reply> {
  return scene.admin.post(`/v1/admin/orders/${id}/decide`, { outcome, reason })
}

async function audit(id: string) {
  const { json } = await scene.admin.get(`/v1/admin/audit?order_id=${id}`)
  return json.data.map((entry: { action: string; outcome: string }) => `${entry.action} ${entry.outcome}`)
}

async function transfers(id: string): Promise<string[]> {
  const rows = await scene.db
    .selectFrom('ledger_transfers')
    .select(['kind', 'amount'])
    .where('order_id', '=', id)
    .orderBy('transfer_id')
    .execute()
  return rows.map(({ kind, amount }) => `${kind} ${amount}`)
}

describe('an order that the provider has charged', () => {
  it.each(['canceled', 'payment_failed'])('cannot be decided as %s, and is settled as what it is', async (outcome) => {
    const { id, key } = await chargedInDoubt(scene)
    const reply = await decide(id, outcome)
    expect([reply.status, reply.json.code]).toEqual([409, 'provider_disagrees'])
    expect(reply.json).toMatchObject({ order_status: 'paid', provider_status: 'succeeded', captured: 1250 })
    expect(await orderOf(scene.db, key)).toMatchObject({ status: 'paid', captured: 1250 })
    expect(await audit(id)).toEqual([`decide_${outcome} provider_disagrees`])
    expect((await decide(id, outcome)).json.code).toBe('provider_disagrees')
  })

  it('can be decided as paid, and the story names who brought it', async () => {
    const { id } = await chargedInDoubt(scene)
    const reply = await decide(id, 'paid', 'seen in the dashboard')
    expect([reply.status, reply.json.status]).toEqual([200, 'paid'])
    const { json } = await scene.admin.get(`/v1/admin/orders/${id}`)
    expect(json.transitions[0]).toMatchObject({ from_status: 'needs_reconcile', to_status: 'paid', cause: 'operator' })
    expect(json.audit).toMatchObject([
      {
        actor: 'demo',
        key_id: expect.stringMatching(/^[0-9a-f]{16}$/),
        request_id: json.transitions[0].actor,
        action: 'decide_paid',
        target: { type: 'order', id },
        reason: 'seen in the dashboard',
        outcome: 'paid',
      },
    ])
  })
})

describe('an order without a payment', () => {
  it('is not decided while what was sent may still arrive', async () => {
    const { id, key } = await neverArrived(scene)
    for (const outcome of ['canceled', 'payment_failed', 'paid']) {
      expect((await decide(id, outcome)).json.code).toBe('provider_disagrees')
    }
    expect((await orderOf(scene.db, key)).status).toBe('needs_reconcile')
    const attempt = await scene.db.selectFrom('attempts').selectAll().where('key', '=', key).executeTakeFirstOrThrow()
    expect([attempt.state, attempt.lease_token]).toEqual(['open', null])
  })

  it.each(['canceled', 'payment_failed'] as const)('ends as %s once it cannot any more', async (outcome) => {
    const { id, key } = await neverArrived(scene)
    await endSending(scene.db, key)
    const reply = await decide(id, outcome)
    expect([reply.status, reply.json.status]).toEqual([200, outcome])
    expect(await audit(id)).toEqual([`decide_${outcome} ${outcome}`])
    // Once more is the same.
    expect((await decide(id, outcome)).json.status).toBe(outcome)
    expect((await decide(id, 'paid')).json.code).toBe('order_state_conflict')
  })

  it('is not decided while a request works on it', async () => {
    const { id, key } = await neverArrived(scene)
    await endSending(scene.db, key)
    await scene.db
      .updateTable('attempts')
      .set({ state: 'running', lease_token: crypto.randomUUID(), lease_expires_at: new Date(Date.now() + 60_000) })
      .where('key', '=', key)
      .execute()
    expect((await decide(id, 'canceled')).json.code).toBe('order_state_conflict')
    await scene.db
      .updateTable('attempts')
      .set({ state: 'open', lease_token: null, lease_expires_at: null })
      .where('key', '=', key)
      .execute()
  })
})

describe('an order that waits for its customer', () => {
  it('is closed at the provider before it is canceled', async () => {
    const { id, key } = await waitsForCustomer(scene)
    const reply = await decide(id, 'canceled')
    expect([reply.status, reply.json.status]).toEqual([200, 'canceled'])
    expect((await scene.books.paymentsFor(key))[0]?.status).toBe('canceled')
  })

  it.each(['error_before', 'error_after'] as const)(
    'and is canceled by recovery in the end (%s) was canceled by whoever decided so',
    async (fault) => {
      const { id, key, intent } = await waitsForCustomer(scene)
      await scene.books.fault({ method: 'POST', path: `/v1/payment_intents/${intent}/cancel`, fault, times: 10 })
      const reply = await decide(id, 'canceled')
      expect(reply.json.code).toBe('provider_unavailable')
      expect((await orderOf(scene.db, key)).status).toBe('requires_action')
      await scene.books.noFaults()
      await makeDue(scene.db, key)
      await recoverOrders(scene.service.deps)
      const [last] = (await scene.admin.get(`/v1/admin/orders/${id}`)).json.transitions
      expect(last).toMatchObject({ to_status: 'canceled', cause: 'operator', actor: reply.json.request_id })
    },
  )

  it('and is given up by the customer after a decision came to nothing was canceled by the customer', async () => {
    const { id, key, intent } = await waitsForCustomer(scene)
    expect((await decide(id, 'paid')).json.code).toBe('provider_disagrees')
    await scene.books.fault({
      method: 'GET',
      path: `/v1/payment_intents/${intent}`,
      fault: 'error_before',
      times: 10,
    })
    expect((await decide(id, 'canceled')).json.code).toBe('provider_unavailable')
    await scene.books.noFaults()
    await scene.books.fault({
      method: 'POST',
      path: `/v1/payment_intents/${intent}/cancel`,
      fault: 'error_before',
      times: 10,
    })
    expect((await scene.shop.post(`/v1/checkouts/${key}/cancel`)).status).toBe(202)
    await scene.books.noFaults()
    await makeDue(scene.db, key)
    await recoverOrders(scene.service.deps)
    const [last] = (await scene.admin.get(`/v1/admin/orders/${id}`)).json.transitions
    expect(last).toMatchObject({ to_status: 'canceled', cause: 'customer' })
  })

  it('is not paid because a person says so', async () => {
    const { id, key } = await waitsForCustomer(scene)
    const reply = await decide(id, 'paid')
    expect(reply.json).toMatchObject({ code: 'provider_disagrees', provider_status: 'requires_action' })
    expect((await orderOf(scene.db, key)).status).toBe('requires_action')
  })

  it('and acts while a person cancels it ends as one of both', async () => {
    for (let round = 0; round < 5; round++) {
      const { id, key, intent } = await waitsForCustomer(scene)
      const [reply] = await Promise.all([decide(id, 'canceled'), scene.books.act(intent, 'succeed').catch(() => {})])
      const [payment] = await scene.books.paymentsFor(key)
      const order = await orderOf(scene.db, key)
      expect(order.status).toBe(payment?.status === 'succeeded' ? 'paid' : 'canceled')
      expect(reply.status).toBe(order.status === 'paid' ? 409 : 200)
    }
  })
})

describe('while the provider gives no answer', () => {
  it.each(['error_before', 'rate_limit', 'drop_before'] as const)('(%s) nothing is decided', async (fault) => {
    const { id, key } = await neverArrived(scene)
    await endSending(scene.db, key)
    await scene.books.fault({ method: 'GET', path: '/v1/payment_intents', fault })
    for (const outcome of ['canceled', 'payment_failed', 'paid', 'accept_captured', 'refund_suspense']) {
      const reply = await decide(id, outcome)
      expect([outcome, reply.status, reply.json.code]).toEqual([outcome, 503, 'provider_unavailable'])
    }
    expect((await orderOf(scene.db, key)).status).toBe('needs_reconcile')
    expect(new Set(await audit(id))).toEqual(
      new Set(
        ['canceled', 'payment_failed', 'paid', 'accept_captured', 'refund_suspense'].map(
          (outcome) => `decide_${outcome} provider_unavailable`,
        ),
      ),
    )
  })
})

describe('an order of other credentials than are configured', () => {
  it('is not decided by what these say', async () => {
    const { id, key } = await chargedInDoubt(scene)
    await scene.db.updateTable('orders').set({ provider_account: 'acct_before' }).where('order_id', '=', id).execute()
    for (const outcome of ['canceled', 'paid', 'accept_captured']) {
      expect((await decide(id, outcome)).json.code).toBe('order_state_conflict')
    }
    expect((await orderOf(scene.db, key)).status).toBe('needs_reconcile')
    const { provider_account } = await scene.db
      .selectFrom('orders')
      .select('provider_account')
      .where('order_id', '<>', id)
      .executeTakeFirstOrThrow()
    await scene.db.updateTable('orders').set({ provider_account }).where('order_id', '=', id).execute()
    expect((await decide(id, 'paid')).json.status).toBe('paid')
  })
})

describe('money that does not match its order', () => {
  it('can be accepted: the order is paid with what was captured', async () => {
    const { id, key, intent } = await mismatched(scene, 1200)
    expect((await decide(id, 'canceled')).json).toMatchObject({
      code: 'provider_disagrees',
      mismatch: 'amount_mismatch',
    })
    const reply = await decide(id, 'accept_captured')
    expect([reply.status, reply.json.status, reply.json.captured]).toEqual([200, 'paid', 1200])
    expect(reply.json.payment.reference).toBe(intent)
    expect(await transfers(id)).toEqual(['mismatch 1200', 'mismatch_resolved 1200', 'capture 1200'])
    const { json } = await scene.backend.get(`/v1/ledger/balances?order_id=${id}`)
    expect(json.data.find(({ account }: { account: string }) => account === 'suspense').balance).toBe(0)
    const repeat = await scene.shop.get(`/v1/checkouts/${key}`)
    expect(repeat.json).toMatchObject({ state: 'settled', order: { status: 'paid' } })
    expect((await decide(id, 'accept_captured')).json.code).toBe('order_state_conflict')
    expect((await decide(id, 'refund_suspense')).json.code).toBe('order_state_conflict')
  })

  it('cannot be accepted where it is more than the order', async () => {
    const { id } = await mismatched(scene, 1300)
    expect((await decide(id, 'accept_captured')).json.code).toBe('order_state_conflict')
    expect((await decide(id, 'refund_suspense')).json.status).toBe('canceled')
    await runJobs(scene.service.deps)
  })

  it('can be given back, once: the order is canceled and its stock is free', async () => {
    const stock = async () => (await scene.shop.get('/v1/products/poster')).json.available
    const before = await stock()
    const { id, intent } = await mismatched(scene, 777, { items: [{ sku: 'poster', quantity: 2 }] })
    expect(await stock()).toBe(before - 2)
    const replies = await Promise.all([decide(id, 'refund_suspense'), decide(id, 'refund_suspense')])
    expect(replies.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(1)
    await runJobs(scene.service.deps)
    expect(await stock()).toBe(before)
    expect(await transfers(id)).toEqual([
      'mismatch 777',
      'mismatch_resolved 777',
      'late_capture 777',
      'late_refund 777',
    ])
    const payment = (await scene.books.payments()).find((each) => each.id === intent)
    expect(payment?.refunds.map(({ amount }) => amount)).toEqual([777])
    expect((await decide(id, 'accept_captured')).json.code).toBe('order_state_conflict')
  })

  it('that was given back at the provider meanwhile is not accepted', async () => {
    const { id, intent } = await mismatched(scene, 900)
    await scene.books.control('POST', '/refunds', { payment_intent: intent, amount: 100 })
    expect((await decide(id, 'accept_captured')).json.code).toBe('order_state_conflict')
    expect((await decide(id, 'refund_suspense')).json.status).toBe('canceled')
    await runJobs(scene.service.deps)
    const payment = (await scene.books.payments()).find((each) => each.id === intent)
    expect(payment?.refunds.reduce((sum, { amount }) => sum + amount, 0)).toBe(900)
  })
})

describe('a flag', () => {
  it('is taken off an order that has ended, and never off one that is open', async () => {
    const paid = await scene.shop.checkout(newKey())
    const { id } = paid.json
    await scene.db
      .updateTable('orders')
      .set({ reconcile_reason: 'notification_mismatch' })
      .where('order_id', '=', id)
      .execute()
    expect((await scene.admin.get('/v1/admin/orders?reason=notification_mismatch')).json.data).toMatchObject([{ id }])
    expect((await decide(id, 'acknowledge')).json.reconcile_reason).toBeUndefined()
    expect((await decide(id, 'acknowledge')).json.code).toBe('order_state_conflict')
    expect(await audit(id)).toEqual(['decide_acknowledge done'])
    const open = await neverArrived(scene)
    expect((await decide(open.id, 'acknowledge')).json.code).toBe('order_state_conflict')
    expect(await audit(open.id)).toEqual([])
  })
})

describe('"reconcile now"', () => {
  it('asks the provider at once, however recently it was asked', async () => {
    const { id, key } = await chargedInDoubt(scene)
    await scene.db
      .updateTable('orders')
      .set({ next_ask_at: new Date(Date.now() + 900_000) })
      .where('attempt_key', '=', key)
      .execute()
    const reply = await scene.admin.post(`/v1/admin/orders/${id}/reconcile`)
    expect([reply.status, reply.json.status]).toEqual([200, 'paid'])
    expect(await audit(id)).toEqual(['reconcile paid'])
  })

  it('reads what went back of a paid order in the dashboard', async () => {
    const { json } = await scene.shop.checkout(newKey())
    await scene.books.control('POST', '/refunds', { payment_intent: json.payment.reference, amount: 250 })
    const reply = await scene.admin.post(`/v1/admin/orders/${json.id}/reconcile`)
    expect(reply.json).toMatchObject({ status: 'partially_refunded', refunded: 250 })
  })

  it('leaves open what is open at the provider, and says so', async () => {
    const { id } = await waitsForCustomer(scene)
    const reply = await scene.admin.post(`/v1/admin/orders/${id}/reconcile`)
    expect([reply.status, reply.json.status]).toEqual([202, 'requires_action'])
    expect(reply.json.payment.client_secret).toBeUndefined()
  })

  it('finds out how a hold has ended elsewhere', async () => {
    const { json } = await scene.shop.checkout(newKey(), {
      items: [{ sku: 'mug', quantity: 1 }],
      customer: { email: 'ada@example.com' },
      payment_method: 'pm_card_visa',
      capture: 'manual',
    })
    expect(json.status).toBe('authorized')
    expect((await decide(json.id, 'canceled')).json.code).toBe('order_state_conflict')
    await scene.books.control('POST', `/payment_intents/${json.payment.reference}/expire`)
    const reply = await scene.admin.post(`/v1/admin/orders/${json.id}/reconcile`)
    expect(reply.json.status).toBe('canceled')
  })
})

describe('an operator, a repeat, recovery and a decision at once', () => {
  it('make one transition, and no decision fails what was charged', async () => {
    for (let round = 0; round < 6; round++) {
      const { id, key } = await chargedInDoubt(scene)
      await makeDue(scene.db, key)
      const [failed, canceled] = await Promise.all([
        decide(id, 'payment_failed'),
        decide(id, 'canceled'),
        scene.admin.post(`/v1/admin/orders/${id}/reconcile`),
        scene.shop.checkout(key),
        recoverOrders(scene.service.deps),
      ])
      expect([failed.json.code, canceled.json.code]).toEqual(['provider_disagrees', 'provider_disagrees'])
      const { json } = await scene.admin.get(`/v1/admin/orders/${id}`)
      expect(json.status).toBe('paid')
      expect(json.transitions.filter(({ to_status }: { to_status: string }) => to_status === 'paid')).toHaveLength(1)
      expect(json.ledger).toHaveLength(1)
      expect(await scene.books.paymentsFor(key)).toHaveLength(1)
    }
  })
})
