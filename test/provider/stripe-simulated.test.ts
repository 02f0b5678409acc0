import { randomUUID } from 'node:crypto'
import Stripe from 'stripe'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { ChargeRequest } from '../../src/provider/port.ts'
import { createStripeProvider } from '../../src/provider/stripe.ts'
import { readStripeEvent } from '../../src/provider/stripe-webhook.ts'
import { type Simulator, startSimulator } from '../../src/simulator/server.ts'
import { limits, order, paymentIn, type Setting, settingOf } from './contract.ts'

let simulator: Simulator
let setting: Setting
const alerts: string[] = []

const control = async (method: string, path: string, body?: unknown) => {
  const answer = await fetch(`${simulator.url}/_sim${path}`, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  })
  if (!answer.ok) throw new Error(`${method} /_sim${path}: ${answer.status} ${await answer.text()}`)
  return answer.json()
}
const fault = (rule: { method?: string; path: string; fault: string; times?: number; latency_ms?: number }) =>
  control('POST', '/faults', { rules: [{ times: 1, method: 'POST', ...rule }] })
const connect = (secretKey: string) =>
  createStripeProvider({ secretKey, apiBase: simulator.url, onAlert: (reason) => alerts.push(reason) })

beforeAll(async () => {
  simulator = await startSimulator({ port: 0, webhookSecret: 'whsec_test' })
  setting = await settingOf(connect('sk_test_simulator'))
})
beforeEach(async () => {
  alerts.length = 0
  await control('DELETE', '/faults')
})
afterAll(async () => {
  setting.provider.close()
  await simulator.close()
})

const charge = async (more: Partial<ChargeRequest> = {}) => {
  const request = order(setting.provider, setting.target, more)
  return { request, ...(await setting.provider.charge(request, limits)) }
}
const booked = async (request: ChargeRequest) => {
  const { data } = (await control('GET', '/payment_intents')) as { data: { metadata: { order?: string } }[] }
  return data.filter((intent) => intent.metadata.order === request.metadata.order)
}

test('an answer that is lost leaves a payment which the same key brings to light', async () => {
  await fault({ path: '/v1/payment_intents', fault: 'drop_after' })
  const { request, outcome, calls } = await charge()
  expect(outcome).toEqual({
    kind: 'unknown',
    reason: 'connection_lost',
    worthRetrying: true,
    replayedFailure: false,
    intentId: null,
  })
  expect(calls).toMatchObject([{ outcome: 'unknown', httpStatus: null, requestId: null, replayed: false }])
  // One call of ours is one call: the simulator has seen no other.
  const { data } = (await control('GET', '/requests')) as { data: { idempotency_key: string | null }[] }
  expect(data.filter(({ idempotency_key: key }) => key === request.providerKey)).toHaveLength(1)
  const again = await setting.provider.charge(request, limits)
  expect(again.outcome).toMatchObject({ kind: 'succeeded' })
  expect(again.calls).toMatchObject([{ replayed: true }])
  expect(await booked(request)).toHaveLength(1)
})

test('a lost request and a lost answer look the same', async () => {
  await fault({ path: '/v1/payment_intents', fault: 'drop_before' })
  const { request, outcome } = await charge()
  expect(outcome).toMatchObject({ kind: 'unknown', reason: 'connection_lost', worthRetrying: true })
  expect(await booked(request)).toEqual([])
})

test('an answer that never comes is unknown when the time is up', async () => {
  await fault({ path: '/v1/payment_intents', fault: 'hang' })
  const request = order(setting.provider, setting.target)
  const { outcome, calls } = await setting.provider.charge(request, { timeoutMs: 300 })
  expect(outcome).toMatchObject({ kind: 'unknown', reason: 'timeout', worthRetrying: true })
  expect(calls).toMatchObject([{ outcome: 'unknown', errorCode: 'timeout' }])
  expect(await booked(request)).toHaveLength(1)
})

test('a 500 that is stored under the key is not worth sending again, and a look-up tells', async () => {
  const createdFrom = new Date()
  await fault({ path: '/v1/payment_intents', fault: 'error_after' })
  const { request, outcome } = await charge()
  expect(outcome).toMatchObject({
    kind: 'unknown',
    reason: 'provider_error',
    worthRetrying: false,
    replayedFailure: false,
  })
  const again = await setting.provider.charge(request, limits)
  expect(again.outcome).toMatchObject({
    kind: 'unknown',
    reason: 'provider_error',
    worthRetrying: false,
    replayedFailure: true,
  })
  expect(again.calls).toMatchObject([{ httpStatus: 500, replayed: true }])
  const found = await setting.provider.find(
    { target: setting.target, metadata: request.metadata, createdFrom, createdTo: new Date() },
    limits,
  )
  expect(found.outcome).toMatchObject({ kind: 'succeeded' })
})

test('a key in use is unknown and worth sending again', async () => {
  await fault({ path: '/v1/payment_intents', fault: 'latency', latency_ms: 1500 })
  const request = order(setting.provider, setting.target)
  const outcomes = await Promise.all([1, 2].map(() => setting.provider.charge(request, limits)))
  const kinds = outcomes.map(({ outcome }) => outcome.kind).sort()
  expect(kinds).toEqual(['succeeded', 'unknown'])
  expect(outcomes.find(({ outcome }) => outcome.kind === 'unknown')?.outcome).toMatchObject({
    reason: 'key_in_use',
    worthRetrying: true,
  })
  expect(await booked(request)).toHaveLength(1)
})

test('a refused rate is not sent, and alerts nobody', async () => {
  await fault({ path: '/v1/payment_intents', fault: 'rate_limit' })
  const { outcome } = await charge()
  expect(outcome).toEqual({ kind: 'not_sent', reason: 'rate_limited', alert: false, retryAfterMs: null })
  expect(alerts).toEqual([])
})

test('wrong credentials are not sent, and alert', async () => {
  const expired = connect('sk_test_expired')
  try {
    const { outcome } = await expired.charge(order(expired, setting.target), limits)
    expect(outcome).toEqual({ kind: 'not_sent', reason: 'unauthorized', alert: true, retryAfterMs: null })
    await expect(expired.identity()).rejects.toThrow('unauthorized')
    const target = { ...setting.target, connectedAccount: 'acct_revoked1' }
    const forbidden = await charge({ target })
    expect(forbidden.outcome).toMatchObject({ kind: 'not_sent', reason: 'forbidden', alert: true })
    expect(alerts).toEqual(['unauthorized', 'unauthorized', 'forbidden'])
  } finally {
    expired.close()
  }
})

test('a connected account has payments of its own', async () => {
  const target = { ...setting.target, connectedAccount: 'acct_Connected', account: 'acct_Connected' }
  const { request, outcome } = await charge({ target })
  const { intentId } = paymentIn(outcome)
  const { provider } = setting
  expect((await provider.retrieve(target, intentId, limits)).outcome).toMatchObject({ kind: 'succeeded' })
  expect((await provider.retrieve(setting.target, intentId, limits)).outcome).toEqual({ kind: 'absent' })
  expect(await booked(request)).toMatchObject([{ account: 'acct_Connected' }])
})

test('only what a charge needs is sent, under the claimed version', async () => {
  const request = order(setting.provider, { ...setting.target, apiVersion: '2026-07-29.dahlia' }, { offSession: true })
  await setting.provider.charge(request, limits)
  type Sent = { idempotency_key: string; params: unknown; stripe_version: string; headers: Record<string, string> }
  const { data } = (await control('GET', '/requests')) as { data: Sent[] }
  const sent = data.find(({ idempotency_key: key }) => key === request.providerKey)
  expect(sent).toMatchObject({ stripe_version: '2026-07-29.dahlia', headers: {} })
  expect(sent?.params).toEqual({
    amount: '1250',
    currency: 'eur',
    payment_method: 'pm_card_visa',
    payment_method_types: ['card'],
    confirm: 'true',
    capture_method: 'automatic',
    off_session: 'true',
    error_on_requires_action: 'true',
    metadata: request.metadata,
    expand: ['latest_charge'],
  })
})

test('a replay of what was is followed by what is', async () => {
  const { request, outcome } = await charge({ paymentMethod: 'pm_card_threeDSecure2Required' })
  const { intentId } = paymentIn(outcome)
  await control('POST', `/payment_intents/${intentId}/action`, { outcome: 'succeed' })
  const again = await setting.provider.charge(request, limits)
  expect(again.outcome).toMatchObject({ kind: 'succeeded', payment: { intentId, amountCaptured: 1250 } })
  expect(again.calls).toMatchObject([
    { operation: 'payment.create', outcome: 'requires_action', replayed: true },
    { operation: 'payment.retrieve', outcome: 'succeeded', replayed: false },
  ])
})

test('a replay that cannot be followed up keeps what the replay said', async () => {
  const { request, outcome } = await charge({ capture: 'manual' })
  await fault({ method: 'GET', path: '/v1/payment_intents/', fault: 'rate_limit' })
  const again = await setting.provider.charge(request, limits)
  expect(again.outcome).toEqual(outcome)
  expect(again.calls).toMatchObject([{ outcome: 'authorized' }, { outcome: 'not_sent' }])
})

test('processing is unknown, names the payment, and is not sent again', async () => {
  const { outcome } = await charge({ paymentMethod: 'pm_card_sim_processing' })
  expect(outcome).toMatchObject({
    kind: 'unknown',
    reason: 'processing',
    worthRetrying: false,
    intentId: expect.stringMatching(/^pi_/),
  })
})

test('a cancel and a capture are not stopped for ever by a stored 500 or a stored refusal', async () => {
  const { provider, target } = setting
  const { intentId } = paymentIn((await charge({ capture: 'manual' })).outcome)
  await fault({ path: `/v1/payment_intents/${intentId}/capture`, fault: 'error_before' })
  const request = { target, intentId, amount: 700, currency: 'EUR', providerKey: randomUUID() }
  const first = await provider.capture(request, limits)
  expect(first.outcome).toMatchObject({ kind: 'unknown', reason: 'provider_error', intentId })
  const second = await provider.capture(request, limits)
  expect(second.outcome).toMatchObject({ kind: 'succeeded', payment: { amountCaptured: 700 } })
  expect(second.calls).toMatchObject([
    { outcome: 'unknown', replayed: true },
    { outcome: 'succeeded', replayed: false },
  ])

  const waiting = paymentIn((await charge({ paymentMethod: 'pm_card_threeDSecure2Required' })).outcome)
  await fault({ path: `/v1/payment_intents/${waiting.intentId}/cancel`, fault: 'error_before' })
  await provider.cancel(target, waiting.intentId, waiting.intentId, limits)
  const canceled = await provider.cancel(target, waiting.intentId, waiting.intentId, limits)
  expect(canceled.outcome).toMatchObject({ kind: 'canceled' })
})

test('a capture whose answer was lost is captured once', async () => {
  const { provider, target } = setting
  const { intentId } = paymentIn((await charge({ capture: 'manual' })).outcome)
  await fault({ path: `/v1/payment_intents/${intentId}/capture`, fault: 'error_after' })
  const request = { target, intentId, amount: 700, currency: 'EUR', providerKey: randomUUID() }
  await provider.capture(request, limits)
  const again = await provider.capture(request, limits)
  expect(again.outcome).toMatchObject({ kind: 'succeeded', payment: { amountCaptured: 700 } })
  expect(again.calls.map(({ outcome }) => outcome)).toEqual(['unknown', 'rejected', 'succeeded'])
})

test('a replayed refund tells how it stands now', async () => {
  const { intentId } = paymentIn((await charge({ paymentMethod: 'pm_card_pendingRefund' })).outcome)
  const metadata = { tenant: 'tenant', order: 'ord_1', refund: 'ref_1' }
  const { provider, target } = setting
  const request = { target, intentId, amount: 100, currency: 'EUR', providerKey: randomUUID(), metadata }
  const first = await provider.refund(request, limits)
  if (first.outcome.kind !== 'pending') throw new Error(`${first.outcome.kind}`)
  await control('POST', `/refunds/${first.outcome.refund.refundId}`, { status: 'failed' })
  const again = await provider.refund(request, limits)
  expect(again.outcome).toMatchObject({ kind: 'failed', refund: { status: 'failed', amount: 100 } })
  expect(again.calls.map(({ operation }) => operation)).toEqual(['refund.create', 'refund.retrieve'])
})

test('long lists are read to the end', async () => {
  const createdFrom = new Date()
  const first = await charge()
  const { intentId } = paymentIn(first.outcome)
  for (let batch = 0; batch < 5; batch++) await Promise.all(Array.from({ length: 50 }, () => charge()))
  const { provider, target } = setting
  const found = await provider.find(
    { target, metadata: first.request.metadata, createdFrom, createdTo: new Date() },
    limits,
  )
  expect(found.outcome).toMatchObject({ kind: 'succeeded', payment: { intentId } })
  expect(found.calls.length).toBeGreaterThanOrEqual(3)

  const ids = new Set<string>()
  for await (const payment of provider.listPayments(target, { from: createdFrom, to: new Date() }, limits)) {
    ids.add(payment.intentId)
  }
  expect(ids.size).toBeGreaterThanOrEqual(251)

  for (let count = 0; count < 105; count++) await control('POST', '/refunds', { payment_intent: intentId, amount: 1 })
  const refunds = await provider.listRefunds(target, intentId, limits)
  if (refunds.outcome.kind !== 'listed') throw new Error('not listed')
  expect(refunds.outcome.items).toHaveLength(105)
  expect(refunds.calls).toHaveLength(2)
})

test('a search that could not read every page is unknown, never absent', async () => {
  await fault({ method: 'GET', path: '/v1/payment_intents', fault: 'drop_before' })
  const search = { target: setting.target, createdFrom: new Date(), createdTo: new Date() }
  const lost = await setting.provider.find({ ...search, metadata: { tenant: 'tenant', order: 'ord_0' } }, limits)
  expect(lost.outcome).toMatchObject({ kind: 'unknown', reason: 'connection_lost' })
})

test('two payments of one order are nothing to choose from', async () => {
  const createdFrom = new Date()
  const { request } = await charge()
  await charge({ metadata: request.metadata })
  const search = { target: setting.target, metadata: request.metadata, createdFrom, createdTo: new Date() }
  const { outcome } = await setting.provider.find(search, limits)
  expect(outcome).toMatchObject({ kind: 'unknown', reason: 'several_payments', worthRetrying: false })
})

test('the disputes of a payment are listed with what their money has done', async () => {
  const { provider, target } = setting
  const { intentId } = paymentIn((await charge()).outcome)
  const listed = async () => (await provider.listDisputes(target, intentId, limits)).outcome
  expect(await listed()).toEqual({ kind: 'listed', items: [] })
  const opened = (await control('POST', '/disputes', {
    payment_intent: intentId,
    amount: 300,
    status: 'warning_needs_response',
  })) as { id: string }
  const dispute = { disputeId: opened.id, amount: 300, currency: 'EUR' }
  for (const [status, moved] of [
    ['warning_needs_response', null],
    ['needs_response', 'withdrawn'],
    ['won', 'reinstated'],
  ]) {
    if (moved !== null) await control('POST', `/disputes/${opened.id}`, { outcome: status })
    expect(await listed()).toEqual({ kind: 'listed', items: [{ ...dispute, status, moved }] })
  }
  const absent = await provider.listDisputes(target, 'pi_absent', limits)
  expect(absent).toMatchObject({ outcome: { kind: 'unknown' }, calls: [{ operation: 'dispute.list' }] })
})

test('every notification of such a life is read', async () => {
  const { intentId } = paymentIn((await charge({ capture: 'manual' })).outcome)
  const { provider, target } = setting
  const request = { target, intentId, amount: 700, currency: 'EUR', providerKey: randomUUID() }
  await provider.capture(request, limits)
  await control('POST', '/refunds', { payment_intent: intentId, amount: 100 })
  await control('POST', '/disputes', { payment_intent: intentId, amount: 50 })
  await charge({ paymentMethod: 'pm_card_chargeDeclined' })
  const { data } = (await control('GET', '/events')) as {
    data: { id: string; data: { object: { object: string } } }[]
  }
  const kinds = new Set<string>()
  for (const event of data) {
    const payload = JSON.stringify(event)
    const header = Stripe.webhooks.generateTestHeaderString({ payload, secret: 'whsec_test' })
    const read = readStripeEvent(Buffer.from(payload), header, ['whsec_test'], new Date())
    expect(read).toMatchObject({ id: event.id, object: event.data.object.object, readable: true })
    if (read.intentId === intentId) kinds.add(read.object)
  }
  expect([...kinds].sort()).toEqual(['charge', 'dispute', 'payment_intent', 'refund'])
})

test('who we are is asked once, and again only after a failure', async () => {
  const provider = connect('sk_test_identity')
  try {
    const asked = async () => {
      const { data } = (await control('GET', '/requests')) as { data: { path: string }[] }
      return data.filter(({ path }) => path === '/v1/account').length
    }
    const before = await asked()
    await fault({ method: 'GET', path: '/v1/account', fault: 'error_before' })
    const failed = await Promise.allSettled([provider.identity(), provider.identity()])
    expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(await asked()).toBe(before + 1)
    const [one, two] = await Promise.all([provider.identity(), provider.identity()])
    expect(one).toEqual({ account: 'acct_1Simulator', livemode: false })
    expect(two).toEqual(one)
    await provider.identity()
    expect(await asked()).toBe(before + 2)
  } finally {
    provider.close()
  }
})

test('who we are is not asked where we are told', async () => {
  const told = { secretKey: 'rk_test_1', apiBase: simulator.url, account: 'acct_1Restricted' }
  const provider = createStripeProvider(told)
  const { data: before } = (await control('GET', '/requests')) as { data: unknown[] }
  expect(await provider.identity()).toEqual({ account: 'acct_1Restricted', livemode: false })
  const { data: after } = (await control('GET', '/requests')) as { data: unknown[] }
  expect(after).toHaveLength(before.length)
  provider.close()
})

test('a live key is of live mode', async () => {
  const provider = connect('rk_live_1')
  expect(await provider.identity()).toMatchObject({ livemode: true })
  provider.close()
})
