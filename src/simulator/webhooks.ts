import { createHmac } from 'node:crypto'
import { Agent, request } from 'node:http'
import { request as requestTls } from 'node:https'
import type { Logger } from 'pino'
import { render } from './expand.ts'
import { type Random, seededRandom } from './random.ts'
import type { EventRecord } from './records.ts'

export type WebhookSettings = {
  /** The whole inbox URL; without one nothing is delivered. */
  url: string | undefined
  secret: string
  /** Event types to deliver; all where absent. */
  types: string[] | undefined
  /** Delay before the first repeat of a failed delivery; it doubles up to a minute. */
  retryBaseMs: number
}

/** How notifications misbehave. */
export type Misbehaviour = {
  delay_ms: number
  /** Extra copies of each notification; a fraction is the probability of one more. */
  duplicates: number
  /** In random order. */
  shuffle: boolean
  /** Probability that a notification is never sent. */
  drop: number
}

export const wellBehaved: Misbehaviour = { delay_ms: 0, duplicates: 0, shuffle: false, drop: 0 }

const attemptsMax = 20
const retryDelayMsMax = 60_000
const answerTimeoutMs = 10_000
const inFlightMax = 24
/** Without a delay there is no order to break, so that shuffled notifications are spread over at least this. */
const shuffleSpreadMs = 200

type Delivery = { event: EventRecord; attempts: number }

/** Delivers events as Stripe does: signed, repeated with growing delays until the receiver answers 2xx. */
export class Webhooks {
  readonly #settings: WebhookSettings
  readonly #log: Logger
  readonly #onDone: (eventId: string) => void
  readonly #agent = new Agent({ keepAlive: true, maxSockets: inFlightMax })
  readonly #waiting = new Set<Delivery>()
  readonly #timers = new Set<NodeJS.Timeout>()
  #inFlight = 0
  #closed = false
  #misbehaviour = wellBehaved
  #random: Random = seededRandom(1)

  /** `onDone` is told of each event that needs no further delivery. */
  constructor(settings: WebhookSettings, log: Logger, onDone: (eventId: string) => void) {
    this.#settings = settings
    this.#log = log
    this.#onDone = onDone
  }

  misbehave(how: Misbehaviour, seed?: number): void {
    this.#misbehaviour = how
    if (seed !== undefined) this.#random = seededRandom(seed)
  }

  get misbehaviour(): Misbehaviour {
    return this.#misbehaviour
  }

  get areSent(): boolean {
    return this.#settings.url !== undefined
  }

  /** Whether this event is to be delivered at all. */
  accepts(type: string): boolean {
    if (!this.areSent) return false
    if (this.#settings.types && !this.#settings.types.includes(type)) return false
    return this.#random() >= this.#misbehaviour.drop
  }

  deliver(event: EventRecord): void {
    if (!this.areSent) return
    const { delay_ms, duplicates, shuffle } = this.#misbehaviour
    const extra = Math.floor(duplicates) + (this.#random() < duplicates % 1 ? 1 : 0)
    for (let copy = 0; copy <= extra; copy++) {
      const spread = shuffle ? this.#random() * Math.max(delay_ms, shuffleSpreadMs) : 0
      this.#later({ event, attempts: 0 }, delay_ms + spread)
    }
  }

  /** Forgets what waits. */
  clear(): void {
    for (const timer of this.#timers) clearTimeout(timer)
    this.#timers.clear()
    this.#waiting.clear()
  }

  close(): void {
    this.#closed = true
    this.clear()
    this.#agent.destroy()
  }

  #later(delivery: Delivery, delayMs: number): void {
    if (this.#closed) return
    if (delayMs === 0) {
      this.#waiting.add(delivery)
      this.#next()
      return
    }
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      this.#later(delivery, 0)
    }, delayMs)
    this.#timers.add(timer.unref())
  }

  #next(): void {
    for (const delivery of this.#waiting) {
      if (this.#inFlight >= inFlightMax) return
      this.#waiting.delete(delivery)
      this.#inFlight++
      void this.#attempt(delivery).finally(() => {
        this.#inFlight--
        this.#next()
      })
    }
  }

  async #attempt(delivery: Delivery): Promise<void> {
    const { event } = delivery
    delivery.attempts++
    const status = await this.#post(event).catch((error: Error) => error.message)
    if (this.#closed) return
    if (typeof status === 'number' && status >= 200 && status < 300) return this.#onDone(event.id)
    if (delivery.attempts >= attemptsMax) {
      this.#log.warn({ event: event.id, type: event.type, status }, 'notification given up')
      return this.#onDone(event.id)
    }
    const delayMs = Math.min(this.#settings.retryBaseMs * 2 ** (delivery.attempts - 1), retryDelayMsMax)
    this.#log.debug(
      { event: event.id, type: event.type, status, delayMs },
      'notification not accepted, will be repeated',
    )
    this.#later(delivery, delayMs)
  }

  /** Resolves with the receiver's status. */
  #post(event: EventRecord): Promise<number> {
    const url = new URL(this.#settings.url as string)
    const body = JSON.stringify(render(event), null, 2)
    const headers = {
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(body),
      'user-agent': 'Stripe/1.0 (+https://stripe.com/docs/webhooks)',
      'stripe-signature': signature(body, this.#settings.secret),
    }
    const options = { method: 'POST', headers, timeout: answerTimeoutMs }
    return new Promise((resolve, reject) => {
      const call =
        url.protocol === 'https:' ? requestTls(url, options) : request(url, { ...options, agent: this.#agent })
      call.on('response', (response) => {
        response.resume()
        response.on('end', () => resolve(response.statusCode ?? 0))
        response.on('error', reject)
      })
      call.on('timeout', () => call.destroy(new Error('no answer in time')))
      call.on('error', reject)
      call.end(body)
    })
  }
}

/** The `Stripe-Signature` header, https://docs.stripe.com/webhooks#verify-manually; made anew for every attempt. */
function signature(body: string, secret: string): string {
  const seconds = Math.floor(Date.now() / 1000)
  return `t=${seconds},v1=${createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex')}`
}
