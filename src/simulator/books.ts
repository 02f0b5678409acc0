import { Collection } from './collection.ts'
import type { Entry } from './journal.ts'
import { newId } from './random.ts'
import type {
  ChargeRecord,
  DisputeRecord,
  EventRecord,
  PaymentIntentRecord,
  RefundRecord,
  Scope,
  Subject,
} from './records.ts'

/** Durations in milliseconds that tests shorten. */
export type Terms = {
  /** How long a hold lasts, https://docs.stripe.com/payments/place-a-hold-on-a-payment-method: 7 days. */
  holdLifetimeMs: number
  /** After how long a pending refund settles, a refund that fails does, and a dispute opens. */
  settleDelayMs: number
}

const eventsMax = 20_000

/** Everything that the simulator knows to have happened, of all accounts. */
export class Books {
  readonly intents = new Collection<PaymentIntentRecord>('payment_intent')
  readonly charges = new Collection<ChargeRecord>('charge')
  readonly refunds = new Collection<RefundRecord>('refund')
  readonly disputes = new Collection<DisputeRecord>('dispute')
  /** The latest events; older ones are forgotten unless they still wait for delivery. */
  readonly events = new Collection<EventRecord>('event')
  readonly terms: Terms
  #lastSecond = 0
  /** At how many events the old ones are forgotten, so that it is seldom done. */
  #pruneAt = eventsMax + eventsMax / 4

  constructor(terms: Terms) {
    this.terms = terms
  }

  put(record: Subject): void {
    this.#lastSecond = Math.max(this.#lastSecond, record.created)
    if (record.object === 'payment_intent') this.intents.put(record)
    else if (record.object === 'charge') this.charges.put(record)
    else if (record.object === 'refund') this.refunds.put(record)
    else this.disputes.put(record)
  }

  putEvent(event: EventRecord): void {
    this.events.put(event)
    if (this.events.size < this.#pruneAt) return
    let surplus = this.events.size - eventsMax
    this.events.keep((old) => old.pending || surplus-- <= 0)
    this.#pruneAt = Math.max(this.events.size, eventsMax) + eventsMax / 4
  }

  delivered(ids: readonly string[]): void {
    for (const id of ids) {
      const event = this.events.peek(id)
      if (event) this.events.put({ ...event, pending: false })
    }
  }

  /** Unix seconds, never going back, so that lists ordered by arrival are ordered by `created`. */
  now(): number {
    this.#lastSecond = Math.max(this.#lastSecond, Math.floor(Date.now() / 1000))
    return this.#lastSecond
  }

  *entries(): Generator<Entry> {
    for (const shelf of [this.intents, this.charges, this.refunds, this.disputes]) {
      for (const record of shelf.all()) yield { records: [record] }
    }
    for (const event of this.events.all()) yield { events: [event] }
  }

  clear(): void {
    for (const shelf of [this.intents, this.charges, this.refunds, this.disputes, this.events]) shelf.clear()
  }
}

/** Why something changes: the request that asked for it, or nothing where time or the control asked. */
export type Cause = { id: string; idempotency_key: string | null } | null

/** The records and events of one step, written to the journal together. */
export class Change {
  readonly books: Books
  readonly cause: Cause
  readonly #records = new Map<string, Subject>()
  readonly #events: EventRecord[] = []

  constructor(books: Books, cause: Cause) {
    this.books = books
    this.cause = cause
  }

  get records(): Subject[] {
    return [...this.#records.values()]
  }

  get events(): EventRecord[] {
    return this.#events
  }

  put<R extends Subject>(record: R): R {
    this.books.put(record)
    this.#records.set(record.id, record)
    return record
  }

  /** Announces that `subject`, as it is now, had this happen to it. */
  emit(
    type: string,
    subject: EventRecord['subject'],
    scope: Scope,
    previous: Record<string, unknown> | null = null,
  ): EventRecord {
    const event: EventRecord = {
      object: 'event',
      id: newId('evt_'),
      created: this.books.now(),
      account: scope.account,
      livemode: scope.livemode,
      type,
      subject,
      previous,
      request: this.cause,
      pending: false,
    }
    this.#events.push(event)
    return event
  }
}
