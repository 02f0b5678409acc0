/** Counts and durations for Prometheus. A registry per service, so that several can run in one process. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

/** What is read for a scrape. */
export interface Figure {
  name: string
  help: string
  label: string
  values: { of: string; value: number }[]
}

/** A state of this process, looked at when it is asked for. */
export interface LiveGauge {
  name: string
  help: string
  label: string
  read(): Record<string, number>
}

const notificationResults = ['accepted', 'ignored', 'duplicate', 'signature_invalid', 'unreadable'] as const

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
  readonly #providerAlerts = new Counter({
    name: 'checkout_provider_alerts_total',
    help: 'Calls that the provider refused for a reason which only people can mend, such as a key that is no longer valid.',
    labelNames: ['reason'],
    registers: [this.#registry],
  })
  readonly #waits = new Counter({
    name: 'checkout_waits_total',
    help: 'Requests that waited for another with their key: in this process, or for one that another process runs.',
    labelNames: ['for'],
    registers: [this.#registry],
  })
  readonly #notifications = new Counter({
    name: 'checkout_notifications_total',
    help: "The provider's notifications, by what was done with them on receipt.",
    labelNames: ['result'],
    registers: [this.#registry],
  })
  readonly #groupSizes = new Histogram({
    name: 'checkout_group_size',
    help: 'How many claims or settles shared a statement and a commit.',
    labelNames: ['step'],
    buckets: [1, 2, 4, 8, 16, 32, 64],
    registers: [this.#registry],
  })
  readonly #jobRuns = new Counter({
    name: 'checkout_job_runs_total',
    help: 'Runs of jobs by how they ended.',
    labelNames: ['topic', 'result'],
    registers: [this.#registry],
  })
  readonly #workerRuns = new Counter({
    name: 'checkout_worker_runs_total',
    help: 'Looks of the workers for something to do.',
    labelNames: ['worker', 'failed'],
    registers: [this.#registry],
  })
  readonly #databaseUp = new Gauge({
    name: 'checkout_database_up',
    help: 'Whether the database answered this scrape; what is read from it is missing otherwise.',
    registers: [this.#registry],
  })
  readonly #figures = new Map<string, Gauge>()

  constructor() {
    collectDefaultMetrics({ register: this.#registry })
    // A count that begins with its first event has not increased by it: what alerts look for has to be there before.
    for (const reason of ['unauthorized', 'forbidden']) this.#providerAlerts.inc({ reason }, 0)
    for (const whom of ['twin', 'other_process']) this.#waits.inc({ for: whom }, 0)
    for (const result of notificationResults) this.#notifications.inc({ result }, 0)
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

  providerAlert(reason: string): void {
    this.#providerAlerts.inc({ reason })
  }

  waited(whom: 'twin' | 'other_process'): void {
    this.#waits.inc({ for: whom })
  }

  notification(result: (typeof notificationResults)[number]): void {
    this.#notifications.inc({ result })
  }

  group(step: 'claim' | 'settle', size: number): void {
    this.#groupSizes.observe({ step }, size)
  }

  jobRun(topic: string, result: 'done' | 'later' | 'failed' | 'dead' | 'lease_lost', count = 1): void {
    this.#jobRuns.inc({ topic, result }, count)
  }

  workerRun(worker: string, failed: boolean): void {
    this.#workerRuns.inc({ worker, failed: String(failed) })
    this.#workerRuns.inc({ worker, failed: String(!failed) }, 0)
  }

  /** Shows a state of this process from now on. */
  show({ name, help, label, read }: LiveGauge): void {
    new Gauge({
      name,
      help,
      labelNames: [label],
      registers: [this.#registry],
      collect() {
        for (const [of, value] of Object.entries(read())) this.set({ [label]: of }, value)
      },
    })
  }

  /** The Prometheus text, with figures that were read for this scrape; null where they could not be read. */
  async text(figures: readonly Figure[] | null): Promise<string> {
    this.#databaseUp.set(figures === null ? 0 : 1)
    // What is not known now must not look as if it were.
    for (const gauge of this.#figures.values()) gauge.reset()
    for (const { name, help, label, values } of figures ?? []) {
      const gauge =
        this.#figures.get(name) ?? new Gauge({ name, help, labelNames: [label], registers: [this.#registry] })
      this.#figures.set(name, gauge)
      for (const { of, value } of values) gauge.set({ [label]: of }, value)
    }
    return this.#registry.metrics()
  }

  get contentType(): string {
    return this.#registry.contentType
  }
}
