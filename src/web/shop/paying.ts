/**
 * Where the payment of one cart stands: follows clicks, the service and other tabs, whichever view is shown. What was begun
 * goes on when a view is left.
 */
import type { CheckoutAttempt, KnownOrder, Order, Outcome, WaitReason } from '../client/index.ts'
import type { Summary } from './lines.ts'

export type Standing =
  /** Nothing was sent, and the customer is not about to. */
  | { kind: 'idle' }
  | { kind: 'loading' }
  /** The customer can pay. */
  | {
      kind: 'ready'
      after?: Extract<Outcome, { kind: 'declined' | 'canceled' | 'refused' | 'not_started' | 'failed' }>
    }
  | { kind: 'working'; on: 'payment' | 'cancellation'; reason?: WaitReason }
  /** Their bank asks. */
  | { kind: 'bank'; order: Order }
  | { kind: 'cart_taken'; paid: boolean; orderId: string | undefined }
  /** `late`: before it could be canceled. */
  | { kind: 'paid'; order: KnownOrder; late: boolean }
  /** The browser keeps nothing, so nothing may be sent. */
  | { kind: 'broken' }

type Body = Parameters<CheckoutAttempt['pay']>[0]
type Listener = (standing: Standing) => void

export class Paying {
  readonly cart: string
  readonly #attempt: CheckoutAttempt
  readonly #listeners = new Set<Listener>()
  readonly #unwatch: () => void
  #work = new AbortController()
  #key: string | undefined
  #told: Standing | undefined
  standing: Standing = { kind: 'idle' }

  constructor(cart: string, attempt: CheckoutAttempt) {
    this.cart = cart
    this.#attempt = attempt
    this.#unwatch = attempt.watch(() => this.#otherTab())
  }

  /** What the browser keeps of it: what is being paid, as it was sent. */
  get record(): CheckoutAttempt['record'] {
    return this.#attempt.record
  }

  /** It has come to an end that the customer has not been told. */
  get isNews(): boolean {
    const { standing } = this
    const isEnd = standing.kind === 'cart_taken' || (standing.kind === 'ready' && standing.after !== undefined)
    return isEnd && standing !== this.#told
  }

  /** The customer sees where it stands. */
  told(): void {
    this.#told = this.standing
  }

  /** Returns what ends that. */
  watch(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** The review page is shown: makes the key, or goes on with what was sent before. */
  start(): void {
    const { kind } = this.standing
    if (kind === 'working' || kind === 'loading' || kind === 'bank' || this.isNews) return
    const first: Standing = this.record?.sent === undefined ? { kind: 'loading' } : { kind: 'working', on: 'payment' }
    this.#run(
      'payment',
      async (waiting) => {
        const { end } = await this.#attempt.begin()
        return end ?? (await this.#attempt.resume(waiting))
      },
      first,
    )
  }

  /** Any view is shown: goes on with what was sent before, if anything was. Makes no key. */
  goOn(): void {
    const { record } = this
    if (record?.sent === undefined && record?.end?.kind !== 'paid') return
    this.#run('payment', (waiting) => this.#attempt.resume(waiting))
  }

  /** `reviewed` is what the customer was shown. */
  pay(body: Body, reviewed: Summary): void {
    if (this.standing.kind !== 'ready') return
    this.#run('payment', (waiting) => this.#attempt.pay(body, { ...waiting, memo: reviewed }))
  }

  /** The customer has answered their bank. */
  confirm(): void {
    if (this.standing.kind === 'bank') this.#run('payment', (waiting) => this.#attempt.confirm(waiting))
  }

  giveUp(): void {
    if (this.standing.kind === 'working' && this.standing.on === 'cancellation') return
    this.#run('cancellation', (waiting) => this.#attempt.cancel(waiting))
  }

  #otherTab(): void {
    const { kind } = this.standing
    const { record } = this
    if (kind === 'working' || kind === 'loading' || kind === 'paid') return
    if (record?.sent !== undefined) {
      this.goOn()
    } else if (record?.end !== undefined) {
      // Where nothing was begun here, the other tab has told it.
      if (kind !== 'idle' || record.end.kind === 'paid') this.#show(standingAfter(record.end))
    } else if (kind === 'bank' && record !== undefined && record.key !== this.#key) {
      // Only what was given up gives way to another key that has not been sent.
      this.#show(standingAfter({ kind: 'canceled', orderId: undefined }))
    }
  }

  #run(
    on: 'payment' | 'cancellation',
    work: (waiting: { signal: AbortSignal; onWait: (reason: WaitReason) => void }) => Promise<Outcome | null>,
    first: Standing = { kind: 'working', on },
  ): void {
    this.#work.abort()
    this.#work = new AbortController()
    const { signal } = this.#work
    this.#show(first)
    const onWait = (reason: WaitReason) => {
      if (!signal.aborted) this.#show({ kind: 'working', on, reason })
    }
    work({ signal, onWait }).then(
      (outcome) => {
        if (!signal.aborted) this.#show(standingAfter(outcome, on))
      },
      (error: unknown) => {
        if (signal.aborted) return
        this.#show({ kind: 'broken' })
        throw error
      },
    )
  }

  #show(standing: Standing): void {
    this.standing = standing
    if (standing.kind === 'bank') this.#key = this.record?.key
    if (standing.kind === 'paid') this.#unwatch()
    for (const listener of this.#listeners) listener(standing)
  }
}

function standingAfter(outcome: Outcome | null, on: 'payment' | 'cancellation' = 'payment'): Standing {
  switch (outcome?.kind) {
    case undefined:
      return { kind: 'ready' }
    case 'paid':
      return { ...outcome, late: on === 'cancellation' }
    case 'cart_taken':
      return outcome
    case 'action_required':
      return { kind: 'bank', order: outcome.order }
    default:
      return { kind: 'ready', after: outcome as Extract<Outcome, { kind: 'declined' }> }
  }
}
