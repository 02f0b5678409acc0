/**
 * Clients that buy without a pause, each as a good storefront does: one key per purchase, repeated until the answer is
 * one for good. They take note of every answer that a client must never see.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { type Client, cart, type Reply } from './client.ts'
import { newKey } from './scene.ts'

export interface Purchase {
  key: string
  body: Record<string, unknown>
  /** The answer for good. */
  end: Reply
}

export interface Load {
  /** Answers for good so far. */
  purchases: Purchase[]
  /** Answers that nobody may get, whatever happens. */
  wrong: string[]
  /** No new purchases; resolves when those under way have got their answers for good. Rejects at the deadline. */
  end(): Promise<void>
}

const bodies = [
  cart(),
  cart({ items: [{ sku: 'tee', quantity: 2 }] }),
  cart({ payment_method: 'pm_card_chargeDeclined' }),
  cart({ capture: 'manual' }),
]

/** `shop` is asked anew for each request, so that a client may find another service. */
export function startLoad(shop: () => Client, { clients = 6, patienceMs = 60_000 } = {}): Load {
  const purchases: Purchase[] = []
  const wrong: string[] = []
  let ending = false
  let deadline = Number.POSITIVE_INFINITY

  async function buy(body: Record<string, unknown>): Promise<void> {
    const key = newKey()
    for (;;) {
      const reply = await shop()
        .checkout(key, body)
        .catch(() => undefined)
      if (reply !== undefined) {
        const fault = faultOf(reply)
        if (fault !== null) wrong.push(`${fault}: ${reply.status} ${reply.text}`)
        if (isEnd(reply)) {
          purchases.push({ key, body, end: reply })
          return
        }
      }
      if (Date.now() > deadline) throw new Error(`${key} has no answer for good: ${reply?.status} ${reply?.text}`)
      await delay(50)
    }
  }
  const running = Promise.all(
    Array.from({ length: clients }, async (_, index) => {
      for (let count = index; !ending; count++) await buy(bodies[count % bodies.length] as Record<string, unknown>)
    }),
  )
  // Whoever never ends the load sees its failure all the same.
  running.catch(() => {})
  return {
    purchases,
    wrong,
    async end() {
      ending = true
      deadline = Date.now() + patienceMs
      await running
    },
  }
}

/** What is wrong with an answer, or null: an outage is a 503 that says when to come back, and never a new key. */
function faultOf(reply: Reply): string | null {
  if (isEnd(reply) || reply.status === 202) return null
  if (reply.json?.new_key_safe !== false) return 'a new key is called safe'
  if (!reply.headers.has('retry-after')) return 'no Retry-After'
  const isExpected = reply.status === 503 || reply.json?.code === 'idempotency_key_in_progress'
  return isExpected ? null : 'not an answer of an outage'
}

function isEnd(reply: Reply): boolean {
  return reply.status === 201 || reply.status === 402 || reply.json?.code === 'checkout_canceled'
}
