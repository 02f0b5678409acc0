import { expect, test } from 'vitest'
import { books, client, control, payment, refusal, simulator } from './support.ts'

test('the books tell what really happened to each payment', async () => {
  const sim = await simulator()
  const stripe = client(sim.port, 'sk_live_demo', { stripeAccount: 'acct_shop' })
  const metadata = { tenant: 'ten_1', order: 'ord_1', key: 'k1' }
  const held = await stripe.paymentIntents.create(payment({ capture_method: 'manual', metadata }), {
    idempotencyKey: 'k1',
  })
  await stripe.paymentIntents.capture(held.id, { amount_to_capture: 1000 })
  const refund = await stripe.refunds.create({ payment_intent: held.id, amount: 300 }, { idempotencyKey: 'r1' })
  const [booked] = await books(sim)
  expect(booked).toMatchObject({
    id: held.id,
    account: 'acct_shop',
    livemode: true,
    metadata,
    idempotency_key: 'k1',
    requests: 1,
    status: 'succeeded',
    amount: 1250,
    amount_received: 1000,
    amount_capturable: 0,
    currency: 'eur',
    created: held.created,
    charges: [{ id: held.latest_charge, status: 'succeeded', amount_captured: 1000 }],
    refunds: [{ id: refund.id, amount: 300, status: 'succeeded', created: refund.created, idempotency_key: 'r1' }],
    disputes: [],
  })
  expect((await control(sim, 'GET', `/payment_intents/${held.id}`)).body).toEqual(booked)
})

test('the books are told whole, however many payments there are', async () => {
  const sim = await simulator()
  const stripe = client(sim.port)
  const made: string[] = []
  for (let round = 0; round < 10; round++) {
    const paid = await Promise.all(Array.from({ length: 30 }, () => stripe.paymentIntents.create(payment())))
    made.push(...paid.map((intent) => intent.id))
  }
  expect((await books(sim)).map(({ id }) => id).sort()).toEqual(made.sort())
})

test.each([
  ['POST', '/payment_intents/pi_none/action', { outcome: 'succeed' }, 404, 'No such payment_intent'],
  ['POST', '/payment_intents/pi_none/action', { outcome: 'explode' }, 400, 'succeed, fail'],
  ['POST', '/payment_intents/pi_none/action', {}, 400, 'outcome'],
  ['GET', '/payment_intents/pi_none', undefined, 404, 'No such payment_intent'],
  ['POST', '/refunds', { payment_intent: 'pi_none' }, 404, 'No such payment_intent'],
  ['POST', '/refunds', { payment_intent: 'pi_none', amount: '250' }, 400, 'amount'],
  ['POST', '/refunds/re_none', { status: 'failed' }, 404, 'No such refund'],
  ['POST', '/disputes/du_none', { outcome: 'won' }, 404, 'No such dispute'],
  ['PUT', '/webhooks', { drop: 2 }, 400, 'drop'],
  ['PUT', '/webhooks', { colour: 'red' }, 400, 'additional properties'],
  ['GET', '/colours', undefined, 404, 'No such control'],
])('%s %s with %j is refused', async (method, path, body, status, hint) => {
  const sim = await simulator()
  const answer = await control(sim, method, path, body)
  expect(answer.status).toBe(status)
  expect(JSON.stringify(answer.body)).toContain(hint)
})

test('a body that is no JSON is refused, and none is needed where nothing is to be said', async () => {
  const sim = await simulator()
  const headers = { 'content-type': 'application/json' }
  const broken = await fetch(`${sim.url}/_sim/faults`, { method: 'POST', headers, body: '{"rules":' })
  expect([broken.status, await broken.json()]).toEqual([400, { error: { message: 'The body is not valid JSON.' } }])
  for (const [method, path] of [
    ['POST', '/reset'],
    ['DELETE', '/faults'],
  ]) {
    expect((await fetch(`${sim.url}/_sim${path}`, { method: String(method), headers })).status).toBe(200)
  }
})

test('a payment that was not made cannot be refunded or disputed by the control', async () => {
  const sim = await simulator()
  const error = await refusal(
    client(sim.port).paymentIntents.create(payment({ payment_method: 'pm_card_chargeDeclined' })),
  )
  const payment_intent = error.payment_intent?.id
  expect((await control(sim, 'POST', '/refunds', { payment_intent })).status).toBe(400)
  expect((await control(sim, 'POST', '/disputes', { payment_intent })).status).toBe(400)
})

test('the control needs no key, and strikes no faults', async () => {
  const sim = await simulator()
  await control(sim, 'POST', '/faults', { rules: [{ method: '*', path: '/', fault: 'drop_before' }] })
  expect(await books(sim)).toEqual([])
})
