/** Spans for a collector, over OTLP/HTTP. Loaded only where one is set. */
import { randomUUID } from 'node:crypto'
import {
  type Context,
  type Span as OtelSpan,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { Logger } from 'pino'
import {
  type Attributes,
  currentTrace,
  type Span,
  type TraceContext,
  type Tracing,
  type TracingOptions,
  within,
} from './tracing.ts'

/** A collector that hangs must not hold up the end of the process for longer. */
const exportMs = 5000
/** A collector that is away is told once in this time, ms. */
const warnEveryMs = 60_000

const kinds = { server: SpanKind.SERVER, consumer: SpanKind.CONSUMER, internal: SpanKind.INTERNAL }

export function openTelemetry(options: TracingOptions, log: Pick<Logger, 'warn'>): Tracing {
  const exporter = new OTLPTraceExporter({
    url: `${options.endpoint.replace(/\/+$/, '')}/v1/traces`,
    headers: options.headers,
    timeoutMillis: exportMs,
  })
  // Callers are not ours: one that says "record this" does not decide how much is recorded. The choice is made by the trace's
  // id, so all processes make the same.
  const ours = new TraceIdRatioBasedSampler(options.ratio)
  const provider = new TracerProvider({
    resource: resourceFromAttributes({
      'service.name': options.serviceName,
      'service.instance.id': randomUUID(),
    }),
    sampler: new ParentBasedSampler({ root: ours, remoteParentSampled: ours }),
    spanProcessors: [new BatchSpanProcessor({ exporter: telling(exporter, log), exportTimeoutMillis: exportMs })],
  })
  const tracer = provider.getTracer('checkout')

  return {
    begin(kind, name, attributes = {}, parent) {
      return spanOf(tracer.startSpan(name, { kind: kinds[kind], attributes: known(attributes) }, below(parent)))
    },
    around(name, call, attributesOf) {
      return async (item) => {
        const span = spanOf(tracer.startSpan(name, {}, below(currentTrace())))
        try {
          const result = await within(span.context, () => call(item))
          span.end(() => attributesOf(item, result))
          return result
        } catch (error) {
          span.end(undefined, true)
          throw error
        }
      }
    },
    record(name, { startedAt, durationMs, failed }, attributes) {
      const span = tracer.startSpan(
        name,
        { kind: SpanKind.CLIENT, startTime: startedAt, attributes: known(attributes) },
        below(currentTrace()),
      )
      if (failed === true) span.setStatus({ code: SpanStatusCode.ERROR })
      span.end(startedAt.getTime() + durationMs)
    },
    // What could not be sent has been told.
    stop: () => provider.shutdown().catch(() => {}),
  }
}

/** The parent is named by its ids alone: no span of ours is handed around. */
function below(parent: TraceContext | undefined): Context {
  if (parent === undefined) return ROOT_CONTEXT
  const { traceId, spanId, sampled, remote = false } = parent
  const traceFlags = sampled ? TraceFlags.SAMPLED : TraceFlags.NONE
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: remote })
}

function spanOf(span: OtelSpan): Span {
  const { traceId, spanId, traceFlags } = span.spanContext()
  return {
    context: { traceId, spanId, sampled: (traceFlags & TraceFlags.SAMPLED) !== 0 },
    end(attributesOf, failed = false) {
      if (attributesOf !== undefined && span.isRecording()) span.setAttributes(known(attributesOf()))
      if (failed) span.setStatus({ code: SpanStatusCode.ERROR })
      span.end()
    },
  }
}

function known(attributes: Attributes): Record<string, string | number | boolean> {
  const entries = Object.entries(attributes).flatMap(([name, value]) =>
    value === undefined || value === null ? [] : [[name, value] as const],
  )
  return Object.fromEntries(entries)
}

/** The exporter, saying in our log what keeps it from its work: OpenTelemetry itself keeps silent. */
function telling(exporter: SpanExporter, log: Pick<Logger, 'warn'>): SpanExporter {
  let warnedMs = Number.NEGATIVE_INFINITY
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        if (result.error !== undefined && performance.now() - warnedMs > warnEveryMs) {
          warnedMs = performance.now()
          log.warn({ err: result.error, spans: spans.length }, 'spans could not be sent and are lost')
        }
        done(result)
      })
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
  }
}
