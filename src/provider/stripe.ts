import { randomUUID } from 'node:crypto'
import Stripe from 'stripe'
import { toProviderAmount } from '../domain/money.ts'
import {
  type CallLimits,
  type CallResult,
  type CaptureRequest,
  type ChargeRequest,
  type Listing,
  type NotSent,
  type PaymentOutcome,
  type PaymentProvider,
  type PaymentSearch,
  type ProviderDispute,
  type ProviderIdentity,
  type ProviderPayment,
  type ProviderRefund,
  type ProviderTarget,
  ProviderUnavailable,
  type RefundOutcome,
  type RefundRequest,
} from './port.ts'
import { Conversation, type Page } from './stripe-call.ts'
import { StripeHttpClient } from './stripe-http.ts'
import {
  accountOutcome,
  changeOutcome,
  chargeOutcome,
  lookupOutcome,
  movableIntent,
  paymentOutcome,
  refundLookupOutcome,
  refundOutcome,
  searchOutcome,
  tellsState,
  unknown,
} from './stripe-outcomes.ts'
import { chargeParameters, PARAMETER_VERSION, STRIPE_API_VERSION } from './stripe-parameters.ts'
import { readDispute, readOwner, readPayment, readRefund } from './stripe-shapes.ts'

export interface StripeOptions {
  secretKey: string
  /** Where Stripe is, without `/v1`: `https://api.stripe.com`, or the simulator. */
  apiBase: string
  /** The account of the key, where it may not ask for it (https://docs.stripe.com/keys/restricted-api-keys). */
  account?: string
  /** Most connections at once; a call beyond it waits for one, within its time limit. */
  maxSockets?: number
  /** Stripe refuses the credentials: nothing will work until somebody acts. */
  onAlert?: (reason: NotSent['reason']) => void
}

/** A bound on file descriptors; far more calls at once than Stripe's rate limits let through. */
const MAX_SOCKETS = 512
/** Stripe's clock and ours may differ by this much. */
const CLOCK_SKEW_MS = 60_000
const PAGE_SIZE = 100
const IDENTITY_TIMEOUT_MS = 5000
const EXPANDED = { expand: ['latest_charge'] }

/**
 * The payment provider over Stripe's API (https://docs.stripe.com/api/payment_intents). Throws where the options are
 * wrong. Its calls reject only where a claim was made under a parameter version or in a mode (live or test) that this
 * process does not have, and then nothing is sent.
 */
export function createStripeProvider(options: StripeOptions): PaymentProvider & { close(): void } {
  return new StripeProvider(options)
}

class StripeProvider implements PaymentProvider {
  readonly versions = { api: STRIPE_API_VERSION, parameters: PARAMETER_VERSION }
  readonly #stripe: Stripe
  readonly #http: StripeHttpClient
  readonly #livemode: boolean
  readonly #alert: (reason: NotSent['reason']) => void
  #identity: Promise<ProviderIdentity> | undefined

  constructor({ secretKey, apiBase, account, maxSockets = MAX_SOCKETS, onAlert = () => {} }: StripeOptions) {
    const base = new URL(apiBase)
    const protocol = base.protocol === 'https:' ? 'https' : 'http'
    if (base.protocol !== `${protocol}:`) throw new Error('The base of the Stripe API must be http:// or https://')
    if (base.pathname !== '/') throw new Error('The base of the Stripe API must have no path, not /v1 either')
    this.#http = new StripeHttpClient(protocol, maxSockets)
    this.#stripe = new Stripe(secretKey, {
      host: base.hostname.replace(/^\[|\]$/g, ''),
      port: base.port || (protocol === 'https' ? 443 : 80),
      protocol,
      httpClient: this.#http,
      maxNetworkRetries: 0,
      telemetry: false,
    })
    this.#livemode = /^[sr]k_live_/.test(secretKey)
    this.#alert = onAlert
    if (account !== undefined) this.#identity = Promise.resolve({ account, livemode: this.#livemode })
  }

  /** Closes every connection; calls under way are lost, so it comes after them. */
  close(): void {
    this.#http.close()
  }

  /** Asked once; those who ask meanwhile share the answer, and after a failure the next asks again. */
  identity(): Promise<ProviderIdentity> {
    this.#identity ??= this.#askIdentity().catch((error: unknown) => {
      this.#identity = undefined
      throw error
    })
    return this.#identity
  }

  async charge(request: ChargeRequest, limits: CallLimits): Promise<CallResult<PaymentOutcome>> {
    const { target, providerKey: key } = request
    const parameters = chargeParameters(request)
    const talk = this.#begin(target, limits)
    const outcome = await talk.ask({
      operation: 'payment.create',
      key,
      send: (options) => this.#stripe.paymentIntents.create(parameters, options),
      read: chargeOutcome,
    })
    const intentId = movableIntent(outcome)
    // A stored answer tells what was. Where the payment may have moved on since, its present state is read.
    if (!talk.lastReplayed || intentId === null || !talk.mayGoOn) return talk.result(outcome)
    const present = await this.#read(talk, intentId)
    return talk.result(tellsState(present) ? present : outcome)
  }

  async retrieve(target: ProviderTarget, intentId: string, limits: CallLimits): Promise<CallResult<PaymentOutcome>> {
    const talk = this.#begin(target, limits)
    return talk.result(await this.#read(talk, intentId))
  }

  async find(search: PaymentSearch, limits: CallLimits): Promise<CallResult<PaymentOutcome>> {
    const { tenant, order } = search.metadata
    const talk = this.#begin(search.target, limits)
    const matches: unknown[] = []
    const searched = await talk.readPages(this.#payments(search.createdFrom, search.createdTo), (item) => {
      const owner = readOwner(item)
      if (owner.tenant === tenant && owner.order === order) matches.push(item)
    })
    return talk.result(searched.kind === 'listed' ? searchOutcome(matches) : searched)
  }

  async cancel(
    target: ProviderTarget,
    intentId: string,
    providerKey: string,
    limits: CallLimits,
  ): Promise<CallResult<PaymentOutcome>> {
    return this.#change(target, intentId, providerKey, limits, {
      operation: 'payment.cancel',
      from: ['incomplete', 'requires_action', 'authorized'],
      to: 'canceled',
      send: (options) => this.#stripe.paymentIntents.cancel(intentId, EXPANDED, options),
    })
  }

  async capture(request: CaptureRequest, limits: CallLimits): Promise<CallResult<PaymentOutcome>> {
    const { target, intentId, providerKey } = request
    const amount = toProviderAmount(request.amount, request.currency)
    return this.#change(target, intentId, providerKey, limits, {
      operation: 'payment.capture',
      from: ['authorized'],
      to: 'succeeded',
      send: (options) =>
        this.#stripe.paymentIntents.capture(intentId, { amount_to_capture: amount, ...EXPANDED }, options),
    })
  }

  async refund(request: RefundRequest, limits: CallLimits): Promise<CallResult<RefundOutcome>> {
    const { target, intentId, providerKey: key, metadata } = request
    const { tenant, order, refund } = metadata
    const parameters: Stripe.RefundCreateParams = {
      payment_intent: intentId,
      amount: toProviderAmount(request.amount, request.currency),
      metadata: { tenant, order, refund },
    }
    const talk = this.#begin(target, limits)
    const outcome = await talk.ask({
      operation: 'refund.create',
      key,
      send: (options) => this.#stripe.refunds.create(parameters, options),
      read: refundOutcome,
    })
    if (!talk.lastReplayed || !('refund' in outcome) || !talk.mayGoOn) return talk.result(outcome)
    const present = await this.#readRefund(talk, outcome.refund.refundId)
    return talk.result('refund' in present ? present : outcome)
  }

  async retrieveRefund(
    target: ProviderTarget,
    refundId: string,
    limits: CallLimits,
  ): Promise<CallResult<RefundOutcome>> {
    const talk = this.#begin(target, limits)
    return talk.result(await this.#readRefund(talk, refundId))
  }

  listRefunds(
    target: ProviderTarget,
    intentId: string,
    limits: CallLimits,
  ): Promise<CallResult<Listing<ProviderRefund>>> {
    const of = { payment_intent: intentId, limit: PAGE_SIZE }
    const send: Page['send'] = (after, options) => this.#stripe.refunds.list({ ...of, ...after }, options)
    return this.#listOf(target, intentId, limits, { operation: 'refund.list', send }, readRefund)
  }

  listDisputes(
    target: ProviderTarget,
    intentId: string,
    limits: CallLimits,
  ): Promise<CallResult<Listing<ProviderDispute>>> {
    const of = { payment_intent: intentId, limit: PAGE_SIZE }
    const send: Page['send'] = (after, options) => this.#stripe.disputes.list({ ...of, ...after }, options)
    return this.#listOf(target, intentId, limits, { operation: 'dispute.list', send }, readDispute)
  }

  /** The time limit is for each page. Throws `ProviderUnavailable` where a page cannot be read. Payments that are not
   * Checkout's are left out if they cannot be read (their currency need not be one of ours). */
  async *listPayments(
    target: ProviderTarget,
    period: { from: Date; to: Date },
    limits: CallLimits,
  ): AsyncIterable<ProviderPayment> {
    const pages = this.#payments(period.from, period.to, 0)
    let next: string | null = ''
    while (next !== null) {
      const talk = this.#begin(target, limits)
      const page = await talk.readPage(pages, next)
      if (page.kind !== 'listed') throw new ProviderUnavailable(`Stripe's payments could not be listed: ${page.reason}`)
      for (const item of page.items) {
        const payment = readPayment(item)
        if (payment !== undefined) yield payment
        else if (readOwner(item).order !== undefined) {
          throw new ProviderUnavailable(`Stripe's payment ${item.id} could not be read`)
        }
      }
      next = page.next
    }
  }

  /** All that a payment has of a kind; one that cannot be read makes the whole unknown. */
  async #listOf<Item>(
    target: ProviderTarget,
    intentId: string,
    limits: CallLimits,
    pages: Page,
    read: (item: unknown) => Item | undefined,
  ): Promise<CallResult<Listing<Item>>> {
    const talk = this.#begin(target, limits)
    const items: Item[] = []
    let unreadable = false
    const listed = await talk.readPages(pages, (value) => {
      const item = read(value)
      if (item === undefined) unreadable = true
      else items.push(item)
    })
    if (listed.kind !== 'listed') return talk.result({ ...listed, ...('intentId' in listed ? { intentId } : {}) })
    return talk.result(unreadable ? unknown('unreadable_answer', { intentId }) : { kind: 'listed', items })
  }

  #payments(from: Date, to: Date, marginMs = CLOCK_SKEW_MS): Page {
    const created = {
      gte: Math.floor((from.getTime() - marginMs) / 1000),
      lte: Math.ceil((to.getTime() + marginMs) / 1000),
    }
    return {
      operation: 'payment.list',
      send: (after, options) =>
        this.#stripe.paymentIntents.list(
          { created, limit: PAGE_SIZE, expand: ['data.latest_charge'], ...after },
          options,
        ),
    }
  }

  /** Moves a payment from one state to another. Its state allows that once, so another key is no second effect. */
  async #change(
    target: ProviderTarget,
    intentId: string,
    providerKey: string,
    limits: CallLimits,
    change: {
      operation: string
      from: PaymentOutcome['kind'][]
      to: PaymentOutcome['kind']
      send: (options: Stripe.RequestOptions) => Promise<unknown>
    },
  ): Promise<CallResult<PaymentOutcome>> {
    const talk = this.#begin(target, limits)
    const { operation, send } = change
    const ask = (key: string) => talk.ask({ operation, key, send, read: (reply) => changeOutcome(reply, intentId) })

    let outcome = await ask(providerKey)
    // A key replays its first answer for ever, also a refusal or a 500 of which the cause has gone.
    if (talk.lastReplayed && outcome.kind !== change.to && talk.mayGoOn) {
      outcome = await ask(`${providerKey}:${randomUUID()}`)
    }
    if (outcome.kind !== 'rejected') return talk.result(outcome)

    const carried = talk.lastReplayed || outcome.payment === undefined ? null : paymentOutcome(outcome.payment)
    const present = talk.mayGoOn ? await this.#read(talk, intentId) : null
    const state = present !== null && tellsState(present) ? present : carried
    // Refused although its state allows it: the cause is another, which asking again does not change.
    if (state === null || change.from.includes(state.kind)) {
      return talk.result(unknown('provider_rejected', { intentId }))
    }
    return talk.result(state)
  }

  #read(talk: Conversation, intentId: string): Promise<PaymentOutcome> {
    return talk.ask({
      operation: 'payment.retrieve',
      send: (options) => this.#stripe.paymentIntents.retrieve(intentId, EXPANDED, options),
      read: (reply) => lookupOutcome(reply, intentId),
    })
  }

  #readRefund(talk: Conversation, refundId: string): Promise<RefundOutcome> {
    return talk.ask({
      operation: 'refund.retrieve',
      send: (options) => this.#stripe.refunds.retrieve(refundId, {}, options),
      read: refundLookupOutcome,
    })
  }

  async #askIdentity(): Promise<ProviderIdentity> {
    const target = { connectedAccount: null, apiVersion: STRIPE_API_VERSION }
    const talk = new Conversation(target, { timeoutMs: IDENTITY_TIMEOUT_MS }, this.#alert)
    const outcome = await talk.ask({
      operation: 'account.retrieve',
      send: (options) => this.#stripe.accounts.retrieveCurrent({}, options),
      read: accountOutcome,
    })
    if (outcome.kind !== 'identified') throw new ProviderUnavailable(`Stripe did not say who we are: ${outcome.reason}`)
    return { account: outcome.account, livemode: this.#livemode }
  }

  #begin(target: ProviderTarget, limits: CallLimits): Conversation {
    // In the other mode Stripe knows none of these payments, and its 404 would read as their absence.
    if (target.livemode !== this.#livemode) {
      const mode = (live: boolean) => (live ? 'live' : 'test')
      throw new Error(`The payment is of ${mode(target.livemode)} mode, the secret key of ${mode(this.#livemode)} mode`)
    }
    return new Conversation(target, limits, this.#alert)
  }
}
