import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import type {
  CaptureRequest,
  ChargeRequest,
  PaymentOutcome,
  PaymentProvider,
  ProviderPayment,
  ProviderTarget,
  RefundRequest,
} from '../../src/provider/port.ts'
import type { createStripeProvider } from '../../src/provider/stripe.ts'

type Provider = ReturnType<typeof createStripeProvider>
export type Setting = { provider: Provider; target: ProviderTarget }

/** Not reached. */
export const limits = { timeoutMs: 20_000 }
const minuteMs = 60_000

export async function settingOf(provider: Provider): Promise<Setting> {
  const { account, livemode } = await provider.identity()
  return { provider, target: { connectedAccount: null, account, livemode, apiVersion: provider.versions.api } }
}

/** A charge that nobody has made before. */
export function order(
  provider: PaymentProvider,
  target: ProviderTarget,
  more: Partial<ChargeRequest> = {},
): ChargeRequest {
  const key = randomUUID()
  return {
    target,
    providerKey: `tenant:${key}`,
    parameterVersion: provider.versions.parameters,
    amount: 1250,
    currency: 'EUR',
    capture: 'automatic',
    paymentMethod: 'pm_card_visa',
    offSession: false,
    metadata: { tenant: 'tenant', order: `ord_${key}`, key },
    ...more,
  }
}

export function paymentIn(outcome: PaymentOutcome): ProviderPayment {
  if (!('payment' in outcome) || outcome.payment === null) throw new Error(`no payment in ${JSON.stringify(outcome)}`)
  return outcome.payment
}

/** What every implementation of the port keeps to. */
export function contract(setting: () => Setting) {
  const charge = async (more: Partial<ChargeRequest> = {}) => {
    const { provider, target } = setting()
    const request = order(provider, target, more)
    return { request, ...(await provider.charge(request, limits)) }
  }
  const capture = (request: Omit<CaptureRequest, 'target' | 'providerKey' | 'currency'> & { providerKey?: string }) => {
    const { provider, target } = setting()
    return provider.capture({ target, currency: 'EUR', providerKey: randomUUID(), ...request }, limits)
  }
  const cancel = (intentId: string, key: string = randomUUID()) => {
    const { provider, target } = setting()
    return provider.cancel(target, intentId, key, limits)
  }
  const refund = (intentId: string, amount: number, more: Partial<RefundRequest> = {}) => {
    const { provider, target } = setting()
    const id = randomUUID()
    const metadata = { tenant: 'tenant', order: 'ord_1', refund: id }
    return provider.refund({ target, intentId, amount, currency: 'EUR', providerKey: id, metadata, ...more }, limits)
  }
  const retrieve = (intentId: string) => setting().provider.retrieve(setting().target, intentId, limits)

  test('a good card is charged what was asked, and the payment carries the order', async () => {
    const { request, outcome, calls } = await charge()
    const { account: _, ...rest } = setting().target
    expect(outcome).toMatchObject({
      kind: 'succeeded',
      payment: {
        status: 'succeeded',
        amount: 1250,
        amountCaptured: 1250,
        amountCapturable: 0,
        amountRefunded: 0,
        currency: 'EUR',
        livemode: rest.livemode,
        captureBefore: null,
        clientSecret: null,
        declineCode: null,
        metadata: request.metadata,
      },
    })
    const payment = paymentIn(outcome)
    expect(payment.intentId).toMatch(/^pi_/)
    expect(payment.chargeId).toMatch(/^(ch|py)_/)
    expect(Math.abs(payment.createdAt.getTime() - Date.now())).toBeLessThan(5 * minuteMs)
    expect(calls).toMatchObject([
      { operation: 'payment.create', outcome: 'succeeded', httpStatus: 200, errorCode: null, replayed: false },
    ])
    expect(calls[0]?.requestId).toMatch(/^req_/)
  })

  test('the same charge again is the same payment, and says that it was a replay', async () => {
    const { request, outcome } = await charge()
    const again = await setting().provider.charge(request, limits)
    expect(again.outcome).toEqual(outcome)
    expect(again.calls).toMatchObject([{ operation: 'payment.create', outcome: 'succeeded', replayed: true }])
  })

  test('a key that was used for another charge is unknown and not worth sending again', async () => {
    const { request } = await charge()
    const { outcome } = await setting().provider.charge({ ...request, amount: 1251 }, limits)
    expect(outcome).toMatchObject({
      kind: 'unknown',
      reason: 'idempotency_error',
      worthRetrying: false,
      replayedFailure: false,
    })
  })

  test.each([
    ['pm_card_chargeDeclined', 'generic_decline'],
    ['pm_card_chargeDeclinedInsufficientFunds', 'insufficient_funds'],
    ['pm_card_chargeDeclinedExpiredCard', 'expired_card'],
    ['pm_card_chargeDeclinedIncorrectCvc', 'incorrect_cvc'],
  ])('%s is declined with %s, and the payment is left incomplete', async (paymentMethod, declineCode) => {
    const { request, outcome, calls } = await charge({ paymentMethod })
    expect(outcome).toMatchObject({
      kind: 'declined',
      code: 'card_declined',
      declineCode,
      payment: { status: 'requires_payment_method', amountCaptured: 0, declineCode, metadata: request.metadata },
    })
    expect(calls).toMatchObject([{ operation: 'payment.create', outcome: 'declined', httpStatus: 402 }])
    const again = await setting().provider.charge(request, limits)
    expect(again.outcome).toEqual(outcome)
    expect(again.calls).toMatchObject([{ replayed: true }])
    const { intentId } = paymentIn(outcome)
    expect((await retrieve(intentId)).outcome).toMatchObject({ kind: 'incomplete', payment: { intentId, declineCode } })
  })

  test('a payment method that does not exist is declined, and no payment is left behind', async () => {
    const { outcome, calls } = await charge({ paymentMethod: 'pm_card_thereIsNoSuchCard' })
    expect(outcome).toEqual({
      kind: 'declined',
      code: 'payment_method_invalid',
      declineCode: 'resource_missing',
      payment: null,
    })
    expect(calls).toMatchObject([{ outcome: 'declined', httpStatus: 400, errorCode: 'resource_missing' }])
  })

  test('a charge that the provider refuses for another reason is unknown', async () => {
    const { outcome } = await charge({ amount: 1 })
    expect(outcome).toMatchObject({ kind: 'unknown', reason: 'provider_rejected', worthRetrying: false })
  })

  test('3-D Secure waits for the customer, with a secret for the browser', async () => {
    const { outcome } = await charge({ paymentMethod: 'pm_card_threeDSecure2Required' })
    expect(outcome).toMatchObject({ kind: 'requires_action', payment: { amountCaptured: 0 } })
    const { clientSecret, intentId } = paymentIn(outcome)
    expect(clientSecret).toContain(intentId)
  })

  test('off session a demanded 3-D Secure is a decline', async () => {
    const { outcome } = await charge({ paymentMethod: 'pm_card_authenticationRequired', offSession: true })
    expect(outcome).toMatchObject({
      kind: 'declined',
      code: 'card_declined',
      declineCode: expect.stringMatching(/^authentication_/),
      payment: { status: 'requires_payment_method' },
    })
  })

  test('a hold is captured in part, and what is let go is no refund', async () => {
    const { outcome } = await charge({ capture: 'manual' })
    expect(outcome).toMatchObject({
      kind: 'authorized',
      payment: { status: 'requires_capture', amountCaptured: 0, amountCapturable: 1250, amountRefunded: 0 },
    })
    const { intentId, captureBefore } = paymentIn(outcome)
    expect(captureBefore?.getTime()).toBeGreaterThan(Date.now())
    const captured = await capture({ intentId, amount: 400 })
    const after = { amount: 1250, amountCaptured: 400, amountCapturable: 0, amountRefunded: 0 }
    expect(captured.outcome).toMatchObject({ kind: 'succeeded', payment: after })
    expect(captured.calls).toMatchObject([{ operation: 'payment.capture', outcome: 'succeeded' }])
    expect((await retrieve(intentId)).outcome).toMatchObject({ kind: 'succeeded', payment: after })

    expect((await refund(intentId, 150)).outcome).toMatchObject({ kind: 'succeeded' })
    expect((await retrieve(intentId)).outcome).toMatchObject({ payment: { ...after, amountRefunded: 150 } })
  })

  test('a second capture says what the payment has become', async () => {
    const { intentId } = paymentIn((await charge({ capture: 'manual' })).outcome)
    await capture({ intentId, amount: 1000 })
    const second = await capture({ intentId, amount: 900 })
    expect(second.outcome).toMatchObject({ kind: 'succeeded', payment: { amountCaptured: 1000 } })
    expect(second.calls).toMatchObject([
      { operation: 'payment.capture', outcome: 'rejected', errorCode: 'payment_intent_unexpected_state' },
      { operation: 'payment.retrieve', outcome: 'succeeded' },
    ])
  })

  test('capturing more than is on hold has no effect and no definite outcome', async () => {
    const { intentId } = paymentIn((await charge({ capture: 'manual' })).outcome)
    const { outcome } = await capture({ intentId, amount: 1251 })
    expect(outcome).toMatchObject({ kind: 'unknown', reason: 'provider_rejected', worthRetrying: false, intentId })
    expect((await retrieve(intentId)).outcome).toMatchObject({ kind: 'authorized' })
  })

  test('a hold, a 3-D Secure and a decline can be canceled, also twice', async () => {
    for (const more of [
      { capture: 'manual' },
      { paymentMethod: 'pm_card_threeDSecure2Required' },
      { paymentMethod: 'pm_card_chargeDeclined' },
    ] as const) {
      const { intentId } = paymentIn((await charge(more)).outcome)
      const canceled = await cancel(intentId)
      expect(canceled.outcome).toMatchObject({
        kind: 'canceled',
        payment: { intentId, amountCaptured: 0, amountCapturable: 0, amountRefunded: 0, clientSecret: null },
      })
      expect((await cancel(intentId)).outcome).toMatchObject({ kind: 'canceled' })
    }
  })

  test('a payment that has succeeded is not canceled, and the outcome says so', async () => {
    const { intentId } = paymentIn((await charge()).outcome)
    await refund(intentId, 250)
    const { outcome, calls } = await cancel(intentId)
    expect(outcome).toMatchObject({ kind: 'succeeded', payment: { amountCaptured: 1250, amountRefunded: 250 } })
    expect(calls).toMatchObject([
      { operation: 'payment.cancel', outcome: 'rejected' },
      { operation: 'payment.retrieve' },
    ])
  })

  test('a payment that does not exist is absent to a look-up, and unknown to a change', async () => {
    expect((await retrieve('pi_absent')).outcome).toEqual({ kind: 'absent' })
    expect((await cancel('pi_absent')).outcome).toMatchObject({ kind: 'unknown', reason: 'provider_rejected' })
    expect((await capture({ intentId: 'pi_absent', amount: 1 })).outcome).toMatchObject({ kind: 'unknown' })
  })

  test('money goes back once per key', async () => {
    const { intentId } = paymentIn((await charge()).outcome)
    const providerKey = randomUUID()
    const metadata = { tenant: 'tenant', order: 'ord_1', refund: 'ref_1' }
    const first = await refund(intentId, 500, { providerKey, metadata })
    expect(first.outcome).toMatchObject({
      kind: 'succeeded',
      refund: { intentId, amount: 500, currency: 'EUR', status: 'succeeded', metadata },
    })
    expect(first.calls).toMatchObject([{ operation: 'refund.create', outcome: 'succeeded', replayed: false }])
    const again = await refund(intentId, 500, { providerKey, metadata })
    expect(again.outcome).toEqual(first.outcome)
    expect(again.calls[0]).toMatchObject({ operation: 'refund.create', replayed: true })
    expect((await retrieve(intentId)).outcome).toMatchObject({ payment: { amountRefunded: 500 } })

    if (!('refund' in first.outcome)) throw new Error('no refund')
    const { target, provider } = setting()
    const read = await provider.retrieveRefund(target, first.outcome.refund.refundId, limits)
    expect(read.outcome).toEqual(first.outcome)
    const other = await refund(intentId, 750)
    expect(other.outcome).toMatchObject({ kind: 'succeeded' })
    const listed = await provider.listRefunds(target, intentId, limits)
    expect(listed.calls).toMatchObject([{ operation: 'refund.list', outcome: 'listed' }])
    if (listed.outcome.kind !== 'listed') throw new Error('not listed')
    expect(listed.outcome.items.map(({ amount }) => amount).sort()).toEqual([500, 750])
  })

  test('more than was captured never goes back', async () => {
    const { intentId } = paymentIn((await charge()).outcome)
    expect((await refund(intentId, 1251)).outcome).toMatchObject({ kind: 'rejected' })
    expect((await refund(intentId, 1250)).outcome).toMatchObject({ kind: 'succeeded' })
    expect((await refund(intentId, 1)).outcome).toEqual({ kind: 'rejected', code: 'charge_already_refunded' })
  })

  test('a refund that does not exist is absent', async () => {
    const { provider, target } = setting()
    expect((await provider.retrieveRefund(target, 're_absent', limits)).outcome).toEqual({ kind: 'absent' })
  })

  test('a payment is found by its order, and one of another tenant is not', async () => {
    const from = new Date()
    const { request, outcome } = await charge()
    const { intentId } = paymentIn(outcome)
    await charge()
    const { provider, target } = setting()
    const search = { target, createdFrom: from, createdTo: new Date() }
    const { tenant, order: orderId } = request.metadata
    const found = await provider.find({ ...search, metadata: { tenant, order: orderId } }, limits)
    expect(found.outcome).toMatchObject({ kind: 'succeeded', payment: { intentId, amountRefunded: 0 } })
    expect(found.calls[0]).toMatchObject({ operation: 'payment.list', outcome: 'listed' })
    const foreign = await provider.find({ ...search, metadata: { tenant: 'other', order: orderId } }, limits)
    expect(foreign.outcome).toEqual({ kind: 'absent' })
    const before = {
      createdFrom: new Date(from.getTime() - 60 * minuteMs),
      createdTo: new Date(from.getTime() - 30 * minuteMs),
    }
    const elsewhen = await provider.find({ target, ...before, metadata: { tenant, order: orderId } }, limits)
    expect(elsewhen.outcome).toEqual({ kind: 'absent' })
  })

  test('the payments of a period are listed', async () => {
    const { provider, target } = setting()
    const { outcome } = await charge()
    const { intentId, createdAt } = paymentIn(outcome)
    const period = { from: createdAt, to: new Date(createdAt.getTime() + 1000) }
    const ids: string[] = []
    for await (const payment of provider.listPayments(target, period, limits)) ids.push(payment.intentId)
    expect(ids).toContain(intentId)
  })

  test('amounts are ours in both directions, whatever the provider counts in', async () => {
    for (const [currency, amount, part] of [
      ['JPY', 500, 100],
      ['ISK', 700, 200],
    ] as const) {
      const { outcome } = await charge({ currency, amount, capture: 'manual' })
      expect(outcome).toMatchObject({ kind: 'authorized', payment: { currency, amount, amountCapturable: amount } })
      const { intentId } = paymentIn(outcome)
      const { provider, target } = setting()
      const captured = await provider.capture({ target, intentId, amount, currency, providerKey: randomUUID() }, limits)
      expect(captured.outcome).toMatchObject({ kind: 'succeeded', payment: { amountCaptured: amount } })
      const refunded = await refund(intentId, part, { currency })
      expect(refunded.outcome).toMatchObject({ kind: 'succeeded', refund: { amount: part, currency } })
      expect((await retrieve(intentId)).outcome).toMatchObject({ payment: { amountRefunded: part } })
    }
  })

  test('a claim under an unknown parameter version, or of the other mode, sends nothing', async () => {
    await expect(charge({ parameterVersion: 999 })).rejects.toThrow('no version 999')
    const { provider, target } = setting()
    const other = { ...target, livemode: !target.livemode }
    await expect(charge({ target: other })).rejects.toThrow('mode')
    await expect(provider.retrieve(other, 'pi_absent', limits)).rejects.toThrow('mode')
  })
}
