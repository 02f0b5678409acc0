/** One request to the service and what became of it. Never retries. */
import { parseRetryAfterMs } from './backoff.ts'

export interface Service {
  /** Of the service, such as `https://checkout.shop.example`; '' where it serves the page itself. */
  baseUrl: string
  /** A key of the role `storefront`. */
  publishableKey: string
  /** Instead of the browser's own. */
  fetch?: typeof fetch
  /** Told of every request when it is sent and when it has ended: for a log, or to show what repeats. */
  onWire?: (event: WireEvent) => void
}

export interface WireEvent {
  /** The same for a request and its end. */
  id: number
  method: string
  path: string
  /** Idempotency key. */
  key: string | undefined
  /** Absent while it is under way. */
  reply?: Reply
}

export type Reply =
  | {
      kind: 'answered'
      status: number
      /** Undefined where it was no JSON: a proxy's page, say. */
      json: unknown
      replayed: boolean
      retryAfterMs: number | null
    }
  /** No answer, or none that was whole: nobody knows what it did. */
  | { kind: 'lost' }

/** Longer than a repeat may wait for the first request at the service (18 s by default). */
const patienceMs = 30_000

let sent = 0

/** Never rejects for want of an answer; rejects with the signal's reason when that is aborted. */
export async function exchange(
  service: Service,
  request: { method: 'GET' | 'POST'; path: string; key?: string; body?: unknown },
  signal: AbortSignal | undefined,
): Promise<Reply> {
  const { method, path, key, body } = request
  const event = { id: ++sent, method, path, key }
  service.onWire?.(event)
  const reply = await answerTo(service, request, {
    method,
    headers: {
      authorization: `Bearer ${service.publishableKey}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(key === undefined || method === 'GET' ? {} : { 'idempotency-key': key }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    cache: 'no-store',
    credentials: 'omit',
    signal: AbortSignal.any([AbortSignal.timeout(patienceMs), ...(signal === undefined ? [] : [signal])]),
  })
  service.onWire?.({ ...event, reply })
  signal?.throwIfAborted()
  return reply
}

async function answerTo(service: Service, { path }: { path: string }, init: RequestInit): Promise<Reply> {
  // Called as a plain function: the browser's own insists on it.
  const send = service.fetch ?? globalThis.fetch.bind(globalThis)
  try {
    const response = await send(service.baseUrl + path, init)
    const text = await response.text()
    return {
      kind: 'answered',
      status: response.status,
      json: parse(text),
      replayed: response.headers.get('idempotent-replayed') === 'true',
      retryAfterMs: parseRetryAfterMs(response.headers.get('retry-after')),
    }
  } catch {
    return { kind: 'lost' }
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
