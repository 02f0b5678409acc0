import type Stripe from 'stripe'
import type { CallLimits, CallResult, NotSent, ProviderCall, ProviderTarget, Unknown } from './port.ts'
import { describeFailure, replayedIn, requestIdIn } from './stripe-failure.ts'
import { type PageOutcome, pageOutcome, type Reply, unknown } from './stripe-outcomes.ts'

/** No HTTP call but the first starts with less than this left: it would hardly be answered. */
const FOLLOW_UP_MS_MIN = 1000

type Alert = (reason: NotSent['reason']) => void
type Target = Pick<ProviderTarget, 'connectedAccount' | 'apiVersion'>
type Question<Outcome> = {
  operation: string
  /** Stripe's idempotency key, for what has an effect. */
  key?: string
  send: (options: Stripe.RequestOptions) => Promise<unknown>
  read: (reply: Reply) => Outcome
}

/** A list that is read page by page. */
export interface Page {
  operation: string
  send: (after: { starting_after?: string }, options: Stripe.RequestOptions) => Promise<unknown>
}

/** One call of the port: its time limit, and a line for every HTTP call made within it. */
export class Conversation {
  readonly #calls: ProviderCall[] = []
  #deadline: number
  readonly #target: Target
  readonly #limits: CallLimits
  readonly #alert: Alert

  constructor(target: Target, limits: CallLimits, alert: Alert) {
    this.#target = target
    this.#limits = limits
    this.#deadline = performance.now() + limits.timeoutMs
    this.#alert = alert
  }

  /** Whether there is time for another HTTP call. */
  get mayGoOn(): boolean {
    return this.#deadline - performance.now() >= FOLLOW_UP_MS_MIN
  }

  /** Whether the latest answer was a stored one, which tells what was and not what is. */
  get lastReplayed(): boolean {
    return this.#calls.at(-1)?.replayed === true
  }

  /** Makes one HTTP call. Never rejects: what went wrong is for `read` to judge. */
  async ask<Outcome extends { kind: string }>(question: Question<Outcome>): Promise<Outcome> {
    if (this.#calls.length > 0) await this.#takeTurn()
    const startedAt = new Date()
    const started = performance.now()
    let reply: Reply
    let row: Pick<ProviderCall, 'requestId' | 'httpStatus' | 'errorCode' | 'replayed'>
    try {
      const answer = await question.send(this.#options(question.key))
      const { headers, statusCode } = (answer as Stripe.Response<unknown>).lastResponse
      reply = { body: answer }
      row = {
        requestId: requestIdIn(headers),
        httpStatus: statusCode,
        errorCode: null,
        replayed: replayedIn(headers),
      }
    } catch (error) {
      const failure = describeFailure(error)
      const { requestId, status: httpStatus, errorCode, replayed } = failure
      reply = { failure }
      row = { requestId, httpStatus, errorCode, replayed }
    }
    const durationMs = Math.round(performance.now() - started)
    const outcome = question.read(reply)
    this.#calls.push({ operation: question.operation, outcome: outcome.kind, durationMs, startedAt, ...row })
    if (isNotSent(outcome) && outcome.alert) this.#alert(outcome.reason)
    return outcome
  }

  /** The wait for its turn does not shorten what is left for the call itself. */
  async #takeTurn(): Promise<void> {
    const since = performance.now()
    await this.#limits.turn?.()
    this.#deadline += performance.now() - since
  }

  /** The page after the item with that id; `''` for the first one. */
  readPage({ operation, send }: Page, after: string): Promise<PageOutcome> {
    return this.ask({
      operation,
      send: (options) => send(after === '' ? {} : { starting_after: after }, options),
      read: pageOutcome,
    })
  }

  /** Shows every item of a list to `visit`. `listed` means that all of them were read. */
  async readPages(list: Page, visit: (item: unknown) => void): Promise<{ kind: 'listed' } | NotSent | Unknown> {
    let next: string | null = ''
    while (next !== null) {
      if (next !== '' && !this.mayGoOn) return unknown('timeout')
      const page: PageOutcome = await this.readPage(list, next)
      if (page.kind !== 'listed') return page
      page.items.forEach(visit)
      next = page.next
    }
    return { kind: 'listed' }
  }

  result<Outcome>(outcome: Outcome): CallResult<Outcome> {
    return { outcome, calls: this.#calls }
  }

  #options(key: string | undefined): Stripe.RequestOptions {
    const { apiVersion, connectedAccount } = this.#target
    return {
      // The SDK takes no fraction, and reads 0 as its own default of 80 s.
      timeout: Math.max(1, Math.floor(this.#deadline - performance.now())),
      apiVersion,
      ...(key === undefined ? {} : { idempotencyKey: key }),
      ...(connectedAccount === null ? {} : { stripeAccount: connectedAccount }),
    }
  }
}

function isNotSent(outcome: { kind: string }): outcome is NotSent {
  return outcome.kind === 'not_sent'
}
