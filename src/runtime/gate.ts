/** Lets background work call outside only at a bounded rate, and behind those who wait in person. */
import { setTimeout as delay } from 'node:timers/promises'

interface GateOptions {
  /** Background calls at most. */
  perSecond: number
  /** With more customers' calls under way than this, background calls wait. */
  customersMax: number
  /** But never longer than this, so that recovery goes on under load, ms. */
  patienceMs: number
}

export class Gate {
  readonly #options: GateOptions
  #customers = 0
  #nextTurnMs = 0

  constructor(options: GateOptions) {
    this.#options = options
  }

  /** Runs a call for somebody who waits. */
  async customer<Result>(call: () => Promise<Result>): Promise<Result> {
    this.#customers += 1
    try {
      return await call()
    } finally {
      this.#customers -= 1
    }
  }

  /** Resolves when a background call may start. */
  async turn(): Promise<void> {
    const { perSecond, customersMax, patienceMs } = this.#options
    const now = performance.now()
    const turnMs = Math.max(now, this.#nextTurnMs)
    this.#nextTurnMs = turnMs + 1000 / perSecond
    if (turnMs > now) await delay(turnMs - now)
    const until = performance.now() + patienceMs
    while (this.#customers > customersMax && performance.now() < until) await delay(20)
  }
}
