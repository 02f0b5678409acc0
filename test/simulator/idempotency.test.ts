import type Stripe from 'stripe'
import { expect, test } from 'vitest'
import { books, client, control, payment, refusal, simulator, until } from './support.ts'

type Headers = Record<string, string>
const headersOf = (object: object) => (object as Stripe.Response<object>).lastResponse.headers as unknown as Headers

test('a repeat gets the first answer, byte for byte, and has no effect', async () => {
  const sim = await simulator()
  const post = () =>
    fetch(`${sim.url}/v1/payment_intents`, {
      method: 'POST',
      headers: {
        authorization: 'Bearer sk_test_demo',
        'idempotency-key': 'k1',
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: 'amount=1250&currency=eur&payment_method=pm_card_visa&confirm=true&return_url=https://shop.example',
    })
  const first = await post()
  const again = await post()
  expect([first.status, again.status]).toEqual([200, 200])
  expect(await again.text()).toBe(await first.text())
  expect(first.headers.get('idempotent-replayed')).toBeNull()
  expect(again.headers.get('idempotent-replayed')).toBe('true')
  expect(again.headers.get('idempotency-key')).toBe('k1')
  expect(first.headers.get('original-request')).toBe(first.headers.get('request-id'))
  expect(again.headers.get('original-request')).toBe(first.headers.get('request-id'))
  expect(again.headers.get('request-id')).not.toBe(first.headers.get('request-id'))
  expect(await books(sim)).toMatchObject([{ idempotency_key: 'k1', requests: 2, charges: [{ status: 'succeeded' }] }])
})

test('a replay is the answer of its time, not of the present', async () => {
  const sim = await simulator()
  const stripe = client(sim.port)
  const create = () =>
    stripe.paymentIntents.create(payment({ payment_method: 'pm_card_threeDSecure2Required' }), { idempotencyKey: 'k1' })
  const waiting = await create()
  await control(sim, 'POST', `/payment_intents/${waiting.id}/action`, { outcome: 'succeed' })
  expect(await create()).toMatchObject({ id: waiting.id, status: 'requires_action' })
  expect(await stripe.paymentIntents.retrieve(waiting.id)).toMatchObject({ status: 'succeeded' })
})

test('a decline is stored and replayed', async () => {
  const sim = await simulator()
  const stripe = client(sim.port)
  const create = () =>
    refusal(
      stripe.paymentIntents.create(payment({ payment_method: 'pm_card_chargeDeclined' }), { idempotencyKey: 'k1' }),
    )
  const first = await create()
  const again = await create()
  expect(again).toMatchObject({ statusCode: 402, code: 'card_declined', charge: first.charge })
  expect(again.payment_intent?.id).toBe(first.payment_intent?.id)
  expect(again.headers?.['idempotent-replayed']).toBe('true')
  expect((await books(sim))[0]?.charges).toHaveLength(1)
})

test('the order of parameters does not matter, their values do', async () => {
  const sim = await simulator()
  const stripe = client(sim.port)
  const key = { idempotencyKey: 'k1' }
  const paid = await stripe.paymentIntents.create(payment({ metadata: { a: '1', b: '2' } }), key)
  const { amount, ...rest } = payment({ metadata: { b: '2', a: '1' } })
  expect(await stripe.paymentIntents.create({ ...rest, amount }, key)).toMatchObject({ id: paid.id })
  for (const other of [payment(), payment({ amount: 1251 }), payment({ metadata: { a: '1', b: '3' } })]) {
    const error = await refusal(stripe.paymentIntents.create(other, key))
    expect(error).toMatchObject({
      type: 'StripeIdempotencyError',
      rawType: 'idempotency_error',
      statusCode: 400,
      code: undefined,
    })
    expect(error.headers?.['idempotent-replayed']).toBeUndefined()
  }
  expect(await books(sim)).toHaveLength(1)
})

test('a key belongs to its first endpoint', async () => {
  const sim = await simulator()
  const stripe = client(sim.port)
  const key = { idempotencyKey: 'k1' }
  const held = await stripe.paymentIntents.create(payment({ capture_method: 'manual' }), key)
  expect(await refusal(stripe.paymentIntents.capture(held.id, {}, key))).toMatchObject({ rawType: 'idempotency_error' })
  expect(await refusal(stripe.refunds.create({ payment_intent: held.id }, key))).toMatchObject({
    rawType: 'idempotency_error',
  })
  expect(await stripe.paymentIntents.retrieve(held.id)).toMatchObject({ status: 'requires_capture' })
})

test('capture, cancel and refund are repeated without a second effect', async () => {
  const sim = await simulator()
  const stripe = client(sim.port)
  const held = await stripe.paymentIntents.create(payment({ capture_method: 'manual' }))
  for (let round = 0; round < 2; round++) {
    const captured = await stripe.paymentIntents.capture(
      held.id,
      { amount_to_capture: 1000 },
      { idempotencyKey: 'capture' },
    )
    expect(captured).toMatchObject({ status: 'succeeded', amount_received: 1000 })
    const refund = await stripe.refunds.create({ payment_intent: held.id, amount: 300 }, { idempotencyKey: 'refund' })
    expect(refund.amount).toBe(300)
    const cancel = await refusal(stripe.paymentIntents.cancel(held.id, {}, { idempotencyKey: 'cancel' }))
    expect(cancel).toMatchObject({ statusCode: 400, code: 'payment_intent_unexpected_state' })
    expect(cancel.headers?.['idempotent-replayed']).toBe(round === 0 ? undefined : 'true')
  }
  expect((await books(sim))[0]?.refunds).toHaveLength(1)
})

test('what was refused before anything was executed is not stored', async () => {
  const sim = await simulator()
  const stripe = client(sim.port)
  const key = { idempotencyKey: 'k1' }
  expect(await refusal(stripe.paymentIntents.create(payment({ amount: 1 }), key))).toMatchObject({
    code: 'amount_too_small',
  })
  expect(await refusal(client(sim.port, 'hello').paymentIntents.create(payment(), key))).toMatchObject({
    statusCode: 401,
  })
  await control(sim, 'POST', '/faults', { rules: [{ method: 'POST', path: '/v1', fault: 'rate_limit', times: 1 }] })
  expect(await refusal(stripe.paymentIntents.create(payment(), key))).toMatchObject({ statusCode: 429 })
  const paid = await stripe.paymentIntents.create(payment(), key)
  expect(headersOf(paid)['idempotent-replayed']).toBeUndefined()
  expect(await books(sim)).toMatchObject([{ id: paid.id, requests: 3 }])
})

test('while the first runs, its key is in use', async () => {
  const sim = await simulator()
  const stripe = client(sim.port)
  const create = () => stripe.paymentIntents.create(payment(), { idempotencyKey: 'k1' })
  const rule = { method: 'POST', path: '/v1/payment_intents', fault: 'latency', latency_ms: 1500, times: 1 }
  await control(sim, 'POST', '/faults', { rules: [rule] })
  const first = create()
  await until('the first runs', async () => (await control(sim, 'GET', '/requests')).body.data[0])
  const second = await refusal(create())
  expect(second).toMatchObject({ rawType: 'idempotency_error', statusCode: 409, code: 'idempotency_key_in_use' })
  const other = await stripe.paymentIntents.create(payment(), { idempotencyKey: 'k2' })
  const paid = await first
  expect(other.id).not.toBe(paid.id)
  expect(await create()).toMatchObject({ id: paid.id })
  expect(await books(sim)).toMatchObject([{ idempotency_key: 'k2' }, { idempotency_key: 'k1', requests: 3 }])
})

test('of many at once under one key one is executed', async () => {
  const sim = await simulator()
  const stripe = client(sim.port)
  const rule = { method: 'POST', path: '/v1/payment_intents', fault: 'latency', latency_ms: 300, times: 1 }
  await control(sim, 'POST', '/faults', { rules: [rule] })
  const answers = await Promise.allSettled(
    Array.from({ length: 30 }, () => stripe.paymentIntents.create(payment(), { idempotencyKey: 'k1' })),
  )
  // On a busy machine some arrive when the first is done: they are given its answer again.
  const paid = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []))
  const refused = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason] : []))
  expect(paid.filter((one) => headersOf(one)['idempotent-replayed'] !== 'true')).toHaveLength(1)
  expect(new Set(paid.map((one) => one.id)).size).toBe(1)
  expect(new Set(refused.map((error) => error.code))).toEqual(new Set(['idempotency_key_in_use']))
  expect(await books(sim)).toMatchObject([{ requests: 30, charges: [{}] }])
})

test('a key belongs to its account and mode, whichever API key is used', async () => {
  const sim = await simulator()
  const key = { idempotencyKey: 'k1' }
  const ids = new Set<string>()
  for (const [secret, stripeAccount] of [
    ['sk_test_demo', undefined],
    ['sk_live_demo', undefined],
    ['sk_test_demo', 'acct_one'],
    ['sk_test_demo', 'acct_two'],
  ] as const) {
    const stripe = client(sim.port, secret, stripeAccount === undefined ? {} : { stripeAccount })
    ids.add((await stripe.paymentIntents.create(payment(), key)).id)
  }
  expect(ids.size).toBe(4)
  expect(ids).toContain((await client(sim.port, 'sk_test_rotated').paymentIntents.create(payment(), key)).id)
})

test('a key is forgotten when its time is over', async () => {
  const sim = await simulator({ keyLifetimeMs: 1 })
  const stripe = client(sim.port)
  const create = () => stripe.paymentIntents.create(payment(), { idempotencyKey: 'k1' })
  const first = await create()
  const second = await until('it is forgotten', async () => {
    const paid = await create()
    return paid.id === first.id ? undefined : paid
  })
  expect((await books(sim)).map((booked) => booked.id)).toContain(second.id)
})

test('a key has at most 255 characters', async () => {
  const sim = await simulator()
  const stripe = client(sim.port)
  await stripe.paymentIntents.create(payment(), { idempotencyKey: 'k'.repeat(255) })
  const error = await refusal(stripe.paymentIntents.create(payment(), { idempotencyKey: 'k'.repeat(256) }))
  expect(error).toMatchObject({ statusCode: 400, rawType: 'idempotency_error' })
  expect(await books(sim)).toHaveLength(1)
})

test('without a key every request is executed', async () => {
  const sim = await simulator()
  const headers = { authorization: 'Bearer sk_test_demo', 'content-type': 'application/x-www-form-urlencoded' }
  const body = 'amount=1250&currency=eur'
  for (let at = 0; at < 2; at++) await fetch(`${sim.url}/v1/payment_intents`, { method: 'POST', headers, body })
  expect(await books(sim)).toMatchObject([{ idempotency_key: null, requests: null }, { idempotency_key: null }])
})
