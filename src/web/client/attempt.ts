/** One attempt to pay for one cart: one key and one request, however often it is sent, from however many tabs. */
import { backoffMs, pause } from './backoff.ts'
import type { CheckoutBody } from './contract.ts'
import {
  type End,
  type Meaning,
  meaningOfCancel,
  meaningOfCheckout,
  meaningOfLookUp,
  type Outcome,
  type WaitReason,
} from './outcome.ts'
import type { AttemptRecord, AttemptRecords } from './records.ts'
import { exchange, type Reply, type Service } from './wire.ts'

export interface Waiting {
  /** Gives up waiting; what was sent may still have its effect. The promise then rejects with the signal's reason. */
  signal?: AbortSignal
  /** Called before each pause after which the same request is sent again. */
  onWait?: (reason: WaitReason) => void
}

/** After this the customer may have left and forgotten: only they may send again what never arrived, ms. */
const resumesByItselfMs = 10 * 60_000
/** A request that was given up may still be on its way to the service when its cancellation arrives. */
const cancelTriesMax = 3

export class CheckoutAttempt {
  readonly #service: Service
  readonly #records: AttemptRecords
  readonly #cart: string

  /** `cart` is sent as `cart_id`: at most one attempt ever pays for it. */
  constructor(service: Service, records: AttemptRecords, cart: string) {
    this.#service = service
    this.#records = records
    this.#cart = cart
  }

  /** As kept by the browser. */
  get record(): AttemptRecord | undefined {
    return this.#records.read(this.#cart)
  }

  /** Makes the key: when the review page is shown. All tabs get the same one. */
  async begin(): Promise<AttemptRecord> {
    return this.#make((before) => (before === undefined || before.end?.kind === 'canceled' ? this.#fresh() : before))
  }

  /**
   * Sends the checkout, and the same again until something definite is known. Where it was sent before, by a click, a tab
   * or a page that has gone, that request is repeated, whatever `body` says. After a decline it goes out with a new key.
   * Rejects without having sent anything where the browser's storage takes nothing. `memo`, JSON, is kept with what is
   * sent, and with the record once that is paid.
   */
  async pay(body: CheckoutBody, waiting: Waiting & { memo?: unknown } = {}): Promise<Outcome> {
    const record = await this.#make((before) => {
      if (before?.sent !== undefined || before?.end?.kind === 'paid') return before
      const { cart, key, madeAt } = before === undefined || before.end !== undefined ? this.#fresh() : before
      const { memo } = waiting
      return { cart, key, madeAt, memo, sent: { body: { ...body, cart_id: cart }, at: Date.now() } }
    })
    return this.#drive(record, waiting, false)
  }

  /**
   * For a page that has just been loaded: looks up what became of the attempt and goes on with it, if it was sent. Null
   * where there is nothing to go on with: not sent yet, or ended unpaid.
   */
  async resume(waiting: Waiting = {}): Promise<Outcome | null> {
    const { record } = this
    if (record?.end !== undefined) return record.end
    if (record?.sent === undefined) return null
    const found = await this.#lookUp(record, waiting)
    const isOld = Date.now() - record.sent.at > resumesByItselfMs
    if (found.kind === 'not_started' ? isOld : found.kind !== 'wait' && found.kind !== 'declined') {
      return this.#keep(record, found as Outcome)
    }
    // Under way, or on its way, or declined for a reason that only the whole answer tells: the repeat brings it.
    return this.#drive(this.record, waiting, false)
  }

  /** After the customer has dealt with their bank: repeats until the payment has moved on. */
  confirm(waiting: Waiting = {}): Promise<Outcome> {
    return this.#drive(this.record, waiting, true)
  }

  /**
   * The customer gives up. Resolves with `canceled`, or with what came first: a payment cannot be called back here.
   * `not_started` where nothing was sent, or nothing has arrived; then the key is kept for the next try.
   */
  async cancel(waiting: Waiting = {}): Promise<Outcome> {
    const { record } = this
    if (record?.sent === undefined) return record?.end ?? { kind: 'not_started' }
    const path = `${pathOf(record.key)}/cancel`
    for (let tries = 0; ; tries++) {
      const reply = await exchange(this.#service, { method: 'POST', path, key: record.key }, waiting.signal)
      const meaning = meaningOfCancel(reply)
      const unknown = meaning.kind === 'not_started' && tries < cancelTriesMax - 1
      if (meaning.kind !== 'wait' && !unknown) return this.#keep(record, meaning as Outcome)
      await wait(meaning, tries, waiting)
    }
  }

  /** Forgets how the attempt ended. What is unsettled stays. */
  async forget(): Promise<void> {
    await this.#records.update(this.#cart, (record) => (record?.sent === undefined ? undefined : record))
  }

  /** Calls back whenever another tab has changed the attempt. Returns what ends that. */
  watch(listener: () => void): () => void {
    return this.#records.watch(this.#cart, listener)
  }

  async #drive(first: AttemptRecord | undefined, waiting: Waiting, acted: boolean): Promise<Outcome> {
    for (let tries = 0; ; tries++) {
      // Another tab may have ended it, or given it up, meanwhile.
      const record = tries === 0 ? first : this.record
      if (record?.sent === undefined) return record?.end ?? { kind: 'not_started' }
      const { key, sent } = record
      const reply = await exchange(
        this.#service,
        { method: 'POST', path: '/v1/checkouts', key, body: sent.body },
        waiting.signal,
      )
      const meaning = stillWaits(meaningOfCheckout(reply), reply, acted)
      if (meaning.kind === 'look_up') return this.#keep(record, await this.#follow(record, waiting))
      if (meaning.kind !== 'wait') return this.#keep(record, meaning)
      await wait(meaning, tries, waiting)
    }
  }

  /** Looks up the attempt until it has ended. Sends nothing. */
  async #follow(record: AttemptRecord, waiting: Waiting): Promise<Outcome> {
    for (let tries = 0; ; tries++) {
      const meaning = await this.#lookUp(record, waiting)
      if (meaning.kind !== 'wait') return meaning as Outcome
      await wait(meaning, tries, waiting)
    }
  }

  /** Looks up the attempt until there is an answer: `wait` says that it is known and has not ended. */
  async #lookUp(record: AttemptRecord, waiting: Waiting): Promise<Meaning> {
    const { key } = record
    for (let tries = 0; ; tries++) {
      const reply = await exchange(this.#service, { method: 'GET', path: pathOf(key), key }, waiting.signal)
      const meaning = meaningOfLookUp(reply)
      if (meaning.kind !== 'wait' || meaning.reason === 'checking') return meaning
      await wait(meaning, tries, waiting)
    }
  }

  /** Keeps what the outcome means for key and request, unless the record is another attempt's by now. */
  async #keep(record: AttemptRecord, outcome: Outcome): Promise<Outcome> {
    await this.#records.update(this.#cart, (now) => {
      if (now?.key !== record.key) return now
      const { cart, key, madeAt } = record
      switch (outcome.kind) {
        case 'paid':
          return { cart, key, madeAt, memo: now.memo, end: outcome }
        case 'declined':
        case 'canceled':
          return { cart, key, madeAt, end: outcome satisfies End }
        case 'refused':
        case 'cart_taken':
        case 'not_started':
          // The key stays: one that is lost on its way may still arrive, and then it must meet this key.
          return now.end === undefined ? { cart, key, madeAt } : now
        default:
          return now
      }
    })
    return outcome
  }

  async #make(change: (before: AttemptRecord | undefined) => AttemptRecord): Promise<AttemptRecord> {
    const record = await this.#records.update(this.#cart, change)
    if (record === undefined) throw new Error('the storage given has kept nothing')
    return record
  }

  #fresh(): AttemptRecord {
    return { cart: this.#cart, key: newKey(), madeAt: Date.now() }
  }
}

/** After the customer has acted, the service may not have heard of it yet. */
function stillWaits(meaning: Meaning, reply: Reply, acted: boolean): Meaning {
  if (!acted || meaning.kind !== 'action_required' || reply.kind === 'lost') return meaning
  return { kind: 'wait', reason: 'checking', retryAfterMs: reply.retryAfterMs }
}

async function wait(meaning: Meaning, tries: number, { signal, onWait }: Waiting): Promise<void> {
  const { reason, retryAfterMs } =
    meaning.kind === 'wait' ? meaning : { reason: 'no_answer' as const, retryAfterMs: null }
  onWait?.(reason)
  await pause(backoffMs(tries, retryAfterMs), signal)
}

function pathOf(key: string): string {
  return `/v1/checkouts/${encodeURIComponent(key)}`
}

/** Random and hard to guess: who has it can cancel the attempt. 128 bits, also where the page came without TLS. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
