/** A collector of spans: takes what OpenTelemetry's exporter posts (OTLP over HTTP, as JSON). */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface CollectedSpan {
  name: string
  traceId: string
  spanId: string
  parentSpanId: string | undefined
  /** https://opentelemetry.io/docs/specs/otel/trace/api/#spankind as in OTLP: 2 server, 3 client, 5 consumer. */
  kind: number
  failed: boolean
  startMs: number
  endMs: number
  attributes: Record<string, string | number | boolean>
}

export interface Collector {
  /** For OTEL_EXPORTER_OTLP_ENDPOINT. */
  url: string
  spans(): CollectedSpan[]
  /** Everything that arrived, as it came, request headers included. */
  raw(): string[]
  close(): Promise<void>
}

interface OtlpSpan {
  name: string
  traceId: string
  spanId: string
  parentSpanId?: string
  kind: number
  status?: { code?: number }
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes: { key: string; value: Record<string, string | number | boolean> }[]
}
interface OtlpRequest {
  resourceSpans: { scopeSpans: { spans: OtlpSpan[] }[] }[]
}

export async function startCollector(): Promise<Collector> {
  const raw: string[] = []
  const spans: CollectedSpan[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks).toString('utf8')
    raw.push(`${request.method} ${request.url} ${JSON.stringify(request.headers)}\n${body}`)
    if (request.url === '/v1/traces') spans.push(...read(JSON.parse(body) as OtlpRequest))
    response.setHeader('content-type', 'application/json').end('{}')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans: () => [...spans],
    raw: () => [...raw],
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

function read({ resourceSpans }: OtlpRequest): CollectedSpan[] {
  return resourceSpans
    .flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
    .map(({ name, traceId, spanId, parentSpanId, kind, status, ...span }) => ({
      name,
      traceId,
      spanId,
      parentSpanId,
      kind,
      failed: status?.code === 2,
      startMs: Number(span.startTimeUnixNano) / 1e6,
      endMs: Number(span.endTimeUnixNano) / 1e6,
      // https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding: 64-bit integers may come as texts.
      attributes: Object.fromEntries(
        span.attributes.map(({ key, value }) => [
          key,
          'intValue' in value ? Number(value.intValue) : (Object.values(value)[0] as string),
        ]),
      ),
    }))
}
