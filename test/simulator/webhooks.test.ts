import type Stripe from 'stripe'
import { expect, test } from 'vitest'
import { inbox, type Received } from './inbox.ts'
import { client, control, dahlia, payment, refusal, simulator, until, webhookSecret } from './support.ts'

const types = (received: Received[]) => received.map(({ event }) => event.type)
const ofType = (received: Received[], type: string) => received.filter(({ event }) => event.type === type)

async function notifying(options: Parameters<typeof simulator>[0] = {}, answer?: Parameters<typeof inbox>[0]) {
  const box = await inbox(answer)
  const sim = await simulator({ webhookUrl: box.url, webhookRetryBaseMs: 10, settleDelayMs: 20, ...options })
  const arrived = (count: number) =>
    until(`${count} notifications have arrived`, () => (box.received.length >= count ? box.received : undefined))
  return { ...box, sim, stripe: client(sim.port), arrived }
}

test('notifications are signed over the bytes that are sent', async () => {
  const { stripe, arrived } = await notifying()
  const paid = await stripe.paymentIntents.create(payment({ metadata: { name: 'Blåbær «œuvre» 🫐' } }))
  for (const { body, headers } of await arrived(3)) {
    const signature = String(headers['stripe-signature'])
    expect(signature).toMatch(/^t=\d+,v1=[0-9a-f]{64}$/)
    const event = stripe.webhooks.constructEvent(body, signature, webhookSecret)
    expect(event).toMatchObject({
      object: 'event',
      livemode: false,
      pending_webhooks: 1,
      api_version: dahlia,
    })
    expect(event.data.object).toMatchObject({ metadata: paid.metadata })
    expect(event).not.toHaveProperty('account')
    expect(body).toBe(JSON.stringify(event, null, 2))
    expect(() => stripe.webhooks.constructEvent(body, signature, 'whsec_other')).toThrow()
    expect(() => stripe.webhooks.constructEvent(`${body} `, signature, webhookSecret)).toThrow()
  }
})

test('a payment is announced with the object as it was then', async () => {
  const { stripe, arrived } = await notifying()
  const paid = await stripe.paymentIntents.create(payment(), { idempotencyKey: 'k1' })
  const received = await arrived(3)
  expect(types(received).sort()).toEqual(['charge.succeeded', 'payment_intent.created', 'payment_intent.succeeded'])
  const [created] = ofType(received, 'payment_intent.created')
  expect(created?.event.data.object).toMatchObject({ id: paid.id, amount_received: 0, latest_charge: null })
  const [succeeded] = ofType(received, 'payment_intent.succeeded')
  expect(succeeded?.event.data.object).toEqual(JSON.parse(JSON.stringify(paid)))
  expect(succeeded?.event.request).toEqual({ id: paid.lastResponse.requestId, idempotency_key: 'k1' })
})

test('every change of state is announced', async () => {
  const { sim, stripe, received } = await notifying()
  const happened = async (...expected: string[]) => {
    await until(`${expected} have arrived`, () => (received.length >= expected.length ? true : undefined))
    expect(types(received.splice(0)).sort()).toEqual(expected.sort())
  }
  await refusal(stripe.paymentIntents.create(payment({ payment_method: 'pm_card_chargeDeclined' })))
  await happened('payment_intent.created', 'charge.failed', 'payment_intent.payment_failed')
  const waiting = await stripe.paymentIntents.create(payment({ payment_method: 'pm_card_threeDSecure2Required' }))
  await happened('payment_intent.created', 'payment_intent.requires_action')
  await stripe.paymentIntents.cancel(waiting.id)
  await happened('payment_intent.canceled')
  const held = await stripe.paymentIntents.create(payment({ capture_method: 'manual' }))
  await happened('payment_intent.created', 'charge.succeeded', 'payment_intent.amount_capturable_updated')
  await stripe.paymentIntents.capture(held.id)
  await happened('charge.captured', 'payment_intent.succeeded')
  const released = await stripe.paymentIntents.create(payment({ capture_method: 'manual' }))
  await happened('payment_intent.created', 'charge.succeeded', 'payment_intent.amount_capturable_updated')
  await stripe.paymentIntents.cancel(released.id)
  await happened('charge.refunded', 'payment_intent.canceled')
  const slow = await stripe.paymentIntents.create(payment({ payment_method: 'pm_card_sim_processing' }))
  await happened('payment_intent.created', 'charge.pending', 'payment_intent.processing')
  await control(sim, 'POST', `/payment_intents/${slow.id}/action`, { outcome: 'succeed' })
  await happened('charge.succeeded', 'payment_intent.succeeded')
  await stripe.refunds.create({ payment_intent: slow.id })
  await happened('refund.created', 'charge.refunded')
  const unlucky = await stripe.paymentIntents.create(payment({ payment_method: 'pm_card_refundFail' }))
  await happened('payment_intent.created', 'charge.succeeded', 'payment_intent.succeeded')
  await stripe.refunds.create({ payment_intent: unlucky.id })
  await happened('refund.created', 'charge.refunded', 'refund.failed', 'refund.updated', 'charge.refund.updated')
  await stripe.paymentIntents.create(payment({ payment_method: 'pm_card_createDispute' }))
  await happened(
    'payment_intent.created',
    'charge.succeeded',
    'payment_intent.succeeded',
    'charge.dispute.created',
    'charge.dispute.funds_withdrawn',
  )
})

test('a replay and a refusal announce nothing', async () => {
  const { sim, stripe, arrived } = await notifying()
  await refusal(stripe.paymentIntents.create(payment({ amount: 1 })))
  for (let at = 0; at < 3; at++) await stripe.paymentIntents.create(payment(), { idempotencyKey: 'k1' })
  await arrived(3)
  expect((await control(sim, 'GET', '/events')).body.data).toHaveLength(3)
})

test('events of a connected account and of live mode say so', async () => {
  const { sim, arrived } = await notifying()
  await client(sim.port, 'sk_live_demo', { stripeAccount: 'acct_shop' }).paymentIntents.create(payment())
  for (const { event } of await arrived(3)) expect(event).toMatchObject({ account: 'acct_shop', livemode: true })
})

test('what is not accepted is sent again, with the same event and a new signature', async () => {
  const { stripe, arrived, sim } = await notifying({ webhookTypes: ['payment_intent.succeeded'] }, (_, earlier) =>
    earlier < 3 ? 500 : 200,
  )
  await stripe.paymentIntents.create(payment())
  const received = await arrived(4)
  expect(new Set(received.map(({ event }) => event.id)).size).toBe(1)
  for (const { body, headers } of received) {
    stripe.webhooks.constructEvent(body, String(headers['stripe-signature']), webhookSecret)
  }
  await until('it is no longer pending', async () => {
    const { data } = (await control(sim, 'GET', '/events')).body
    return data.every((event) => event.pending_webhooks === 0) ? true : undefined
  })
  expect(received).toHaveLength(4)
})

test('a receiver that is not there yet gets everything later', async () => {
  const gone = await inbox()
  await gone.close()
  const sim = await simulator({ webhookUrl: gone.url, webhookRetryBaseMs: 10 })
  await client(sim.port).paymentIntents.create(payment())
  const back = await inbox(undefined, gone.port)
  await until('all have arrived', () => (new Set(types(back.received)).size === 3 ? true : undefined))
})

test('notifications can come twice', async () => {
  const { sim, stripe, arrived } = await notifying()
  expect((await control(sim, 'PUT', '/webhooks', { duplicates: 2 })).status).toBe(200)
  await stripe.paymentIntents.create(payment())
  const received = await arrived(9)
  expect(ofType(received, 'payment_intent.succeeded')).toHaveLength(3)
  expect(new Set(received.map(({ event }) => event.id)).size).toBe(3)
})

test('notifications can be lost', async () => {
  const { sim, stripe, arrived, received } = await notifying()
  await control(sim, 'PUT', '/webhooks', { drop: 1 })
  const lost = await stripe.paymentIntents.create(payment())
  await control(sim, 'PUT', '/webhooks', {})
  const told = await stripe.paymentIntents.create(payment())
  await arrived(3)
  expect(JSON.stringify(received)).toContain(told.id)
  expect(JSON.stringify(received)).not.toContain(lost.id)
})

test('notifications can come late, after those of later payments', async () => {
  const { sim, stripe, arrived } = await notifying({ webhookTypes: ['payment_intent.succeeded'] })
  await control(sim, 'PUT', '/webhooks', { delay_ms: 1000 })
  const first = await stripe.paymentIntents.create(payment())
  await control(sim, 'PUT', '/webhooks', {})
  const second = await stripe.paymentIntents.create(payment())
  const ids = (await arrived(2)).map(({ event }) => (event.data.object as Stripe.PaymentIntent).id)
  expect(ids).toEqual([second.id, first.id])
})

test('notifications can come in any order', async () => {
  const { sim, stripe, arrived } = await notifying({ webhookTypes: ['payment_intent.succeeded'] })
  await control(sim, 'PUT', '/webhooks', { shuffle: true, delay_ms: 300, seed: 7 })
  const made: string[] = []
  for (let at = 0; at < 20; at++) made.push((await stripe.paymentIntents.create(payment())).id)
  const got = (await arrived(20)).map(({ event }) => (event.data.object as Stripe.PaymentIntent).id)
  expect(got).not.toEqual(made)
  expect(got.sort()).toEqual(made.sort())
})

test('an event can be delivered again', async () => {
  const { sim, stripe, arrived } = await notifying({ webhookTypes: ['payment_intent.succeeded'] })
  await stripe.paymentIntents.create(payment())
  const [first] = await arrived(1)
  const again = await control(sim, 'POST', `/events/${first?.event.id}/redeliver`)
  expect(again.status).toBe(200)
  const received = await arrived(2)
  expect(received[1]?.event.id).toBe(first?.event.id)
  expect((await control(sim, 'POST', '/events/evt_none/redeliver')).status).toBe(404)
  const silent = await simulator()
  const paid = await client(silent.port).paymentIntents.create(payment())
  const [event] = (await client(silent.port).events.list()).data
  expect(event?.data.object).toMatchObject({ id: paid.id })
  expect((await control(silent, 'POST', `/events/${event?.id}/redeliver`)).status).toBe(400)
})

test('an event can be made by hand, well signed', async () => {
  const { sim, stripe, arrived } = await notifying({ webhookTypes: ['payment_intent.succeeded'] })
  const open = await stripe.paymentIntents.create(payment({ confirm: false }))
  const object = { id: open.id, status: 'succeeded', amount_received: 5000, metadata: { order: 'ord_dear' } }
  const made = await control(sim, 'POST', '/events', { type: 'payment_intent.succeeded', data: { object } })
  expect(made).toMatchObject({ status: 200, body: { object: 'event' } })
  const [received] = await arrived(1)
  const event = stripe.webhooks.constructEvent(
    String(received?.body),
    String(received?.headers['stripe-signature']),
    webhookSecret,
  )
  expect(event).toMatchObject({ id: made.body.id, data: { object: { ...object, amount: 1250, currency: 'eur' } } })
  expect(await stripe.paymentIntents.retrieve(open.id)).toMatchObject({
    status: 'requires_confirmation',
    amount_received: 0,
  })
  expect((await control(sim, 'POST', '/events', { type: 'payment_intent.succeeded' })).status).toBe(400)
})
