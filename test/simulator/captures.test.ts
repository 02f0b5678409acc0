import { expect, test } from 'vitest'
import { books, client, control, payment, refusal, simulator, until } from './support.ts'

const hold = (overrides = {}) => payment({ capture_method: 'manual', ...overrides })

test('a hold waits for its capture and tells until when', async () => {
  const sim = await simulator()
  const held = await client(sim.port).paymentIntents.create({ ...hold(), expand: ['latest_charge'] })
  expect(held).toMatchObject({ status: 'requires_capture', amount_capturable: 1250, amount_received: 0 })
  const charge = held.latest_charge
  if (typeof charge !== 'object' || charge === null) throw new Error('latest_charge is not expanded')
  expect(charge).toMatchObject({ status: 'succeeded', captured: false, amount_captured: 0, refunded: false })
  expect(charge.payment_method_details?.card?.capture_before).toBe(charge.created + 7 * 24 * 3600)
})

test('a hold is captured whole, once', async () => {
  const sim = await simulator()
  const stripe = client(sim.port)
  const held = await stripe.paymentIntents.create(hold())
  const captured = await stripe.paymentIntents.capture(held.id)
  expect(captured).toMatchObject({ status: 'succeeded', amount_capturable: 0, amount_received: 1250 })
  const again = await refusal(stripe.paymentIntents.capture(held.id))
  expect(again).toMatchObject({ statusCode: 400, code: 'payment_intent_unexpected_state' })
  expect(again.payment_intent).toMatchObject({ id: held.id, status: 'succeeded' })
})

test('a part of a hold is captured and the rest is released, so that it cannot be refunded', async () => {
  const sim = await simulator()
  const stripe = client(sim.port)
  const held = await stripe.paymentIntents.create(hold())
  const captured = await stripe.paymentIntents.capture(held.id, { amount_to_capture: 1000 })
  expect(captured).toMatchObject({ status: 'succeeded', amount: 1250, amount_received: 1000, amount_capturable: 0 })
  const charge = await stripe.charges.retrieve(String(captured.latest_charge))
  expect(charge).toMatchObject({ captured: true, amount_captured: 1000, amount_refunded: 250, refunded: false })
  const tooMuch = await refusal(stripe.refunds.create({ payment_intent: held.id, amount: 1001 }))
  expect(tooMuch).toMatchObject({ statusCode: 400, param: 'amount' })
  expect(await stripe.refunds.create({ payment_intent: held.id })).toMatchObject({ amount: 1000, status: 'succeeded' })
  const [booked] = await books(sim)
  expect(booked?.refunds.map((refund) => refund.amount)).toEqual([1000])
})

test('more than the hold, or nothing, cannot be captured', async () => {
  const sim = await simulator()
  const stripe = client(sim.port)
  const held = await stripe.paymentIntents.create(hold())
  const tooMuch = await refusal(stripe.paymentIntents.capture(held.id, { amount_to_capture: 1251 }))
  expect(tooMuch).toMatchObject({ statusCode: 400, code: 'amount_too_large', param: 'amount_to_capture' })
  const nothing = await refusal(stripe.paymentIntents.capture(held.id, { amount_to_capture: 0 }))
  expect(nothing).toMatchObject({ statusCode: 400, code: 'parameter_invalid_integer' })
  expect(await stripe.paymentIntents.retrieve(held.id)).toMatchObject({
    status: 'requires_capture',
    amount_capturable: 1250,
  })
})

test('a hold is canceled, which releases it', async () => {
  const sim = await simulator()
  const stripe = client(sim.port)
  const held = await stripe.paymentIntents.create(hold())
  const canceled = await stripe.paymentIntents.cancel(held.id, { cancellation_reason: 'abandoned' })
  expect(canceled).toMatchObject({ status: 'canceled', amount_capturable: 0, cancellation_reason: 'abandoned' })
  expect(canceled.canceled_at).toBeGreaterThanOrEqual(held.created)
  expect(await stripe.charges.retrieve(String(held.latest_charge))).toMatchObject({
    captured: false,
    amount_captured: 0,
    refunded: true,
  })
  const late = await refusal(stripe.paymentIntents.capture(held.id))
  expect(late).toMatchObject({ code: 'payment_intent_unexpected_state' })
})

test.each([
  ['requires_payment_method', { confirm: false, payment_method: undefined }],
  ['requires_confirmation', { confirm: false }],
  ['requires_action', { payment_method: 'pm_card_threeDSecure2Required' }],
])('an intent in %s can be canceled, once', async (status, overrides) => {
  const sim = await simulator()
  const stripe = client(sim.port)
  const params = { ...payment(), ...overrides }
  if (params.payment_method === undefined) delete params.payment_method
  const open = await stripe.paymentIntents.create(params as ReturnType<typeof payment>)
  expect(open.status).toBe(status)
  expect(await stripe.paymentIntents.cancel(open.id)).toMatchObject({ status: 'canceled', cancellation_reason: null })
  const again = await refusal(stripe.paymentIntents.cancel(open.id))
  expect(again).toMatchObject({ statusCode: 400, code: 'payment_intent_unexpected_state' })
  expect(again.payment_intent).toMatchObject({ id: open.id, status: 'canceled' })
})

test('what is paid cannot be canceled', async () => {
  const sim = await simulator()
  const stripe = client(sim.port)
  const paid = await stripe.paymentIntents.create(payment())
  const error = await refusal(stripe.paymentIntents.cancel(paid.id))
  expect(error).toMatchObject({ statusCode: 400, code: 'payment_intent_unexpected_state' })
  expect(error.payment_intent).toMatchObject({ status: 'succeeded' })
})

test('a canceled intent cannot be finished by the customer any more', async () => {
  const sim = await simulator()
  const stripe = client(sim.port)
  const open = await stripe.paymentIntents.create(payment({ payment_method: 'pm_card_threeDSecure2Required' }))
  await stripe.paymentIntents.cancel(open.id)
  const action = await control(sim, 'POST', `/payment_intents/${open.id}/action`, { outcome: 'succeed' })
  expect(action.status).toBe(400)
  expect((await books(sim))[0]).toMatchObject({ status: 'canceled', amount_received: 0, charges: [] })
})

test('a hold can be let lapse, and nothing else can', async () => {
  const sim = await simulator()
  const stripe = client(sim.port)
  const held = await stripe.paymentIntents.create(hold())
  expect((await control(sim, 'POST', `/payment_intents/${held.id}/expire`)).status).toBe(200)
  expect(await stripe.paymentIntents.retrieve(held.id)).toMatchObject({
    status: 'canceled',
    cancellation_reason: 'automatic',
    amount_received: 0,
  })
  expect((await control(sim, 'POST', `/payment_intents/${held.id}/expire`)).status).toBe(400)
})

test('a hold lapses by itself when its time is up', async () => {
  const sim = await simulator({ holdLifetimeMs: 1 })
  const stripe = client(sim.port)
  const held = await stripe.paymentIntents.create(hold())
  const lapsed = await until('the hold lapses', async () => {
    const intent = await stripe.paymentIntents.retrieve(held.id)
    return intent.status === 'canceled' ? intent : undefined
  })
  expect(lapsed.cancellation_reason).toBe('automatic')
})

test('a hold that needs 3-D Secure is taken once the customer has authenticated', async () => {
  const sim = await simulator()
  const stripe = client(sim.port)
  const open = await stripe.paymentIntents.create(hold({ payment_method: 'pm_card_threeDSecure2Required' }))
  await control(sim, 'POST', `/payment_intents/${open.id}/action`, { outcome: 'succeed' })
  expect(await stripe.paymentIntents.retrieve(open.id)).toMatchObject({
    status: 'requires_capture',
    amount_capturable: 1250,
    amount_received: 0,
  })
})
