/** Counts what came back, by class, with latencies and a timeline. */
import { createHistogram, type RecordableHistogram } from 'node:perf_hooks'

/**
 * - first: a new key's own answer, settled
 * - replay: a settled answer given again
 * - wait: the same, for one that was posted before the first answer was there
 * - unknown: 202, the attempt is open
 * - conflict: the key was used with another request
 * - in_progress: still running after the wait limit
 * - expired: the key was used and its stored answer is past the retention
 * - refused: rejected before any effect, such as out of stock
 * - unavailable: 503 or 429, the same key is safe
 * - error: any other 5xx
 * - unexpected: anything else
 * - lost: no answer came
 */
export const classes = [
  'first',
  'replay',
  'wait',
  'unknown',
  'conflict',
  'in_progress',
  'expired',
  'refused',
  'unavailable',
  'error',
  'unexpected',
  'lost',
] as const
export type AnswerClass = (typeof classes)[number]

export interface ClassFigures {
  class: AnswerClass
  count: number
  perSecond: number
  p50Ms: number
  p90Ms: number
  p99Ms: number
  maxMs: number
}

export interface Second {
  second: number
  counts: Partial<Record<AnswerClass, number>>
  /** Of first attempts; 0 where there was none. */
  p50Ms: number
  p99Ms: number
}

interface OpenSecond {
  counts: Partial<Record<AnswerClass, number>>
  firstMs: number[]
}

export class Tally {
  readonly #byClass = new Map<AnswerClass, RecordableHistogram>()
  readonly #seconds: OpenSecond[] = []
  readonly #statuses = new Map<string, number>()
  #startedMs = performance.now()

  start(): void {
    this.#startedMs = performance.now()
  }

  get elapsedSeconds(): number {
    return (performance.now() - this.#startedMs) / 1000
  }

  /** `what` names the answer more closely: its status, and code where it is a problem. */
  record(answerClass: AnswerClass, what: string, ms: number): void {
    let histogram = this.#byClass.get(answerClass)
    if (histogram === undefined) {
      histogram = createHistogram()
      this.#byClass.set(answerClass, histogram)
    }
    histogram.record(Math.max(1, Math.round(ms * 1000)))
    this.#statuses.set(what, (this.#statuses.get(what) ?? 0) + 1)
    const second = this.#second(Math.floor(this.elapsedSeconds))
    second.counts[answerClass] = (second.counts[answerClass] ?? 0) + 1
    if (answerClass === 'first') second.firstMs.push(ms)
  }

  figures(seconds: number): ClassFigures[] {
    return classes.flatMap((each) => {
      const histogram = this.#byClass.get(each)
      if (histogram === undefined) return []
      const ms = (microseconds: number) => Math.round(microseconds / 10) / 100
      return [
        {
          class: each,
          count: histogram.count,
          perSecond: Math.round((histogram.count / seconds) * 10) / 10,
          p50Ms: ms(histogram.percentile(50)),
          p90Ms: ms(histogram.percentile(90)),
          p99Ms: ms(histogram.percentile(99)),
          maxMs: ms(histogram.max),
        },
      ]
    })
  }

  /** How it stands, in one line. */
  progress(): string {
    const seconds = Math.floor(this.elapsedSeconds)
    const last = this.#seconds[seconds - 1]
    const perSecond = Object.values(last?.counts ?? {}).reduce((sum, count) => sum + count, 0)
    const counts = classes.flatMap((each) => {
      const count = this.#byClass.get(each)?.count ?? 0
      return count > 0 ? [`${each} ${count}`] : []
    })
    return `${seconds} s   ${perSecond}/s   ${counts.join('   ')}`
  }

  timeline(): Second[] {
    return this.#seconds.map(({ counts, firstMs }, second) => {
      const sorted = [...firstMs].sort((a, b) => a - b)
      const at = (share: number) => Math.round((sorted[Math.floor(sorted.length * share)] ?? 0) * 10) / 10
      return { second, counts, p50Ms: at(0.5), p99Ms: at(0.99) }
    })
  }

  /** How often each status, with its code, was answered. */
  get statuses(): Record<string, number> {
    return Object.fromEntries([...this.#statuses].sort(([a], [b]) => (a < b ? -1 : 1)))
  }

  #second(index: number): OpenSecond {
    while (this.#seconds.length <= index) this.#seconds.push({ counts: {}, firstMs: [] })
    return this.#seconds[index] as OpenSecond
  }
}
