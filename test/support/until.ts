import { setTimeout as delay } from 'node:timers/promises'

export type UntilOptions = {
  /** Default 30000 ms: a limit for a broken program, not a measure of a slow one. */
  timeoutMs?: number
  /** Default 20 ms. */
  everyMs?: number
  /** What is waited for, for the message. */
  what?: string
}

/** Calls `probe` until it returns something truthy, and returns that. Throws at the deadline, with what it returned or
 * threw last. */
export async function until<Value>(
  probe: () => Value | Promise<Value>,
  { timeoutMs = 30_000, everyMs = 20, what = String(probe) }: UntilOptions = {},
): Promise<Exclude<Value, undefined | null | false | 0 | ''>> {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    let value: Value | undefined
    let error: unknown
    try {
      value = await probe()
      if (value) return value as Exclude<Value, undefined | null | false | 0 | ''>
    } catch (thrown) {
      error = thrown
    }
    if (Date.now() >= deadline) {
      const last = error === undefined ? `last value: ${JSON.stringify(value)}` : `last error: ${String(error)}`
      throw new Error(`not within ${timeoutMs} ms: ${what} (${last})`, { cause: error })
    }
    await delay(everyMs)
  }
}
