/** Where the payment of one cart stands, for the review page: follows clicks, the service and other tabs. */
import type { CheckoutAttempt, KnownOrder, Order, Outcome, WaitReason } from '../client/index.ts'

export type Standing =
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

export class Paying {
  readonly #attempt: CheckoutAttempt
  readonly #onChange: (standing: Standing) => void
  readonly #unwatch: () => void
  #work = new AbortController()
  standing: Standing = { kind: 'loading' }

  constructor(attempt: CheckoutAttempt, onChange: (standing: Standing) => void) {
    this.#attempt = attempt
    this.#onChange = onChange
    this.#unwatch = attempt.watch(() => this.#otherTab())
  }

  /** What is being paid, as it was sent; undefined where nothing is. */
  get sent(): Body | undefined {
    return this.#attempt.record?.sent?.body
  }

  /** The review page is shown: makes the key, or goes on with what was sent before. */
  start(): void {
    const first: Standing = this.sent === undefined ? { kind: 'loading' } : { kind: 'working', on: 'payment' }
    this.#run(
      'payment',
      async (waiting) => {
        const { end } = await this.#attempt.begin()
        return end ?? (await this.#attempt.resume(waiting))
      },
      first,
    )
  }

  pay(body: Body): void {
    if (this.standing.kind === 'ready') this.#run('payment', (waiting) => this.#attempt.pay(body, waiting))
  }

  /** The customer has answered their bank. */
  confirm(): void {
    if (this.standing.kind === 'bank') this.#run('payment', (waiting) => this.#attempt.confirm(waiting))
  }

  giveUp(): void {
    this.#run('cancellation', (waiting) => this.#attempt.cancel(waiting))
  }

  /** The page is left. What was sent goes on at the service. */
  stop(): void {
    this.#unwatch()
    this.#work.abort()
  }

  #otherTab(): void {
    const { kind } = this.standing
    const { record } = this.#attempt
    if (kind === 'working' || kind === 'loading' || kind === 'paid') return
    if (record?.sent !== undefined || record?.end !== undefined) this.start()
    else if (kind === 'bank' && record !== undefined) this.#show({ kind: 'ready' })
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
    this.#onChange(standing)
  }
}

function standingAfter(outcome: Outcome | null, on: 'payment' | 'cancellation'): Standing {
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
