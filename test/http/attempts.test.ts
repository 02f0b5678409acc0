/** What a storefront asks of an attempt by its own key: what became of it, and to give it up. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { recoverOrders } from '../../src/workers/recover-orders.ts'
import { endLease, endSending, makeDue, orderOf } from '../support/aging.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import { cart, keys } from '../support/client.ts'
import { sendRaw } from '../support/raw-http.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { startServiceProcess } from '../support/service-process.ts'
import { until } from '../support/until.ts'

const charges = { method: 'POST', path: '/v1/payment_intents' } as const
const anyIntent = { method: '*', path: '/v1/payment_intents/' } as const
const threeD = cart({ payment_method: 'pm_card_threeDSecure2Required' })

let scene: Scene
beforeAll(async () => {
  scene = await startScene({
    settings: { PROVIDER_TIMEOUT_MS: '900', CHECKOUT_BUDGET_MS: '3000', RECONCILE_AFTER_MS: '50' },
  })
})
afterEach(async () => {
  await scene.books.noFaults()
  await expectBooksInOrder(scene)
})
afterAll(() => scene.stop())

const look = (key: string) => scene.shop.get(`/v1/checkouts/${encodeURIComponent(key)}`)
const giveUp = (key: string) => scene.shop.post(`/v1/checkouts/${encodeURIComponent(key)}/cancel`)

/** An attempt in each state, made anew. */
const states: Record<string, { make: () => Promise<string>; state: string; status: string; newKeySafe: boolean }> = {
  paid: { make: () => checkout(), state: 'settled', status: 'paid', newKeySafe: false },
  authorized: {
    make: () => checkout({ capture: 'manual' }),
    state: 'settled',
    status: 'authorized',
    newKeySafe: false,
  },
  declined: {
    make: () => checkout({ payment_method: 'pm_card_chargeDeclined' }),
    state: 'settled',
    status: 'payment_failed',
    newKeySafe: true,
  },
  'waiting for its customer': {
    make: () => checkout(threeD),
    state: 'open',
    status: 'requires_action',
    newKeySafe: false,
  },
  'in doubt': { make: () => inDoubt('error_after'), state: 'open', status: 'needs_reconcile', newKeySafe: false },
  'not sent': { make: notSent, state: 'open', status: 'pending', newKeySafe: false },
  'left by a dead process': { make: leftBehind, state: 'in_progress', status: 'pending', newKeySafe: false },
  canceled: {
    make: async () => {
      const key = await checkout(threeD)
      await giveUp(key)
      return key
    },
    state: 'settled',
    status: 'canceled',
    newKeySafe: true,
  },
}

describe('a look at an attempt', () => {
  it.each(Object.entries(states))(
    'that is %s tells its state and order, and moves nothing',
    async (_what, { make, ...expected }) => {
      const key = await make()
      const before = await orderOf(scene.db, key)
      const calls = (await scene.books.chargesSeen(key)).length
      const reply = await look(key)
      expect(reply.status).toBe(200)
      expect(reply.json).toEqual({
        state: expected.state,
        new_key_safe: expected.newKeySafe,
        order: { id: before.order_id, status: expected.status, total: before.total, currency: 'EUR' },
      })
      expect(await orderOf(scene.db, key)).toEqual(before)
      expect(await scene.books.chargesSeen(key)).toHaveLength(calls)
      await finish(key)
    },
  )

  it('that nobody knows is a 404 that does not call a new key safe: the first request may be on its way', async () => {
    const reply = await look(newKey())
    expect([reply.status, reply.json.code, reply.json.new_key_safe]).toEqual([404, 'not_found', false])
    expect(reply.headers.get('content-type')).toMatch(/problem\+json/)
  })

  it('works for every key that is allowed, percent-encoded, the raw path included', async () => {
    const all = Array.from({ length: 94 }, (_, i) => String.fromCharCode(33 + i)).filter((each) => !',"'.includes(each))
    for (const key of [
      'a/b',
      '..',
      '.',
      'a/../b',
      '%',
      '%2F',
      '%41',
      '?x=1',
      '#',
      'a+b',
      'a;b',
      ':key',
      '*',
      '\\',
      '~',
      `${all.join('')}`,
      '%'.repeat(200),
    ]) {
      const made = await scene.shop.checkout(key)
      expect(made.status, key).toBe(201)
      // Clients normalise "." and ".." away even where they are encoded, so the path goes as it is.
      const path = `/v1/checkouts/${[...key].map((each) => `%${each.charCodeAt(0).toString(16).padStart(2, '0')}`).join('')}`
      const headers = ['Authorization', `Bearer ${keys.storefront}`]
      const reply = await sendRaw(scene.shop.url, { method: 'GET', path, headers })
      expect(reply.json?.order?.id, key).toBe(made.json.id)
      const canceled = await sendRaw(scene.shop.url, { method: 'POST', path: `${path}/cancel`, headers })
      expect([canceled.status, canceled.json.order.id], key).toEqual([409, made.json.id])
    }
  })

  it('under what can be no key is a 400, as it is for a first request', async () => {
    for (const key of ['a b', 'a,b', '"a"', 'ü', 'k'.repeat(201), 'k'.repeat(2000), '%'.repeat(201)]) {
      for (const reply of [await look(key), await giveUp(key)]) {
        expect([reply.status, reply.json.code]).toEqual([400, 'idempotency_key_invalid'])
        // Whoever writes the key of a header with its quotes here may have used it.
        expect(reply.json.new_key_safe).toBe(false)
      }
    }
  })
})

describe('giving up', () => {
  it.each(['waiting for its customer', 'not sent'])(
    'an attempt that is %s cancels it, here and there, and frees cart and stock; again is the same',
    async (what) => {
      const before = await stock()
      const key = await (states[what] as (typeof states)[string]).make()
      const order = await orderOf(scene.db, key)
      const reply = await giveUp(key)
      expect([reply.status, reply.json.id, reply.json.status]).toEqual([200, order.order_id, 'canceled'])
      expect(await stock()).toBe(before)
      expect((await scene.books.paymentsFor(key)).map((payment) => payment.status)).toEqual(
        order.intent_id === null ? [] : ['canceled'],
      )
      const again = await giveUp(key)
      expect([again.status, again.json]).toEqual([200, reply.json])
      const story = await scene.db
        .selectFrom('order_transitions')
        .select(['to_status', 'cause'])
        .where('order_id', '=', order.order_id)
        .orderBy('at')
        .execute()
      expect(story.at(-1)).toEqual({ to_status: 'canceled', cause: 'customer' })
      // A customer who authenticates now is too late.
      if (order.intent_id !== null) await expect(scene.books.act(order.intent_id, 'succeed')).rejects.toThrow()
    },
  )

  it.each(['paid', 'authorized'])(
    'an attempt that is %s is a 409 with the state, and nothing changes',
    async (what) => {
      const key = await (states[what] as (typeof states)[string]).make()
      const before = await orderOf(scene.db, key)
      const reply = await giveUp(key)
      expect([reply.status, reply.json.code, reply.json.new_key_safe]).toEqual([409, 'checkout_already_settled', false])
      expect(reply.json).toMatchObject({ state: 'settled', order: { id: before.order_id, status: what } })
      expect(await orderOf(scene.db, key)).toEqual(before)
    },
  )

  it('a declined attempt is what it was', async () => {
    const key = await (states.declined as (typeof states)[string]).make()
    const reply = await giveUp(key)
    expect([reply.status, reply.json.status]).toEqual([200, 'payment_failed'])
  })

  it('an attempt that was charged without our knowing is a 409: it is paid', async () => {
    const key = await inDoubt('error_after')
    const reply = await giveUp(key)
    expect([reply.status, reply.json.code]).toEqual([409, 'checkout_already_settled'])
    expect((await look(key)).json).toMatchObject({ state: 'settled', order: { status: 'paid' } })
  })

  it('an attempt in doubt of which nothing is to be found is a 202, and ends when nothing can arrive any more; nobody sends it again', async () => {
    const key = await inDoubt('drop_before')
    const reply = await giveUp(key)
    expect([reply.status, reply.json.status]).toEqual([202, 'needs_reconcile'])
    expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0)
    const sent = (await scene.books.chargesSeen(key)).length
    await makeDue(scene.db, key)
    expect((await scene.shop.checkout(key)).status).toBe(202)
    await makeDue(scene.db, key)
    await recoverOrders(scene.service.deps)
    expect((await orderOf(scene.db, key)).status).toBe('needs_reconcile')
    await endSending(scene.db, key)
    await recoverOrders(scene.service.deps)
    expect((await orderOf(scene.db, key)).status).toBe('canceled')
    expect(await scene.books.chargesSeen(key)).toHaveLength(sent)
    expect((await scene.shop.checkout(key)).json.code).toBe('checkout_canceled')
  })

  it.each(['drop_before', 'drop_after', 'hang', 'error_before', 'error_after', 'rate_limit'] as const)(
    'while the provider answers with %s never says canceled before it is; then it is, once, and never paid',
    async (fault) => {
      const key = await checkout(threeD)
      await scene.books.fault({ ...anyIntent, fault })
      const reply = await giveUp(key)
      const [payment] = await scene.books.paymentsFor(key)
      if (reply.status === 200) expect(payment?.status).toBe('canceled')
      else expect([reply.status, reply.json.status]).toEqual([202, 'requires_action'])
      await scene.books.noFaults()
      await until(async () => {
        await makeDue(scene.db, key)
        await recoverOrders(scene.service.deps)
        return (await orderOf(scene.db, key)).status === 'canceled'
      })
      expect(await scene.books.paymentsFor(key)).toMatchObject([{ status: 'canceled' }])
    },
  )

  it('while the customer authenticates: paid or canceled, in the books and here the same', async () => {
    for (let i = 0; i < 6; i++) {
      const key = await checkout(threeD)
      const { intent_id } = await orderOf(scene.db, key)
      const [reply] = await Promise.all([
        giveUp(key),
        scene.books.act(intent_id as string, 'succeed').catch(() => undefined),
      ])
      const [payment] = await scene.books.paymentsFor(key)
      await until(async () => {
        await makeDue(scene.db, key)
        await recoverOrders(scene.service.deps)
        return ['paid', 'canceled'].includes((await orderOf(scene.db, key)).status)
      })
      const { status } = await orderOf(scene.db, key)
      expect(status).toBe(payment?.status === 'succeeded' ? 'paid' : 'canceled')
      if (reply.status === 200) expect(status).toBe('canceled')
    }
  })

  it('takes no body, an empty one or {}, and nothing else', async () => {
    for (const body of [undefined, {}, '']) {
      const key = await checkout(threeD)
      const reply = await scene.shop.post(`/v1/checkouts/${key}/cancel`, body)
      expect([reply.status, reply.json.status], JSON.stringify(body)).toEqual([200, 'canceled'])
    }
    const key = await checkout(threeD)
    for (const body of [{ reason: 'x' }, [], '1']) {
      const reply = await scene.shop.post(`/v1/checkouts/${key}/cancel`, body)
      expect([reply.status, reply.json.code], JSON.stringify(body)).toEqual([400, 'invalid_request'])
    }
    await giveUp(key)
  })

  it('is for the storefront and the backend of the tenant, and for nobody else', async () => {
    const key = await checkout(threeD)
    const path = `/v1/checkouts/${key}/cancel`
    expect((await scene.shop.withKey(keys.otherStorefront).post(path)).status).toBe(404)
    expect((await scene.admin.post(path)).status).toBe(403)
    expect((await scene.shop.withKey('nobody').post(path)).status).toBe(401)
    expect((await orderOf(scene.db, key)).status).toBe('requires_action')
    expect((await scene.backend.post(path)).json.status).toBe('canceled')
  })
})

async function checkout(body: Record<string, unknown> = {}): Promise<string> {
  const key = newKey()
  const reply = await scene.shop.checkout(key, cart(body))
  expect([201, 202, 402]).toContain(reply.status)
  return key
}

async function inDoubt(fault: 'error_after' | 'drop_before'): Promise<string> {
  const key = newKey()
  await scene.books.fault({ ...charges, fault })
  expect((await scene.shop.checkout(key)).json.status).toBe('needs_reconcile')
  await scene.books.noFaults()
  return key
}

async function notSent(): Promise<string> {
  const key = newKey()
  await scene.books.fault({ ...charges, fault: 'rate_limit' })
  expect((await scene.shop.checkout(key)).status).toBe(503)
  await scene.books.noFaults()
  return key
}

async function leftBehind(): Promise<string> {
  const key = newKey()
  const doomed = await startServiceProcess(scene.env(), { 'checkout.claimed': { do: 'kill' } })
  await expect(doomed.shop.checkout(key)).rejects.toThrow()
  await doomed.gone
  return key
}

/** Ends whatever is still open, so that the audit finds nothing unfinished. */
async function finish(key: string): Promise<void> {
  if ((await orderOf(scene.db, key)).status === 'requires_action') await giveUp(key)
  await until(async () => {
    await endLease(scene.db, key)
    if ((await orderOf(scene.db, key)).status === 'pending') await scene.shop.checkout(key)
    await recoverOrders(scene.service.deps)
    return !['pending', 'requires_action', 'needs_reconcile'].includes((await orderOf(scene.db, key)).status)
  })
}

async function stock(): Promise<number> {
  return (await scene.shop.get('/v1/products/mug')).json.available
}
