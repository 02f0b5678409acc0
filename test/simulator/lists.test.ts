import type Stripe from 'stripe'
import { beforeAll, describe, expect, test } from 'vitest'
import { startSimulator } from '../../src/simulator/server.ts'
import { client, control, payment, refusal, simulator, webhookSecret } from './support.ts'

describe('ten payments', () => {
  let stripe: Stripe
  let newestFirst: string[] = []

  beforeAll(async () => {
    const sim = await startSimulator({ port: 0, webhookSecret })
    stripe = client(sim.port)
    for (let at = 0; at < 10; at++) {
      const customer = at % 2 === 0 ? 'cus_even' : 'cus_odd'
      newestFirst = [(await stripe.paymentIntents.create(payment({ customer }))).id, ...newestFirst]
    }
    return () => sim.close()
  })

  const page = async (params: Stripe.PaymentIntentListParams) => {
    const { data, has_more } = await stripe.paymentIntents.list(params)
    return { ids: data.map((intent) => intent.id), has_more }
  }

  test('are listed newest first', async () => {
    expect(await page({})).toEqual({ ids: newestFirst, has_more: false })
    expect(await page({ limit: 3 })).toEqual({ ids: newestFirst.slice(0, 3), has_more: true })
  })

  test('are paged forwards and backwards', async () => {
    const at = (index: number) => String(newestFirst[index])
    expect(await page({ limit: 4, starting_after: at(2) })).toEqual({ ids: newestFirst.slice(3, 7), has_more: true })
    expect(await page({ limit: 4, starting_after: at(6) })).toEqual({ ids: newestFirst.slice(7), has_more: false })
    expect(await page({ limit: 4, ending_before: at(6) })).toEqual({ ids: newestFirst.slice(2, 6), has_more: true })
    expect(await page({ limit: 4, ending_before: at(3) })).toEqual({ ids: newestFirst.slice(0, 3), has_more: false })
  })

  test('are walked by the SDK', async () => {
    const ids: string[] = []
    for await (const intent of stripe.paymentIntents.list({ limit: 3 })) ids.push(intent.id)
    expect(ids).toEqual(newestFirst)
  })

  test('are filtered by customer, also across pages', async () => {
    const odd = newestFirst.filter((_, index) => index % 2 === 0)
    expect(await page({ customer: 'cus_odd' })).toEqual({ ids: odd, has_more: false })
    const starting_after = String(odd[1])
    expect(await page({ customer: 'cus_odd', limit: 2, starting_after })).toEqual({
      ids: odd.slice(2, 4),
      has_more: true,
    })
  })

  test('are filtered by when they were created', async () => {
    const all = await stripe.paymentIntents.list({ limit: 100 })
    const seconds = [...new Set(all.data.map((intent) => intent.created))]
    const from = Math.min(...seconds)
    const to = Math.max(...seconds)
    expect(await page({ created: { gte: from, lte: to } })).toEqual({ ids: newestFirst, has_more: false })
    expect(await page({ created: { lt: from } })).toEqual({ ids: [], has_more: false })
    expect(await page({ created: { gt: to } })).toEqual({ ids: [], has_more: false })
    for (const second of seconds) {
      const ids = all.data.filter((intent) => intent.created === second).map((intent) => intent.id)
      expect(await page({ created: second })).toEqual({ ids, has_more: false })
      expect(await page({ created: { gt: second - 1, lt: second + 1 } })).toEqual({ ids, has_more: false })
    }
  })

  test.each([
    [{ limit: 0 }, 'limit'],
    [{ limit: 101 }, 'limit'],
    [{ starting_after: 'pi_none' }, 'starting_after'],
    [{ ending_before: 'pi_none' }, 'ending_before'],
    [{ created: { gte: 'yesterday' } }, 'created[gte]'],
    [{ colour: 'red' }, 'colour'],
    [{ expand: ['latest_charge'] }, 'expand'],
  ])('refuse to be listed with %j', async (params, param) => {
    const error = await refusal(stripe.paymentIntents.list(params as unknown as Stripe.PaymentIntentListParams))
    expect(error).toMatchObject({ statusCode: 400, param })
  })

  test('are expanded in a list', async () => {
    const { data } = await stripe.paymentIntents.list({ limit: 2, expand: ['data.latest_charge'] })
    expect(data).toMatchObject([{ latest_charge: { object: 'charge' } }, { latest_charge: { object: 'charge' } }])
  })
})

test('charges of a payment are listed, the declined ones too', async () => {
  const sim = await simulator()
  const stripe = client(sim.port)
  const declined = await refusal(stripe.paymentIntents.create(payment({ payment_method: 'pm_card_chargeDeclined' })))
  const id = String(declined.payment_intent?.id)
  await stripe.paymentIntents.create(payment())
  await stripe.paymentIntents.confirm(id, { payment_method: 'pm_card_visa' })
  const { data } = await stripe.charges.list({ payment_intent: id })
  expect(data.map((charge) => charge.status)).toEqual(['succeeded', 'failed'])
})

test('objects are expanded through each other', async () => {
  const sim = await simulator()
  const stripe = client(sim.port)
  const paid = await stripe.paymentIntents.create({ ...payment(), expand: ['latest_charge', 'payment_method'] })
  expect(paid).toMatchObject({
    latest_charge: { object: 'charge' },
    payment_method: { id: 'pm_card_visa', card: { last4: '4242' } },
  })
  const expand = ['charge.payment_intent', 'payment_intent']
  const refund = await stripe.refunds.create({ payment_intent: paid.id, expand })
  expect(refund).toMatchObject({
    payment_intent: { id: paid.id },
    charge: { amount_refunded: 1250, payment_intent: { id: paid.id, latest_charge: expect.stringMatching(/^ch_/) } },
  })
})

test('events are listed by type and read again', async () => {
  const sim = await simulator()
  const stripe = client(sim.port)
  const paid = await stripe.paymentIntents.create(payment(), { idempotencyKey: 'k1' })
  const all = await stripe.events.list()
  expect(all.data.map((event) => event.type)).toEqual([
    'payment_intent.succeeded',
    'charge.succeeded',
    'payment_intent.created',
  ])
  const [succeeded] = (await stripe.events.list({ type: 'payment_intent.succeeded' })).data
  expect(succeeded).toMatchObject({
    object: 'event',
    livemode: false,
    pending_webhooks: 0,
    request: { idempotency_key: 'k1', id: paid.lastResponse.requestId },
    data: { object: { id: paid.id, status: 'succeeded' } },
  })
  expect(await stripe.events.retrieve(String(succeeded?.id))).toEqual(succeeded)
  const kept = (await control(sim, 'GET', '/events')).body.data
  expect(kept.map((event) => event.type)).toEqual([
    'payment_intent.created',
    'charge.succeeded',
    'payment_intent.succeeded',
  ])
})
