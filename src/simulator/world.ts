import type { Logger } from 'pino'
import { Agenda } from './agenda.ts'
import { Books, type Cause, Change, type Terms } from './books.ts'
import { openDispute } from './disputes.ts'
import { Faults } from './faults.ts'
import { IdempotencyKeys } from './idempotency.ts'
import { type Entry, Journal, readJournal } from './journal.ts'
import { cancel } from './payments.ts'
import type { StoredAnswer, Subject } from './records.ts'
import { settleRefund } from './refunds.ts'
import { RequestLog } from './request-log.ts'
import { type WebhookSettings, Webhooks, wellBehaved } from './webhooks.ts'

type WorldOptions = {
  /** Where the books are kept; in memory only where absent. */
  stateFile: string | undefined
  keyLifetimeMs: number
  terms: Terms
  webhooks: WebhookSettings
  log: Logger
}

/** How long the mark that an event was delivered may wait for another line to go with. A kill loses the mark, so that
 * the event is delivered once more, as Stripe may do anyway. */
const deliveredFlushMs = 100

/** The simulator without its doors: books, keys, faults, notifications, and the one way to change them. */
export class World {
  readonly books: Books
  readonly keys: IdempotencyKeys
  readonly faults = new Faults()
  readonly requests = new RequestLog()
  readonly webhooks: Webhooks
  readonly log: Logger
  /** Grows with every reset; a request that began before a reset must not act after it. */
  epoch = 0
  readonly #agenda: Agenda
  readonly #journal: Journal | undefined
  readonly #stateFile: string | undefined
  #delivered: string[] = []
  #flushTimer: NodeJS.Timeout | undefined

  constructor(options: WorldOptions) {
    this.log = options.log
    this.books = new Books(options.terms)
    this.keys = new IdempotencyKeys(options.keyLifetimeMs, (...counted) => this.#journal?.append({ counted }))
    this.webhooks = new Webhooks(options.webhooks, options.log, (id) => this.#markDelivered(id))
    this.#agenda = new Agenda((id) => this.#doDue(id))
    this.#stateFile = options.stateFile
    this.#journal = options.stateFile === undefined ? undefined : new Journal(options.stateFile)
  }

  /** Reads the books as they were left. Throws where the file is damaged. */
  async load(): Promise<void> {
    if (this.#stateFile === undefined) return
    for await (const entry of readJournal(this.#stateFile)) {
      for (const record of entry.records ?? []) this.books.put(record)
      for (const event of entry.events ?? []) this.books.putEvent(event)
      if (entry.answer) this.keys.store(entry.answer)
      this.books.delivered(entry.delivered ?? [])
      if (entry.counted) this.keys.count(...entry.counted)
    }
  }

  /** Takes the file over, and takes up again what was pending. Called once the port is ours, which keeps a second
   * simulator on the same settings from touching the file. */
  start(): void {
    this.#journal?.open(this.#everything())
    for (const event of this.books.events.all()) if (event.pending) this.webhooks.deliver(event)
    for (const shelf of [this.books.charges, this.books.refunds]) {
      for (const record of shelf.all()) this.#agenda.note(record as Subject)
    }
  }

  begin(cause: Cause): Change {
    return new Change(this.books, cause)
  }

  /** Writes down what changed, with the answer stored under the request's idempotency key, and announces the events. */
  commit(change: Change, answer?: StoredAnswer): void {
    const { records } = change
    const events = change.events.map((event) => ({ ...event, pending: this.webhooks.accepts(event.type) }))
    if (records.length === 0 && events.length === 0 && answer === undefined) return
    if (answer) this.keys.store(answer)
    for (const event of events) this.books.putEvent(event)
    this.#write({ records, events, ...(answer ? { answer } : {}) })
    for (const record of records) this.#agenda.note(record)
    for (const event of events) if (event.pending) this.webhooks.deliver(event)
  }

  /** Empty again, and well-behaved. */
  reset(): void {
    this.epoch++
    this.#agenda.clear()
    this.webhooks.clear()
    this.webhooks.misbehave(wellBehaved)
    this.faults.clear()
    this.books.clear()
    this.keys.clear()
    this.requests.clear()
    this.#delivered = []
    this.#journal?.empty()
  }

  close(): void {
    this.epoch++
    this.#agenda.clear()
    this.webhooks.close()
    clearTimeout(this.#flushTimer)
    if (this.#delivered.length > 0) this.#write({})
    this.#journal?.close()
  }

  *#everything(): Generator<Entry> {
    yield* this.books.entries()
    for (const answer of this.keys.answers()) yield { answer }
    for (const counted of this.keys.counts()) yield { counted }
  }

  #write(entry: Entry): void {
    const delivered = this.#delivered.splice(0)
    this.#journal?.append(delivered.length === 0 ? entry : { ...entry, delivered })
  }

  #markDelivered(eventId: string): void {
    this.books.delivered([eventId])
    if (this.#journal === undefined) return
    this.#delivered.push(eventId)
    this.#flushTimer ??= setTimeout(() => {
      this.#flushTimer = undefined
      if (this.#delivered.length > 0) this.#write({})
    }, deliveredFlushMs).unref()
  }

  /** Does what has fallen due for the charge or refund of that id. */
  #doDue(id: string): void {
    const change = this.begin(null)
    const refund = this.books.refunds.peek(id)
    const charge = this.books.charges.peek(id)
    if (refund?.settles) settleRefund(change, refund, refund.settles.status)
    if (charge?.dispute_due) {
      const status = charge.dispute_due.status === 'needs_response' ? 'needs_response' : 'warning_needs_response'
      openDispute(change, charge, { amount: undefined, status, reason: 'fraudulent' })
    } else if (charge) {
      const intent = this.books.intents.peek(charge.payment_intent)
      if (intent?.status === 'requires_capture') cancel(change, intent, 'automatic')
    }
    this.commit(change)
  }
}
