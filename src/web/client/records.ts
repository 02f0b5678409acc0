/**
 * What the browser keeps of an attempt, shared by all tabs of the storefront: the key, the request while it is unsettled,
 * and afterwards how it ended. No card data; the customer's data only inside the request, and only while a repeat may need it.
 */
import type { CheckoutBody } from './contract.ts'
import type { End } from './outcome.ts'

export type AttemptStorage = Pick<Storage, 'getItem' | 'setItem' | 'removeItem' | 'key' | 'length'>

export interface AttemptRecord {
  cart: string
  /** Idempotency key. */
  key: string
  /** Unix time, ms. */
  madeAt: number
  /** What was sent and may have had an effect: a repeat sends the same. */
  sent?: { body: CheckoutBody; at: number }
  /** What the page wants to show of it while it is unsettled and once it is paid. Never sent. */
  memo?: unknown
  end?: End
}

const prefix = 'checkout.attempt.'
/** The answer of an older attempt is hardly looked for, and its customer's data must not lie about for ever. */
const keptForMs = 24 * 3_600_000
/** For another tab to write what it is about to write, where the browser has no locks. */
const settlingMs = 60

export class AttemptRecords {
  readonly #storage: AttemptStorage

  constructor(storage: AttemptStorage) {
    this.#storage = storage
    this.#forgetOld()
  }

  read(cart: string): AttemptRecord | undefined {
    return parse(this.#storage.getItem(prefix + cart))
  }

  /**
   * Changes the record by what `change` makes of it, one tab at a time: `undefined` removes it. Resolves with what stands
   * there then. Rejects where the storage takes nothing; then nothing may be sent, since a reload would forget the key.
   */
  async update(
    cart: string,
    change: (record: AttemptRecord | undefined) => AttemptRecord | undefined,
  ): Promise<AttemptRecord | undefined> {
    const name = prefix + cart
    const step = () => {
      const before = this.read(cart)
      const after = change(before)
      if (after === undefined) this.#storage.removeItem(name)
      else if (after !== before) this.#storage.setItem(name, JSON.stringify(after))
      return this.read(cart)
    }
    // https://www.w3.org/TR/web-locks/; only where the page came over TLS or from this machine.
    const locks: LockManager | undefined = globalThis.navigator?.locks
    if (locks !== undefined) return locks.request(name, step)
    // Without them, the last to write wins, and all go on with what stands there in the end.
    step()
    await new Promise((resolve) => setTimeout(resolve, settlingMs))
    return this.read(cart)
  }

  /** Tells of every change that another tab makes. Returns what ends that. */
  watch(cart: string, listener: () => void): () => void {
    const heard = (event: StorageEvent) => {
      if (event.key === prefix + cart || event.key === null) listener()
    }
    globalThis.addEventListener('storage', heard)
    return () => globalThis.removeEventListener('storage', heard)
  }

  #forgetOld(): void {
    const names = Array.from({ length: this.#storage.length }, (_none, index) => this.#storage.key(index))
    for (const name of names) {
      if (name === null || !name.startsWith(prefix)) continue
      const record = parse(this.#storage.getItem(name))
      if (record === undefined || Date.now() - record.madeAt > keptForMs) this.#storage.removeItem(name)
    }
  }
}

function parse(text: string | null): AttemptRecord | undefined {
  try {
    const record: unknown = JSON.parse(text ?? 'null')
    return isRecord(record) ? record : undefined
  } catch {
    return undefined
  }
}

/** What somebody else has written there is no attempt: nothing could be sent again with it. */
function isRecord(it: unknown): it is AttemptRecord {
  const { cart, key, madeAt, sent, end } = (it ?? {}) as Record<string, unknown>
  return (
    typeof cart === 'string' &&
    typeof key === 'string' &&
    typeof madeAt === 'number' &&
    (sent === undefined || isObject((sent as { body?: unknown } | null)?.body)) &&
    (end === undefined || isObject(end))
  )
}

function isObject(it: unknown): boolean {
  return typeof it === 'object' && it !== null
}

/** Shared by the tabs, and there after the browser was closed; where the browser forbids it, for as long as the page lives. */
export function browserStorage(): AttemptStorage {
  try {
    const { localStorage } = globalThis
    localStorage.setItem(prefix, '')
    localStorage.removeItem(prefix)
    return localStorage
  } catch {
    return memoryStorage()
  }
}

function memoryStorage(): AttemptStorage {
  const items = new Map<string, string>()
  return {
    getItem: (name) => items.get(name) ?? null,
    setItem: (name, value) => void items.set(name, value),
    removeItem: (name) => void items.delete(name),
    key: (index) => [...items.keys()][index] ?? null,
    get length() {
      return items.size
    },
  }
}
