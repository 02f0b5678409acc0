/** Counts and durations for Prometheus. A registry per service, so that several can run in one process. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

export interface Figure {
  name: string
  help: string
  values: { labels: Record<string, string>; value: number }[]
}

export class Metrics {
  readonly #registry = new Registry()
  readonly #requests = new Counter({
    name: 'checkout_requests_total',
    help: 'Answered requests. `code` is the problem code of a refusal; `replayed` is true for an answer given again.',
    labelNames: ['method', 'route', 'status', 'code', 'replayed'],
    registers: [this.#registry],
  })
  readonly #requestSeconds = new Histogram({
    name: 'checkout_request_seconds',
    help: 'From the request line to the end of the answer.',
    labelNames: ['method', 'route'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20],
    registers: [this.#registry],
  })
  readonly #providerCalls = new Counter({
    name: 'checkout_provider_calls_total',
    help: 'Calls to the payment provider by what they brought.',
    labelNames: ['operation', 'outcome', 'replayed'],
    registers: [this.#registry],
  })
  readonly #providerSeconds = new Histogram({
    name: 'checkout_provider_call_seconds',
    help: 'Calls to the payment provider.',
    labelNames: ['operation'],
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8],
    registers: [this.#registry],
  })
  readonly #settlements = new Counter({
    name: 'checkout_settlements_total',
    help: 'Decisions about orders. `applied` is false where the order had moved on before.',
    labelNames: ['to', 'cause', 'applied'],
    registers: [this.#registry],
  })
  readonly #gauges = new Map<string, Gauge>()

  constructor() {
    collectDefaultMetrics({ register: this.#registry })
  }

  request(
    labels: { method: string; route: string; status: number; code: string; replayed: boolean },
    ms: number,
  ): void {
    const { method, route } = labels
    this.#requests.inc({ ...labels, status: String(labels.status), replayed: String(labels.replayed) })
    this.#requestSeconds.observe({ method, route }, ms / 1000)
  }

  providerCall(operation: string, outcome: string, replayed: boolean, ms: number): void {
    this.#providerCalls.inc({ operation, outcome, replayed: String(replayed) })
    this.#providerSeconds.observe({ operation }, ms / 1000)
  }

  settlement(to: string, cause: string, applied: boolean): void {
    this.#settlements.inc({ to, cause, applied: String(applied) })
  }

  /** The Prometheus text, with figures that are read for this scrape. */
  async text(figures: readonly Figure[]): Promise<string> {
    for (const { name, help, values } of figures) {
      let gauge = this.#gauges.get(name)
      if (gauge === undefined) {
        const labelNames = Object.keys(values[0]?.labels ?? {})
        if (values.length === 0) continue
        gauge = new Gauge({ name, help, labelNames, registers: [this.#registry] })
        this.#gauges.set(name, gauge)
      }
      gauge.reset()
      for (const { labels, value } of values) gauge.set(labels, value)
    }
    return this.#registry.metrics()
  }

  get contentType(): string {
    return this.#registry.contentType
  }
}
