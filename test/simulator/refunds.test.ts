import { expect, test } from 'vitest'
import { books, client, control, payment, refusal, simulator, until } from './support.ts'

test('partial refunds add up to the payment and no further', async () => {
  const sim = await simulator()
  const stripe = client(sim.port)
  const paid = await stripe.paymentIntents.create(payment())
  const first = await stripe.refunds.create({
    payment_intent: paid.id,
    amount: 417,
    reason: 'requested_by_customer',
    metadata: { refund: 'ref_1' },
  })
  expect(first).toMatchObject({
    object: 'refund',
    amount: 417,
    currency: 'eur',
    status: 'succeeded',
    payment_intent: paid.id,
    charge: paid.latest_charge,
    reason: 'requested_by_customer',
    metadata: { refund: 'ref_1' },
  })
  expect(await stripe.refunds.retrieve(first.id)).toEqual(first)
  await stripe.refunds.create({ charge: String(paid.latest_charge), amount: 417 })
  const tooMuch = await refusal(stripe.refunds.create({ payment_intent: paid.id, amount: 417 }))
  expect(tooMuch).toMatchObject({
    type: 'StripeInvalidRequestError',
    statusCode: 400,
    param: 'amount',
    code: undefined,
  })
  const rest = await stripe.refunds.create({ payment_intent: paid.id })
  expect(rest.amount).toBe(416)
  const charge = await stripe.charges.retrieve(String(paid.latest_charge), { expand: ['refunds'] })
  expect(charge).toMatchObject({ refunded: true, amount_refunded: 1250 })
  expect(charge.refunds?.data.map((refund) => refund.amount)).toEqual([416, 417, 417])
  const again = await refusal(stripe.refunds.create({ payment_intent: paid.id }))
  expect(again).toMatchObject({ statusCode: 400, code: 'charge_already_refunded' })
  const [booked] = await books(sim)
  expect(booked?.refunds.map(({ amount, status }) => [amount, status])).toEqual([
    [417, 'succeeded'],
    [417, 'succeeded'],
    [416, 'succeeded'],
  ])
})

test('refunds are listed by payment, by charge and by time', async () => {
  const sim = await simulator()
  const stripe = client(sim.port)
  const paid = await stripe.paymentIntents.create(payment())
  const other = await stripe.paymentIntents.create(payment())
  const ids: string[] = []
  for (const amount of [100, 200, 300]) {
    ids.unshift((await stripe.refunds.create({ payment_intent: paid.id, amount })).id)
  }
  await stripe.refunds.create({ payment_intent: other.id })
  const all = await stripe.refunds.list({ payment_intent: paid.id })
  expect(all.data.map((refund) => refund.id)).toEqual(ids)
  expect(
    (await stripe.refunds.list({ charge: String(paid.latest_charge), limit: 2 })).data.map(({ id }) => id),
  ).toEqual(ids.slice(0, 2))
  const later = await stripe.refunds.list({ payment_intent: paid.id, limit: 1, starting_after: String(ids[0]) })
  expect(later).toMatchObject({ has_more: true, data: [{ id: ids[1] }] })
  expect((await stripe.refunds.list({ created: { gte: paid.created } })).data).toHaveLength(4)
  expect((await stripe.refunds.list({ created: { lt: paid.created } })).data).toHaveLength(0)
})

test('what was not captured or does not exist cannot be refunded', async () => {
  const sim = await simulator()
  const stripe = client(sim.port)
  const held = await stripe.paymentIntents.create(payment({ capture_method: 'manual' }))
  expect(await refusal(stripe.refunds.create({ payment_intent: held.id }))).toMatchObject({
    statusCode: 400,
    code: undefined,
  })
  const open = await stripe.paymentIntents.create(payment({ confirm: false }))
  expect(await refusal(stripe.refunds.create({ payment_intent: open.id }))).toMatchObject({ statusCode: 400 })
  expect(await refusal(stripe.refunds.create({ payment_intent: 'pi_none' }))).toMatchObject({
    statusCode: 400,
    code: 'resource_missing',
    param: 'payment_intent',
  })
  expect(await refusal(stripe.refunds.create({}))).toMatchObject({ statusCode: 400, code: 'parameter_missing' })
  expect(await refusal(stripe.refunds.retrieve('re_none'))).toMatchObject({ statusCode: 404, code: 'resource_missing' })
})

test('a refund of pm_card_pendingRefund is pending and then succeeds', async () => {
  const sim = await simulator({ settleDelayMs: 20 })
  const stripe = client(sim.port)
  const paid = await stripe.paymentIntents.create(payment({ payment_method: 'pm_card_pendingRefund' }))
  const refund = await stripe.refunds.create({ payment_intent: paid.id })
  expect(refund.status).toBe('pending')
  await until('it has succeeded', async () =>
    (await stripe.refunds.retrieve(refund.id)).status === 'succeeded' ? true : undefined,
  )
})

test('a refund of pm_card_refundFail fails later and gives its amount back', async () => {
  const sim = await simulator({ settleDelayMs: 20 })
  const stripe = client(sim.port)
  const paid = await stripe.paymentIntents.create(payment({ payment_method: 'pm_card_refundFail' }))
  const refund = await stripe.refunds.create({ payment_intent: paid.id, amount: 1000 })
  expect(refund.status).toBe('succeeded')
  const failed = await until('it has failed', async () => {
    const now = await stripe.refunds.retrieve(refund.id)
    return now.status === 'failed' ? now : undefined
  })
  expect(failed.failure_reason).toBe('expired_or_canceled_card')
  expect(await stripe.charges.retrieve(String(paid.latest_charge))).toMatchObject({
    amount_refunded: 0,
    refunded: false,
  })
  expect(await stripe.refunds.create({ payment_intent: paid.id })).toMatchObject({ amount: 1250 })
})

test('the bank settles a refund on demand, in the ways that are possible', async () => {
  const sim = await simulator({ settleDelayMs: 600_000 })
  const stripe = client(sim.port)
  const paid = await stripe.paymentIntents.create(payment({ payment_method: 'pm_card_pendingRefund' }))
  const refund = await stripe.refunds.create({ payment_intent: paid.id })
  const settle = (status: string) => control(sim, 'POST', `/refunds/${refund.id}`, { status })
  expect(await settle('succeeded')).toMatchObject({ status: 200, body: { status: 'succeeded' } })
  expect((await settle('succeeded')).status).toBe(400)
  expect(await settle('failed')).toMatchObject({ status: 200, body: { status: 'failed' } })
  expect((await settle('succeeded')).status).toBe(400)
})

test('a refund can be made in the dashboard', async () => {
  const sim = await simulator()
  const stripe = client(sim.port)
  const paid = await stripe.paymentIntents.create(payment())
  const made = await control(sim, 'POST', '/refunds', { payment_intent: paid.id, amount: 250 })
  expect(made).toMatchObject({ status: 200, body: { object: 'refund', amount: 250, status: 'succeeded' } })
  expect((await stripe.refunds.list({ payment_intent: paid.id })).data).toMatchObject([
    { id: made.body.id, amount: 250 },
  ])
  expect((await control(sim, 'POST', '/refunds', { payment_intent: paid.id, amount: 1001 })).status).toBe(400)
})
