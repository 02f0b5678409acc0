import type Stripe from 'stripe'
import { expect, test } from 'vitest'
import { books, client, control, payment, refusal, simulator, until } from './support.ts'

const key = { idempotencyKey: 'k1' }
/** How often the SDK sends a request whose connection is closed, even where it is told not to retry. */
const sent = 2

async function misbehaving(...rules: object[]) {
  const sim = await simulator()
  const stripe = client(sim.port, 'sk_test_demo', { timeout: 5000 })
  const set = await control(sim, 'POST', '/faults', {
    rules: rules.map((rule) => ({ method: 'POST', path: '/v1/payment_intents', ...rule })),
  })
  expect(set.status).toBe(200)
  return {
    sim,
    stripe,
    pay: (options: Stripe.RequestOptions = key) => stripe.paymentIntents.create(payment(), options),
  }
}

test('drop_before closes the connection and nothing has happened', async () => {
  const { sim, pay } = await misbehaving({ fault: 'drop_before', times: sent })
  expect(await refusal(pay())).toMatchObject({ type: 'StripeConnectionError' })
  expect(await books(sim)).toEqual([])
  const paid = await pay()
  expect(await books(sim)).toMatchObject([{ id: paid.id, requests: sent + 1 }])
})

test('drop_after charges and loses the answer, which a repeat gets', async () => {
  const { sim, pay } = await misbehaving({ fault: 'drop_after', times: sent })
  expect(await refusal(pay())).toMatchObject({ type: 'StripeConnectionError' })
  expect(await books(sim)).toMatchObject([{ status: 'succeeded', charges: [{ status: 'succeeded' }] }])
  const paid = await pay()
  expect(paid.lastResponse.headers['idempotent-replayed']).toBe('true')
  expect(await books(sim)).toMatchObject([{ id: paid.id }])
})

test('hang charges and never answers, until the client goes away', async () => {
  const { sim, pay } = await misbehaving({ fault: 'hang', times: 1 })
  expect(await refusal(pay({ ...key, timeout: 200 }))).toMatchObject({ type: 'StripeConnectionError' })
  await until('it is charged', async () => ((await books(sim)).length === 1 ? true : undefined))
  expect(await pay()).toMatchObject({ status: 'succeeded' })
  expect(await books(sim)).toHaveLength(1)
})

test('error_before answers 500 without an effect, for ever under its key', async () => {
  const { sim, pay } = await misbehaving({ fault: 'error_before', times: 1 })
  expect(await refusal(pay())).toMatchObject({ type: 'StripeAPIError', statusCode: 500 })
  const again = await refusal(pay())
  expect(again).toMatchObject({ statusCode: 500 })
  expect(again.headers?.['idempotent-replayed']).toBe('true')
  expect(await books(sim)).toEqual([])
  expect(await pay({ idempotencyKey: 'k2' })).toMatchObject({ status: 'succeeded' })
})

test('error_after charges and answers 500, for ever under its key', async () => {
  const { sim, pay } = await misbehaving({ fault: 'error_after', times: 1 })
  expect(await refusal(pay())).toMatchObject({ statusCode: 500 })
  const again = await refusal(pay())
  expect(again).toMatchObject({ statusCode: 500 })
  expect(again.headers?.['idempotent-replayed']).toBe('true')
  expect(await books(sim)).toMatchObject([{ status: 'succeeded', requests: 2, charges: [{}] }])
})

test('error_after hides a decline as well', async () => {
  const { sim, stripe } = await misbehaving({ fault: 'error_after', times: 1 })
  const declined = stripe.paymentIntents.create(payment({ payment_method: 'pm_card_chargeDeclined' }), key)
  expect(await refusal(declined)).toMatchObject({ statusCode: 500 })
  expect(await books(sim)).toMatchObject([{ status: 'requires_payment_method', charges: [{ status: 'failed' }] }])
})

test('rate_limit answers 429, and the key is still free', async () => {
  const { sim, pay } = await misbehaving({ fault: 'rate_limit', times: 1 })
  expect(await refusal(pay())).toMatchObject({ type: 'StripeRateLimitError', statusCode: 429, code: 'rate_limit' })
  expect(await books(sim)).toEqual([])
  expect(await pay()).toMatchObject({ status: 'succeeded' })
})

test('latency delays the effect, which comes though the client has gone', async () => {
  const { sim, pay } = await misbehaving({ fault: 'latency', latency_ms: 1500, times: 1 })
  expect(await refusal(pay({ ...key, timeout: 100 }))).toMatchObject({ type: 'StripeConnectionError' })
  expect(await books(sim)).toEqual([])
  await until('it is charged', async () => ((await books(sim)).length === 1 ? true : undefined))
  expect(await pay()).toMatchObject({ status: 'succeeded' })
  expect(await books(sim)).toHaveLength(1)
})

test('latency goes with another fault', async () => {
  const { sim, pay } = await misbehaving(
    { fault: 'latency', latency_ms: 1, times: 1 },
    { fault: 'drop_after', times: sent },
  )
  expect(await refusal(pay())).toMatchObject({ type: 'StripeConnectionError' })
  expect(await books(sim)).toHaveLength(1)
  expect((await control(sim, 'GET', '/faults')).body).toEqual({ rules: [] })
})

test('faults strike replays too, but those inside an execution do not', async () => {
  const { sim, pay } = await misbehaving()
  await pay()
  const rules = [
    { method: 'POST', path: '/v1', fault: 'error_after', times: 1 },
    { method: 'POST', path: '/v1', fault: 'drop_after', times: sent },
  ]
  await control(sim, 'POST', '/faults', { rules })
  expect(await refusal(pay())).toMatchObject({ type: 'StripeConnectionError' })
  expect(await pay()).toMatchObject({ status: 'succeeded' })
  expect((await control(sim, 'GET', '/faults')).body.rules).toMatchObject([{ fault: 'error_after', times: 1 }])
})

test('a rule strikes its method and the paths below its own only', async () => {
  const { stripe, pay } = await misbehaving({ path: '/v1/refunds', fault: 'error_before' })
  const paid = await pay()
  expect(await refusal(stripe.refunds.create({ payment_intent: paid.id }))).toMatchObject({ statusCode: 500 })
  expect((await stripe.refunds.list()).data).toEqual([])
})

test('a read can fail as well', async () => {
  const { sim, stripe, pay } = await misbehaving()
  const paid = await pay()
  await control(sim, 'POST', '/faults', { rules: [{ method: 'GET', path: '/v1', fault: 'error_before', times: 1 }] })
  expect(await refusal(stripe.paymentIntents.retrieve(paid.id))).toMatchObject({ statusCode: 500 })
  expect(await stripe.paymentIntents.retrieve(paid.id)).toMatchObject({ status: 'succeeded' })
})

test('a seed makes a random run repeatable', async () => {
  const runs: boolean[][] = []
  for (let run = 0; run < 2; run++) {
    const { sim, pay } = await misbehaving()
    const rules = [{ method: '*', path: '/v1', fault: 'rate_limit', probability: 0.5 }]
    await control(sim, 'POST', '/faults', { rules, seed: 42 })
    const struck: boolean[] = []
    for (let at = 0; at < 30; at++) {
      struck.push(
        await pay({ idempotencyKey: `k${at}` }).then(
          () => false,
          () => true,
        ),
      )
    }
    runs.push(struck)
  }
  expect(runs[0]).toEqual(runs[1])
  expect(new Set(runs[0])).toEqual(new Set([true, false]))
})

test('faults are listed and removed', async () => {
  const { sim, pay } = await misbehaving({ fault: 'drop_before' })
  expect((await control(sim, 'GET', '/faults')).body).toEqual({
    rules: [{ method: 'POST', path: '/v1/payment_intents', fault: 'drop_before' }],
  })
  await control(sim, 'DELETE', '/faults')
  expect((await control(sim, 'GET', '/faults')).body).toEqual({ rules: [] })
  expect(await pay()).toMatchObject({ status: 'succeeded' })
})

test('a simulator closes while requests hang', async () => {
  const { sim, pay } = await misbehaving({ fault: 'hang' })
  const hanging = refusal(pay())
  await until('it hangs', async () => ((await books(sim)).length === 1 ? true : undefined))
  await sim.close()
  expect(await hanging).toMatchObject({ type: 'StripeConnectionError' })
})

test.each([
  [{ rules: [{ method: 'POST', path: '/v1', fault: 'explode' }] }, 'drop_before'],
  [{ rules: [{ method: 'POST', path: '/v1', fault: 'hang', probability: 2 }] }, 'probability'],
  [{ rules: [{ method: 'POST', path: '/v1', fault: 'hang', colour: 'red' }] }, 'additional properties'],
  [{}, 'rules'],
])('the control refuses %j', async (body, hint) => {
  const { sim } = await misbehaving()
  const answer = await control(sim, 'POST', '/faults', body)
  expect(answer.status).toBe(400)
  expect(JSON.stringify(answer.body)).toContain(hint)
  expect((await control(sim, 'GET', '/faults')).body).toEqual({ rules: [] })
})
