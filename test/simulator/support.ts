import { setTimeout as sleep } from 'node:timers/promises'
import Stripe from 'stripe'
import { onTestFinished } from 'vitest'
import { type Simulator, type SimulatorOptions, startSimulator } from '../../src/simulator/server.ts'

export const webhookSecret = 'whsec_test_demo'
/** The last API version that takes `payment_method_types`. */
export const dahlia = '2026-08-26.dahlia'

/** A simulator of its own for one test, closed at its end. */
export async function simulator(options: Partial<SimulatorOptions> = {}): Promise<Simulator> {
  const started = await startSimulator({ port: 0, webhookSecret, ...options })
  onTestFinished(() => started.close())
  return started
}

/** The real SDK, talking to the simulator, without retries of its own. */
export function client(port: number, key = 'sk_test_demo', config: Stripe.StripeConfig = {}): Stripe {
  const apiVersion = dahlia as Stripe.StripeConfig['apiVersion']
  return new Stripe(key, {
    host: '127.0.0.1',
    port,
    protocol: 'http',
    maxNetworkRetries: 0,
    telemetry: false,
    ...(apiVersion === undefined ? {} : { apiVersion }),
    ...config,
  })
}

/** A card payment of 12.50 EUR, confirmed at once. */
export function payment(
  overrides: Partial<Stripe.PaymentIntentCreateParams> = {},
): Stripe.PaymentIntentCreateParams & { payment_method_types: string[] } {
  return {
    amount: 1250,
    currency: 'eur',
    payment_method: 'pm_card_visa',
    payment_method_types: ['card'],
    confirm: true,
    ...overrides,
  }
}

/** The error that a call is refused with; fails where it is not. */
export async function refusal(call: Promise<unknown>): Promise<Stripe.errors.StripeError> {
  const error = await call.then(
    (value) => new Error(`expected a refusal, got ${JSON.stringify(value)}`),
    (reason) => reason,
  )
  if (!(error instanceof Stripe.errors.StripeError)) throw error
  return error
}

export type Control = { status: number; body: Record<string, unknown> & { data: Record<string, unknown>[] } }

/** A call of the simulator's control. */
export async function control(sim: { url: string }, method: string, path: string, body?: object): Promise<Control> {
  const answer = await fetch(`${sim.url}/_sim${path}`, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  })
  return { status: answer.status, body: (await answer.json()) as Control['body'] }
}

/** What really happened, by the simulator's books. */
export async function books(sim: { url: string }): Promise<BookedIntent[]> {
  return (await control(sim, 'GET', '/payment_intents')).body.data as unknown as BookedIntent[]
}

export type BookedIntent = {
  id: string
  account: string
  livemode: boolean
  metadata: Record<string, string>
  idempotency_key: string | null
  requests: number | null
  status: string
  amount: number
  amount_received: number
  amount_capturable: number
  currency: string
  created: number
  charges: { id: string; status: string; amount_captured: number; amount_refunded: number; disputed: boolean }[]
  refunds: { id: string; amount: number; status: string; created: number }[]
  disputes: { id: string; amount: number; status: string; funds_withdrawn: boolean }[]
}

/** Polls until `check` gives something, for at most ten seconds. */
export async function until<T>(what: string, check: () => Promise<T | undefined> | T | undefined): Promise<T> {
  const deadline = Date.now() + 10_000
  for (;;) {
    const found = await check()
    if (found !== undefined) return found
    if (Date.now() > deadline) throw new Error(`waited in vain until ${what}`)
    await sleep(10)
  }
}
