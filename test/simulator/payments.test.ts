import { expect, test } from 'vitest'
import { books, client, control, payment, refusal, simulator } from './support.ts'

test('a confirmed card payment succeeds, with its charge, and is found again', async () => {
  const sim = await simulator()
  const stripe = client(sim.port)
  const paid = await stripe.paymentIntents.create(payment({ metadata: { order: 'ord_1' } }))
  expect(paid).toMatchObject({
    object: 'payment_intent',
    status: 'succeeded',
    amount: 1250,
    amount_received: 1250,
    currency: 'eur',
    livemode: false,
    metadata: { order: 'ord_1' },
    payment_method: 'pm_card_visa',
    payment_method_types: ['card'],
  })
  expect(paid.id).toMatch(/^pi_\w+$/)
  expect(paid.client_secret).toMatch(new RegExp(`^${paid.id}_secret_\\w+$`))
  expect(paid.latest_charge).toMatch(/^ch_\w+$/)
  const found = await stripe.paymentIntents.retrieve(paid.id, { expand: ['latest_charge'] })
  expect(found.latest_charge).toMatchObject({ status: 'succeeded', paid: true, captured: true, amount_captured: 1250 })
  expect(await stripe.paymentIntents.retrieve(paid.id)).toEqual(paid)
})

test('a payment goes through confirming by itself', async () => {
  const sim = await simulator()
  const stripe = client(sim.port)
  const { payment_method: _, confirm: __, ...bare } = payment()
  const created = await stripe.paymentIntents.create(bare)
  expect(created.status).toBe('requires_payment_method')
  const early = await refusal(stripe.paymentIntents.confirm(created.id))
  expect(early).toMatchObject({ statusCode: 400, code: 'payment_intent_unexpected_state' })
  const paid = await stripe.paymentIntents.confirm(created.id, { payment_method: 'pm_card_mastercard' })
  expect(paid).toMatchObject({ id: created.id, status: 'succeeded', payment_method: 'pm_card_mastercard' })
  const again = await refusal(stripe.paymentIntents.confirm(created.id))
  expect(again).toMatchObject({ statusCode: 400, code: 'payment_intent_unexpected_state' })
  expect(again.raw).toMatchObject({ payment_intent: { id: created.id, status: 'succeeded' } })
})

test('a payment that was created with its card waits for the confirmation', async () => {
  const sim = await simulator()
  const created = await client(sim.port).paymentIntents.create(payment({ confirm: false }))
  expect(created).toMatchObject({ status: 'requires_confirmation', latest_charge: null, amount_received: 0 })
})

test.each([
  ['pm_card_chargeDeclined', 'card_declined', 'generic_decline'],
  ['pm_card_visa_chargeDeclined', 'card_declined', 'generic_decline'],
  ['pm_card_chargeDeclinedInsufficientFunds', 'card_declined', 'insufficient_funds'],
  ['pm_card_visa_chargeDeclinedInsufficientFunds', 'card_declined', 'insufficient_funds'],
  ['pm_card_visa_chargeDeclinedLostCard', 'card_declined', 'lost_card'],
  ['pm_card_visa_chargeDeclinedStolenCard', 'card_declined', 'stolen_card'],
  ['pm_card_visa_chargeDeclinedVelocityLimitExceeded', 'card_declined', 'card_velocity_exceeded'],
  ['pm_card_chargeDeclinedFraudulent', 'card_declined', 'fraudulent'],
  ['pm_card_chargeDeclinedExpiredCard', 'expired_card', 'expired_card'],
  ['pm_card_chargeDeclinedIncorrectCvc', 'incorrect_cvc', 'incorrect_cvc'],
  ['pm_card_chargeDeclinedProcessingError', 'processing_error', 'processing_error'],
])('%s is declined with %s / %s, and the intent is kept', async (payment_method, code, decline_code) => {
  const sim = await simulator()
  const stripe = client(sim.port)
  const error = await refusal(stripe.paymentIntents.create(payment({ payment_method })))
  expect(error).toMatchObject({ type: 'StripeCardError', statusCode: 402, code, decline_code })
  const intent = error.payment_intent
  expect(intent).toMatchObject({
    status: 'requires_payment_method',
    payment_method: null,
    amount_received: 0,
    last_payment_error: { type: 'card_error', code, decline_code, payment_method: { id: payment_method } },
  })
  expect(error.charge).toBe(intent?.latest_charge)
  const charge = await stripe.charges.retrieve(String(error.charge))
  expect(charge).toMatchObject({ status: 'failed', paid: false, failure_code: code, payment_intent: intent?.id })
  const paid = await stripe.paymentIntents.confirm(String(intent?.id), { payment_method: 'pm_card_visa' })
  expect(paid).toMatchObject({ status: 'succeeded', last_payment_error: null })
  const [booked] = await books(sim)
  expect(booked?.charges.map((tried) => tried.status)).toEqual(['failed', 'succeeded'])
})

test('a card that needs 3-D Secure waits for the customer, who succeeds', async () => {
  const sim = await simulator()
  const stripe = client(sim.port)
  const waiting = await stripe.paymentIntents.create(payment({ payment_method: 'pm_card_threeDSecure2Required' }))
  expect(waiting).toMatchObject({
    status: 'requires_action',
    latest_charge: null,
    next_action: { type: 'use_stripe_sdk' },
  })
  const action = await control(sim, 'POST', `/payment_intents/${waiting.id}/action`, { outcome: 'succeed' })
  expect(action).toMatchObject({ status: 200, body: { status: 'succeeded' } })
  const paid = await stripe.paymentIntents.retrieve(waiting.id, { expand: ['latest_charge'] })
  expect(paid).toMatchObject({ status: 'succeeded', amount_received: 1250, next_action: null })
  expect(paid.latest_charge).toMatchObject({
    payment_method_details: { card: { three_d_secure: { result: 'authenticated' } } },
  })
  const again = await control(sim, 'POST', `/payment_intents/${waiting.id}/action`, { outcome: 'fail' })
  expect(again.status).toBe(400)
})

test('a customer who fails 3-D Secure leaves the intent waiting for another card', async () => {
  const sim = await simulator()
  const stripe = client(sim.port)
  const return_url = 'https://shop.example/back'
  const waiting = await stripe.paymentIntents.create(
    payment({ payment_method: 'pm_card_authenticationRequired', return_url }),
  )
  expect(waiting.next_action).toMatchObject({ type: 'redirect_to_url', redirect_to_url: { return_url } })
  await control(sim, 'POST', `/payment_intents/${waiting.id}/action`, { outcome: 'fail' })
  expect(await stripe.paymentIntents.retrieve(waiting.id)).toMatchObject({
    status: 'requires_payment_method',
    latest_charge: null,
    last_payment_error: { code: 'payment_intent_authentication_failure' },
  })
})

test('a card may be declined after its holder has authenticated', async () => {
  const sim = await simulator()
  const stripe = client(sim.port)
  const payment_method = 'pm_card_authenticationRequiredChargeDeclinedInsufficientFunds'
  const waiting = await stripe.paymentIntents.create(payment({ payment_method }))
  expect(waiting.status).toBe('requires_action')
  await control(sim, 'POST', `/payment_intents/${waiting.id}/action`, { outcome: 'succeed' })
  expect(await stripe.paymentIntents.retrieve(waiting.id)).toMatchObject({
    status: 'requires_payment_method',
    last_payment_error: { decline_code: 'insufficient_funds' },
  })
})

test.each([
  ['off session', { off_session: true }, 'authentication_required'],
  [
    'off session, asking for an error',
    { off_session: true, error_on_requires_action: true },
    'authentication_required',
  ],
  ['with an error asked for', { error_on_requires_action: true }, 'authentication_not_handled'],
])('3-D Secure is a decline %s', async (_, options, decline_code) => {
  const sim = await simulator()
  const create = client(sim.port).paymentIntents.create(
    payment({ payment_method: 'pm_card_authenticationRequired', ...options }),
  )
  const error = await refusal(create)
  expect(error).toMatchObject({ statusCode: 402, code: 'authentication_required', decline_code })
  expect(error.payment_intent?.status).toBe('requires_payment_method')
})

test('a payment off session with an ordinary card succeeds', async () => {
  const sim = await simulator()
  const paid = await client(sim.port).paymentIntents.create(
    payment({ off_session: true, error_on_requires_action: true }),
  )
  expect(paid.status).toBe('succeeded')
})

test.each([
  ['succeed', 'succeeded', 1250],
  ['fail', 'requires_payment_method', 0],
])('a payment in processing is settled on demand: %s', async (outcome, status, amount_received) => {
  const sim = await simulator()
  const stripe = client(sim.port)
  const processing = await stripe.paymentIntents.create(payment({ payment_method: 'pm_card_sim_processing' }))
  expect(processing).toMatchObject({ status: 'processing', amount_received: 0 })
  const cancel = await refusal(stripe.paymentIntents.cancel(processing.id))
  expect(cancel).toMatchObject({ code: 'payment_intent_unexpected_state' })
  await control(sim, 'POST', `/payment_intents/${processing.id}/action`, { outcome })
  expect(await stripe.paymentIntents.retrieve(processing.id)).toMatchObject({ status, amount_received })
})
