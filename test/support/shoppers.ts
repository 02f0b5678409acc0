/**
 * Customers and a back office that use two APIs at once: everything is asked of both at the same moment, and again until
 * the answer is one for good, whatever dies meanwhile.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Books } from './books.ts'
import { type Client, cart, keys, type Reply } from './client.ts'
import { hold } from './runs.ts'
import { newKey } from './scene.ts'

/** What an order is to come to, in minor units. */
export interface Bought {
  key: string
  status: string
  captured: number
  refunded: number
}

/** One purchase from its first request to its end. */
type Purchase = (office: Office, key: string) => Promise<Bought>

/** Where requests go: the twin doors as they stand now. */
export class Office {
  readonly #doors: () => readonly Client[]
  readonly books: Books
  /** Twins that got different answers for good, and answers that nobody may get. */
  readonly wrong: string[] = []

  constructor(doors: () => readonly Client[], books: Books) {
    this.#doors = doors
    this.books = books
  }

  /** The same request through both doors at once, each repeated until its answer is for good; these agree. */
  async ask(send: (door: Client) => Promise<Reply>, onWait?: (reply: Reply) => Promise<unknown>): Promise<Reply> {
    const [first, second] = await Promise.all([0, 1].map((door) => this.#askOne(door, send, onWait)))
    if (first?.status !== second?.status || first?.text !== second?.text)
      this.wrong.push(`twins differ: ${first?.status} ${first?.text} / ${second?.status} ${second?.text}`)
    return first as Reply
  }

  async #askOne(
    door: number,
    send: (door: Client) => Promise<Reply>,
    onWait?: (reply: Reply) => Promise<unknown>,
  ): Promise<Reply> {
    const deadline = Date.now() + 60_000
    for (;;) {
      const reply = await send(this.#doors()[door] as Client).catch(() => undefined)
      if (reply !== undefined && !isForNow(reply)) {
        if (reply.status >= 500) this.wrong.push(`${reply.status} ${reply.text}`)
        return reply
      }
      if (Date.now() > deadline) throw new Error(`no answer for good: ${reply?.status} ${reply?.text}`)
      if (reply?.status === 202) await onWait?.(reply)
      await delay(50)
    }
  }
}

function isForNow(reply: Reply): boolean {
  return reply.status === 202 || reply.status === 503 || reply.json?.code === 'idempotency_key_in_progress'
}

const backend = (door: Client) => door.withKey(keys.backend)
const twoMugs = (more: Record<string, unknown> = {}) => cart({ items: [{ sku: 'mug', quantity: 2 }], ...more })
const threeDSecure = twoMugs({ payment_method: 'pm_card_threeDSecure2Required' })

const waitsForCustomer = ({ json }: Reply) => json.status === 'requires_action'

const purchases: Purchase[] = [
  async function paidAndRefunded(office, key) {
    const { json } = await office.ask((door) => door.checkout(key, twoMugs()))
    const refundKey = newKey()
    await office.ask((door) =>
      backend(door).post(`/v1/orders/${json.id}/refunds`, { amount: 700 }, { 'idempotency-key': refundKey }),
    )
    return { key, status: json.status, captured: 2500, refunded: 700 }
  },
  async function declined(office, key) {
    const body = twoMugs({ payment_method: 'pm_card_chargeDeclined' })
    const { json } = await office.ask((door) => door.checkout(key, body))
    return { key, status: json.code === 'card_declined' ? 'payment_failed' : json.code, captured: 0, refunded: 0 }
  },
  async function heldAndCaptured(office, key) {
    const { json } = await office.ask((door) => door.checkout(key, twoMugs({ capture: 'manual' })))
    const end = await office.ask((door) => backend(door).post(`/v1/orders/${json.id}/capture`, { amount: 1000 }))
    return { key, status: end.json.status, captured: 1000, refunded: 0 }
  },
  async function heldAndLetGo(office, key) {
    const { json } = await office.ask((door) => door.checkout(key, twoMugs({ capture: 'manual' })))
    const end = await office.ask((door) => backend(door).post(`/v1/orders/${json.id}/cancel`))
    return { key, status: end.json.status, captured: 0, refunded: 0 }
  },
  async function confirmed(office, key) {
    const { json } = await office.ask(
      (door) => door.checkout(key, threeDSecure),
      async (reply) => {
        // Both twins see the customer wait; the second to say so finds that the customer has been.
        if (waitsForCustomer(reply)) await office.books.act(reply.json.payment.reference, 'succeed').catch(() => {})
      },
    )
    return { key, status: json.status, captured: 2500, refunded: 0 }
  },
  async function givenUp(office, key) {
    const { json } = await office.ask(
      (door) => door.checkout(key, threeDSecure),
      async (reply) => {
        if (waitsForCustomer(reply)) await office.ask((door) => door.post(`/v1/checkouts/${key}/cancel`))
      },
    )
    const status = json.code === 'checkout_canceled' ? 'canceled' : json.status
    return { key, status, captured: 0, refunded: 0 }
  },
  async function metered(office, key) {
    const { json } = await office.ask((door) => backend(door).post('/v1/runs', hold(), { 'idempotency-key': key }))
    // One door records it, the other says that it is recorded.
    const line = { meter_type: 'input_tokens', quantity: 1_000_000 }
    await office.ask(async (door) => {
      const reply = await backend(door).post(`/v1/runs/${json.id}/usage`, line)
      return reply.status === 201 ? { ...reply, status: 200 } : reply
    })
    const end = await office.ask((door) => backend(door).post(`/v1/runs/${json.id}/finalize`))
    return { key, status: end.json.status === 'finalized' ? 'paid' : end.json.status, captured: 300, refunded: 0 }
  },
]

export interface Crowd {
  bought: Bought[]
  /** Every kind of purchase has been made this often by now. */
  rounds(): number
  /** No new purchases; resolves when those under way have ended. */
  end(): Promise<void>
}

/** Each kind of purchase over and over, all kinds at once. */
export function startShoppers(office: Office): Crowd {
  const bought: Bought[] = []
  const counts = purchases.map(() => 0)
  let ending = false
  const running = Promise.all(
    purchases.map(async (purchase, kind) => {
      while (!ending) {
        bought.push(await purchase(office, newKey()))
        counts[kind] = (counts[kind] ?? 0) + 1
      }
    }),
  )
  running.catch(() => {
    ending = true
  })
  return {
    bought,
    rounds: () => Math.min(...counts),
    async end() {
      ending = true
      await running
    },
  }
}
