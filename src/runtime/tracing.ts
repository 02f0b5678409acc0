/**
 * Traces: what belongs together is told by the W3C trace context (https://www.w3.org/TR/trace-context/), which a request
 * brings as `traceparent`, goes along with everything that is awaited for it, and is kept with the jobs that it leaves.
 *
 * Spans are made only where an endpoint for them is set; OpenTelemetry is not even loaded otherwise. The trace's id is in the
 * log lines in any case.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Logger } from 'pino'

/** Which trace, which span of it, and whether its caller records it. */
export interface TraceContext {
  traceId: string
  spanId: string
  sampled: boolean
  /** It came from another process. */
  remote?: true
}

/** Ids, words of a vocabulary, numbers: never a person's data, never a key. */
export type Attributes = Record<string, string | number | boolean | null | undefined>

export interface Span {
  /** What belongs to it runs `within` this. Undefined where nothing is traced. */
  readonly context: TraceContext | undefined
  /** Ends it, with what is known by then, which is asked for only where it is recorded. `failed`: it brought an error. */
  end(attributesOf?: () => Attributes, failed?: boolean): void
}

interface Done {
  startedAt: Date
  durationMs: number
  failed?: boolean
}

export interface Tracing {
  /** Begins the span of a request or a job, below what brought it. */
  begin(kind: 'server' | 'consumer' | 'internal', name: string, attributes?: Attributes, parent?: TraceContext): Span
  /** The function with a span around each call, below the current one. What it costs where nothing is traced: nothing. */
  around<Item, Result>(
    name: string,
    call: (item: Item) => Promise<Result>,
    attributesOf: (item: Item, result: Result) => Attributes,
  ): (item: Item) => Promise<Result>
  /** A call to somebody else that has ended, below the current span. */
  record(name: string, done: Done, attributes: Attributes): void
  /** Sends what has not been sent yet; waits a few seconds for that at most. */
  stop(): Promise<void>
}

export interface TracingOptions {
  /** Of the collector: spans are posted to `<endpoint>/v1/traces` (https://opentelemetry.io/docs/specs/otlp/#otlphttp). */
  endpoint: string
  /** Sent along, for the collector to know us. */
  headers: Record<string, string>
  serviceName: string
  /** The part of all traces that is recorded, 0 to 1. */
  ratio: number
}

const current = new AsyncLocalStorage<TraceContext>()

/** Runs `work`, and all that it starts, as a part of the trace. */
export function within<Result>(context: TraceContext | undefined, work: () => Result): Result {
  return context === undefined ? work() : current.run(context, work)
}

export function currentTrace(): TraceContext | undefined {
  return current.getStore()
}

/** A begun span's end, whatever becomes of `work`. */
export async function spanning<Result>(span: Span, work: () => Promise<Result>): Promise<Result> {
  let failed = true
  try {
    const result = await within(span.context, work)
    failed = false
    return result
  } finally {
    span.end(undefined, failed)
  }
}

/** https://www.w3.org/TR/trace-context/#traceparent-header. Undefined for what is none: it must not keep a request from
 * being served. A later version may have more behind it. */
export function parseTraceparent(text: unknown): TraceContext | undefined {
  if (typeof text !== 'string') return undefined
  const [, version, traceId, spanId, flags, more] =
    /^(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(-.*)?$/.exec(text) ?? []
  if (traceId === undefined || spanId === undefined || (version === '00' && more !== undefined)) return undefined
  return { traceId, spanId, sampled: (Number.parseInt(flags ?? '0', 16) & 1) === 1, remote: true }
}

function traceparentOf({ traceId, spanId, sampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`
}

/** The job with the current trace in its payload, where there is one and it has none yet. */
export function carryingTrace<Job extends { payload: Record<string, unknown> }>(job: Job): Job {
  const context = current.getStore()
  return context === undefined || 'traceparent' in job.payload
    ? job
    : { ...job, payload: leaving(job.payload, context) }
}

/** The payload with this trace in it. */
export function leaving(payload: Record<string, unknown>, context: TraceContext | undefined): Record<string, unknown> {
  return context === undefined ? payload : { ...payload, traceparent: traceparentOf(context) }
}

/** No spans; the caller's trace is all there is. */
export const untraced: Tracing = {
  begin: (_kind, _name, _attributes, parent) => ({ context: parent, end() {} }),
  around: (_name, call) => call,
  record() {},
  async stop() {},
}

/** Spans for an endpoint. Loads OpenTelemetry. */
export async function startTracing(options: TracingOptions, log: Pick<Logger, 'warn'>): Promise<Tracing> {
  const { openTelemetry } = await import('./open-telemetry.ts')
  return openTelemetry(options, log)
}
