import http from 'node:http'
import https from 'node:https'
import type Stripe from 'stripe'
import { codeOf } from '../runtime/error-code.ts'

/** Idle connections are closed after this time: a server that closes first can cut off a request that is on its way. */
const IDLE_MS = 30_000
/** A page of 100 payments is below 1 MB. */
const ANSWER_BYTES_MAX = 16 * 1024 * 1024

type Reason = 'timeout' | 'no_time' | 'connection_refused' | 'dns_failure' | 'connection_lost' | 'unreadable_answer'
type Head = { status: number; headers: http.IncomingHttpHeaders }

/** No answer that can be read arrived. `connection_refused`, `dns_failure` and `no_time` (no connection of ours became
 * free in time) mean that not a byte was sent; behind every other reason the request may have had its effect. */
export class NoAnswer extends Error {
  override name = 'NoAnswer'
  readonly reason: Reason
  /** Node's error code. It must not be called `code`: a request whose error has the code ECONNRESET or EPIPE is sent
   * again by the SDK itself, its own retries turned off or not, and nobody would know of that call. */
  readonly networkCode: string | null
  /** Where an answer began. */
  readonly head: Head | null

  constructor(reason: Reason, networkCode: string | null = null, head: Head | null = null) {
    super(networkCode === null ? reason : `${reason} (${networkCode})`)
    this.reason = reason
    this.networkCode = networkCode
    this.head = head
  }
}

/**
 * Carries the SDK's requests. It differs from the SDK's own client in what a payment depends on: the time limit holds
 * for the whole call, however the bytes trickle; a lost connection is told and not tried again; and an answer is only
 * handed to the SDK if it is a JSON object (on others the SDK's promise may never settle).
 */
export class StripeHttpClient implements Stripe.HttpClient {
  readonly #agent: http.Agent
  readonly #request: typeof http.request

  constructor(protocol: 'http' | 'https', maxSockets: number) {
    const options = { keepAlive: true, maxSockets, timeout: IDLE_MS }
    this.#agent = protocol === 'https' ? new https.Agent(options) : new http.Agent(options)
    this.#request = protocol === 'https' ? https.request : http.request
  }

  getClientName(): string {
    return 'node'
  }

  /** Rejects with `NoAnswer`. `timeout` in ms; `protocol` is the constructor's. */
  makeRequest(
    host: string,
    port: string,
    path: string,
    method: string,
    headers: Record<string, string | number | string[]>,
    body: string,
    _protocol: string,
    timeout: number,
  ): Promise<Stripe.HttpClientResponse> {
    return new Promise((resolve, reject) => {
      const request = this.#request({ host, port, path, method, headers, agent: this.#agent })
      let connectionUsed = false
      let head: Head | null = null

      const timer = setTimeout(() => fail(new NoAnswer(connectionUsed ? 'timeout' : 'no_time', null, head)), timeout)
      const fail = (error: NoAnswer) => {
        clearTimeout(timer)
        request.destroy()
        reject(error)
      }
      const lose = (error: unknown) => fail(explain(error, head))

      request.once('socket', () => {
        connectionUsed = true
      })
      request.on('error', lose)
      request.once('response', (response) => {
        const received: Head = { status: response.statusCode ?? 0, headers: response.headers }
        head = received
        const chunks: Buffer[] = []
        let size = 0
        response.on('data', (chunk: Buffer) => {
          size += chunk.length
          if (size > ANSWER_BYTES_MAX) fail(new NoAnswer('unreadable_answer', null, received))
          else chunks.push(chunk)
        })
        response.on('error', lose)
        response.once('close', () => {
          if (!response.complete) lose(null)
        })
        response.once('end', () => {
          if (!response.complete) return
          const answer = parse(Buffer.concat(chunks, size).toString('utf8'), received.status)
          if (answer === undefined) return fail(new NoAnswer('unreadable_answer', null, received))
          clearTimeout(timer)
          resolve(new Answer(received, answer))
        })
      })
      request.end(body === '' ? undefined : body)
    })
  }

  /** Closes every connection. Calls under way are lost, so it comes after them. */
  close(): void {
    this.#agent.destroy()
  }
}

class Answer implements Stripe.HttpClientResponse {
  readonly #head: Head
  readonly #body: object

  constructor(head: Head, body: object) {
    this.#head = head
    this.#body = body
  }

  getStatusCode(): number {
    return this.#head.status
  }

  /** No header that we read can stand twice; Node joins the values of those that do. */
  getHeaders(): Record<string, string> {
    return this.#head.headers as Record<string, string>
  }

  /** What the SDK shows as `lastResponse`. */
  getRawResponse(): { statusCode: number; headers: http.IncomingHttpHeaders } {
    return { statusCode: this.#head.status, headers: this.#head.headers }
  }

  toStream(): never {
    throw new Error('No call of ours streams its answer')
  }

  toJSON(): Promise<object> {
    return Promise.resolve(this.#body)
  }
}

/** The SDK takes any JSON without `error` for a success, whatever the status, so only a 2xx may come without. */
function parse(text: string, status: number): object | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!isObject(value)) return undefined
  const succeeded = status >= 200 && status < 300
  if (succeeded ? 'error' in value : !('error' in value && isObject(value.error))) return undefined
  return value
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** An error of the connection. A name that stands for several addresses fails with one error for each of them. */
function explain(error: unknown, head: Head | null): NoAnswer {
  const parts: unknown[] = error instanceof AggregateError ? error.errors : [error]
  const all = (test: (part: NodeJS.ErrnoException) => boolean) =>
    parts.length > 0 && parts.every((part) => part instanceof Error && test(part))
  const code = codeOf(error) ?? null

  if (head === null && all((part) => part.code === 'ECONNREFUSED' && part.syscall === 'connect')) {
    return new NoAnswer('connection_refused', code)
  }
  if (head === null && all((part) => part.syscall === 'getaddrinfo')) return new NoAnswer('dns_failure', code)
  // HPE_…: Node's HTTP parser, the bytes were no HTTP.
  if (code?.startsWith('HPE_')) return new NoAnswer('unreadable_answer', code, head)
  return new NoAnswer('connection_lost', code, head)
}
