import { expect, test } from 'vitest'
import { client, control, dahlia, payment, refusal, simulator } from './support.ts'

const authorized = { authorization: 'Bearer sk_test_demo' }

test.each([
  [{ amount: 49 }, 'amount_too_small', 'amount'],
  [{ amount: 100_000_000 }, 'amount_too_large', 'amount'],
  [{ amount: 0 }, 'parameter_invalid_integer', 'amount'],
  [{ amount: 12.5 }, 'parameter_invalid_integer', 'amount'],
  [{ currency: 'xyz' }, undefined, 'currency'],
  [{ currency: 'jpy', amount: 49 }, 'amount_too_small', 'amount'],
  [{ currency: 'isk', amount: 1250 }, undefined, 'amount'],
  [{ currency: 'ugx', amount: 150 }, undefined, 'amount'],
  [{ currency: 'kwd', amount: 1255 }, undefined, 'amount'],
  [{ payment_method: 'pm_none' }, 'resource_missing', 'payment_method'],
  [{ payment_method: '' }, 'parameter_invalid_empty', 'payment_method'],
  [{ capture_method: 'later' }, undefined, 'capture_method'],
  [{ colour: 'red' }, 'parameter_unknown', 'colour'],
  [{ metadata: { ['k'.repeat(41)]: 'v' } }, undefined, `metadata[${'k'.repeat(41)}]`],
  [{ metadata: { k: 'v'.repeat(501) } }, undefined, 'metadata[k]'],
  [{ metadata: Object.fromEntries(Array.from({ length: 51 }, (_, at) => [`k${at}`, 'v'])) }, undefined, 'metadata'],
  [{ payment_method_types: ['sepa_debit'] }, undefined, 'payment_method_types'],
  [{ off_session: 'perhaps' }, undefined, 'off_session'],
  [{ confirm: false, off_session: true }, undefined, 'off_session'],
  [{ expand: ['latest_charge.colour'] }, undefined, 'expand'],
])('a payment with %j is refused with code %s', async (wrong, code, param) => {
  const sim = await simulator()
  const create = client(sim.port).paymentIntents.create({ ...payment(), ...wrong } as ReturnType<typeof payment>)
  const error = await refusal(create)
  expect(error).toMatchObject({ type: 'StripeInvalidRequestError', statusCode: 400, code, param })
  expect((await control(sim, 'GET', '/payment_intents')).body.data).toEqual([])
})

test.each([
  ['kwd', 1250],
  ['isk', 50_000],
  ['ugx', 500_000],
  ['jpy', 50],
  ['idr', 999_999_999_999],
  ['EUR', 99_999_999],
])('%s %d is charged', async (currency, amount) => {
  const sim = await simulator()
  const paid = await client(sim.port).paymentIntents.create(payment({ currency, amount }))
  expect(paid).toMatchObject({ status: 'succeeded', amount, currency: currency.toLowerCase() })
})

test('a missing parameter is named', async () => {
  const sim = await simulator()
  const answer = await fetch(`${sim.url}/v1/payment_intents`, { method: 'POST', headers: authorized })
  expect(answer.status).toBe(400)
  expect(await answer.json()).toMatchObject({
    error: { type: 'invalid_request_error', code: 'parameter_missing', param: 'amount' },
  })
})

test('which parameter chooses the payment methods depends on the API version', async () => {
  const sim = await simulator()
  const { payment_method_types, ...bare } = payment()
  const endive = client(sim.port, 'sk_test_demo', { apiVersion: '2026-10-28.endive' })
  expect(await refusal(endive.paymentIntents.create(payment()))).toMatchObject({
    statusCode: 400,
    code: 'payment_method_types_no_longer_supported',
  })
  const paid = await endive.paymentIntents.create({ ...bare, allowed_payment_method_types: ['card'] })
  expect(paid).toMatchObject({ status: 'succeeded', payment_method_types, allowed_payment_method_types: ['card'] })
  const error = await refusal(endive.paymentIntents.create(bare))
  expect(error.message).toContain('return_url')
  const never = { enabled: true, allow_redirects: 'never' } as const
  expect(await endive.paymentIntents.create({ ...bare, automatic_payment_methods: never })).toMatchObject({
    status: 'succeeded',
    automatic_payment_methods: never,
  })
})

test.each([
  ['no key', undefined, 401],
  ['a key that is none', 'Bearer hello', 401],
  ['a publishable key', 'Bearer pk_test_demo', 401],
  ['an expired key', 'Bearer sk_test_expired1', 401],
  ['a secret key', 'Bearer sk_test_demo', 200],
  ['a restricted key', 'Bearer rk_test_demo', 200],
  ['a key as Basic user', `Basic ${Buffer.from('sk_test_demo:').toString('base64')}`, 200],
])('%s', async (_, authorization, status) => {
  const sim = await simulator()
  const answer = await fetch(`${sim.url}/v1/account`, { headers: authorization === undefined ? {} : { authorization } })
  expect(answer.status).toBe(status)
  const body = (await answer.json()) as { error?: { type: string } }
  expect(body.error?.type).toBe(status === 401 ? 'invalid_request_error' : undefined)
  expect(answer.headers.get('request-id')).toMatch(/^req_\w+$/)
})

test('a key must not act on an account that revoked it', async () => {
  const sim = await simulator()
  const error = await refusal(
    client(sim.port, 'sk_test_demo', { stripeAccount: 'acct_revoked1' }).accounts.retrieveCurrent(),
  )
  expect(error).toMatchObject({ type: 'StripePermissionError', statusCode: 403, code: 'account_invalid' })
})

test('accounts and modes see nothing of each other', async () => {
  const sim = await simulator()
  const platform = client(sim.port)
  const connected = client(sim.port, 'sk_test_demo', { stripeAccount: 'acct_shop' })
  const live = client(sim.port, 'sk_live_demo')
  const foreign = client(sim.port, 'sk_test_acct_foreign_secret')
  const paid = await platform.paymentIntents.create(payment())
  expect((await live.paymentIntents.create(payment())).livemode).toBe(true)
  expect((await foreign.accounts.retrieveCurrent()).id).toBe('acct_foreign')
  expect((await connected.accounts.retrieveCurrent()).id).toBe('acct_shop')
  for (const other of [connected, live, foreign]) {
    const error = await refusal(other.paymentIntents.retrieve(paid.id))
    expect(error).toMatchObject({ statusCode: 404, code: 'resource_missing' })
    expect(await refusal(other.refunds.create({ payment_intent: paid.id }))).toMatchObject({ statusCode: 400 })
  }
  expect((await connected.paymentIntents.list()).data).toEqual([])
  expect((await platform.paymentIntents.list()).data).toMatchObject([{ id: paid.id }])
  const rotated = client(sim.port, 'sk_test_rotated')
  expect(await rotated.paymentIntents.retrieve(paid.id)).toMatchObject({ id: paid.id })
})

test('what is unknown gets 404 in the form of the API', async () => {
  const sim = await simulator()
  const stripe = client(sim.port)
  expect(await refusal(stripe.customers.create({ email: 'a@shop.example' }))).toMatchObject({
    type: 'StripeInvalidRequestError',
    statusCode: 404,
  })
  expect(await refusal(stripe.paymentIntents.retrieve('pi_none'))).toMatchObject({
    statusCode: 404,
    code: 'resource_missing',
    param: 'intent',
  })
  const answer = await fetch(`${sim.url}/v1/colours`, { headers: authorized })
  expect(answer.status).toBe(404)
  expect(await answer.json()).toMatchObject({ error: { type: 'invalid_request_error' } })
})

test('a body that is no form is refused', async () => {
  const sim = await simulator()
  const headers = { ...authorized, 'content-type': 'application/json' }
  const answer = await fetch(`${sim.url}/v1/payment_intents`, { method: 'POST', headers, body: '{"amount":1250}' })
  expect(answer.status).toBe(400)
  expect(await answer.json()).toMatchObject({ error: { message: expect.stringContaining('x-www-form-urlencoded') } })
})

test('the log of requests tells what was asked, by whom and how', async () => {
  const sim = await simulator()
  const stripe = client(sim.port, 'sk_live_demo', { stripeAccount: 'acct_shop' })
  await stripe.paymentIntents.create(payment({ metadata: { order: 'ord_1' } }), { idempotencyKey: 'k1' })
  await stripe.paymentIntents.create(payment({ metadata: { order: 'ord_1' } }), { idempotencyKey: 'k1' })
  const { data } = (await control(sim, 'GET', '/requests')).body
  expect(data).toMatchObject([
    { replayed: false, status: 200 },
    { replayed: true, status: 200 },
  ])
  expect(data[0]).toMatchObject({
    method: 'POST',
    path: '/v1/payment_intents',
    idempotency_key: 'k1',
    account: 'acct_shop',
    livemode: true,
    stripe_version: dahlia,
    params: { amount: '1250', metadata: { order: 'ord_1' }, payment_method_types: ['card'] },
  })
})
