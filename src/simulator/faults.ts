import { type Random, seededRandom } from './random.ts'

/** `latency` delays, `drop_before` closes the connection without an effect, `drop_after` and `hang` have the effect and
 * lose the answer, `error_before` and `error_after` answer 500 without and with the effect, `rate_limit` answers 429. */
export const faultNames = [
  'latency',
  'drop_before',
  'drop_after',
  'error_before',
  'error_after',
  'rate_limit',
  'hang',
] as const
type FaultName = (typeof faultNames)[number]

export type FaultRule = {
  /** `*` for every method. */
  method: string
  /** Prefix of the path, as in `/v1/refunds`. */
  path: string
  fault: FaultName
  probability?: number
  /** How many requests it strikes before it is used up; without end where it is absent. */
  times?: number
  /** Waits so long before the effect; goes with every fault. */
  latency_ms?: number
}

export type Fate = { latencyMs: number; fault: Exclude<FaultName, 'latency'> | undefined }

const defaultLatencyMs = 1000

/** The rules by which the API misbehaves. */
export class Faults {
  #rules: FaultRule[] = []
  #random: Random = seededRandom(1)

  /** Adds rules after the present ones. `seed` restarts the random numbers that probabilities are compared with. */
  add(rules: readonly FaultRule[], seed?: number): void {
    if (seed !== undefined) this.#random = seededRandom(seed)
    this.#rules.push(...rules.map((rule) => ({ ...rule })))
  }

  clear(): void {
    this.#rules = []
  }

  get rules(): readonly FaultRule[] {
    return this.#rules
  }

  /** What befalls this request: the latencies of all rules that strike, and the first other fault. A request that
   * `executes` nothing, being a replay, cannot fail inside, so errors pass it by. */
  pick(method: string, path: string, executes: boolean): Fate {
    const fate: Fate = { latencyMs: 0, fault: undefined }
    if (this.#rules.length === 0) return fate
    for (const rule of this.#rules) {
      if (rule.method !== '*' && rule.method.toUpperCase() !== method) continue
      if (!path.startsWith(rule.path)) continue
      if (!executes && (rule.fault === 'error_before' || rule.fault === 'error_after')) continue
      if (rule.fault !== 'latency' && fate.fault !== undefined) continue
      if (this.#random() >= (rule.probability ?? 1)) continue
      if (rule.times !== undefined) rule.times--
      fate.latencyMs += rule.latency_ms ?? (rule.fault === 'latency' ? defaultLatencyMs : 0)
      if (rule.fault !== 'latency') fate.fault = rule.fault
    }
    this.#rules = this.#rules.filter((rule) => rule.times !== 0)
    return fate
  }
}
