import { expect, test } from 'vitest'
import { books, client, control, payment, refusal, simulator, until } from './support.ts'

async function types(sim: { url: string }): Promise<unknown[]> {
  return (await control(sim, 'GET', '/events')).body.data
    .map((event) => event.type)
    .filter((type) => String(type).includes('dispute'))
}

async function open(body: object = {}) {
  const sim = await simulator()
  const stripe = client(sim.port)
  const paid = await stripe.paymentIntents.create(payment())
  const opened = await control(sim, 'POST', '/disputes', { payment_intent: paid.id, ...body })
  expect(opened.status).toBe(200)
  return { sim, stripe, paid, id: String(opened.body.id) }
}

test('a dispute withdraws the money; won, it returns', async () => {
  const { sim, stripe, paid, id } = await open()
  expect(await stripe.disputes.retrieve(id)).toMatchObject({
    object: 'dispute',
    amount: 1250,
    status: 'needs_response',
    payment_intent: paid.id,
    charge: paid.latest_charge,
    balance_transactions: [{ amount: -1250 }],
  })
  expect(await stripe.charges.retrieve(String(paid.latest_charge))).toMatchObject({ disputed: true })
  const refund = await refusal(stripe.refunds.create({ payment_intent: paid.id }))
  expect(refund).toMatchObject({ statusCode: 400, code: 'charge_disputed' })
  await control(sim, 'POST', `/disputes/${id}`, { outcome: 'won' })
  expect(await types(sim)).toEqual([
    'charge.dispute.created',
    'charge.dispute.funds_withdrawn',
    'charge.dispute.funds_reinstated',
    'charge.dispute.closed',
  ])
  expect((await books(sim))[0]?.disputes).toMatchObject([{ id, status: 'won', funds_withdrawn: false }])
  expect(await stripe.refunds.create({ payment_intent: paid.id })).toMatchObject({ amount: 1250 })
})

test('a lost dispute keeps the money and ends', async () => {
  const { sim, stripe, paid, id } = await open({ amount: 500 })
  expect((await control(sim, 'POST', `/disputes/${id}`, { outcome: 'lost' })).status).toBe(200)
  expect(await types(sim)).toEqual([
    'charge.dispute.created',
    'charge.dispute.funds_withdrawn',
    'charge.dispute.closed',
  ])
  expect((await books(sim))[0]?.disputes).toMatchObject([{ amount: 500, status: 'lost', funds_withdrawn: true }])
  expect(await refusal(stripe.refunds.create({ payment_intent: paid.id }))).toMatchObject({ code: 'charge_disputed' })
  expect((await control(sim, 'POST', `/disputes/${id}`, { outcome: 'won' })).status).toBe(400)
})

test('an inquiry takes no money and allows a refund', async () => {
  const { sim, stripe, paid, id } = await open({ status: 'warning_needs_response' })
  expect(await stripe.refunds.create({ payment_intent: paid.id, amount: 100 })).toMatchObject({ status: 'succeeded' })
  expect((await control(sim, 'POST', `/disputes/${id}`, { outcome: 'warning_closed' })).status).toBe(200)
  expect(await types(sim)).toEqual(['charge.dispute.created', 'charge.dispute.closed'])
})

test('an inquiry may become a dispute', async () => {
  const { sim, id } = await open({ status: 'warning_needs_response' })
  expect((await control(sim, 'POST', `/disputes/${id}`, { outcome: 'won' })).status).toBe(400)
  expect((await control(sim, 'POST', `/disputes/${id}`, { outcome: 'needs_response' })).status).toBe(200)
  expect(await types(sim)).toEqual([
    'charge.dispute.created',
    'charge.dispute.updated',
    'charge.dispute.funds_withdrawn',
  ])
})

test.each([
  ['pm_card_createDispute', 'needs_response', true],
  ['pm_card_createDisputeInquiry', 'warning_needs_response', false],
])('%s brings a dispute with it', async (payment_method, status, funds_withdrawn) => {
  const sim = await simulator({ settleDelayMs: 20 })
  const paid = await client(sim.port).paymentIntents.create(payment({ payment_method }))
  expect(paid.status).toBe('succeeded')
  const disputes = await until('it is disputed', async () => {
    const [booked] = await books(sim)
    return booked?.disputes.length ? booked.disputes : undefined
  })
  expect(disputes).toMatchObject([{ amount: 1250, status, funds_withdrawn }])
})

test('disputes are listed by payment and cannot claim more than was captured', async () => {
  const { sim, stripe, paid, id } = await open({ amount: 1000 })
  expect((await stripe.disputes.list({ payment_intent: paid.id })).data).toMatchObject([{ id }])
  expect((await control(sim, 'POST', '/disputes', { payment_intent: paid.id, amount: 251 })).status).toBe(400)
  expect((await control(sim, 'POST', '/disputes', { payment_intent: paid.id, amount: 250 })).status).toBe(200)
  expect(await refusal(stripe.disputes.retrieve('du_none'))).toMatchObject({
    statusCode: 404,
    code: 'resource_missing',
  })
})
