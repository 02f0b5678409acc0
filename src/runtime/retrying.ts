import { setTimeout as delay } from 'node:timers/promises'
import { isDatabaseUnavailable, isRetryableTransaction } from './database.ts'

const attemptsMax = 6
/** A database that does not answer for so long will not in a moment; whoever waits is told so, ms. */
const patienceMs = 5000

/**
 * Runs one statement again after a deadlock, a serialization failure or a lost connection. The statement must be safe to
 * repeat after its commit: a lost answer may hide one.
 */
export async function retrying<Result>(statement: () => Promise<Result>): Promise<Result> {
  const startedMs = performance.now()
  for (let attempt = 1; ; attempt++) {
    try {
      return await statement()
    } catch (error) {
      const isBrief = attempt < 3 && performance.now() - startedMs < patienceMs
      const again = isRetryableTransaction(error) || (isBrief && isDatabaseUnavailable(error))
      if (attempt >= attemptsMax || !again) throw error
      await delay(Math.random() * Math.min(10 * 2 ** attempt, 320))
    }
  }
}
