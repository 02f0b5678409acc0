/** A plain HTTP client of the API, as a storefront or a backend would write it. Sends what it is told, also nonsense; every
 * answer is held against the contract. */
import { expectInContract } from './contract.ts'

export const keys = {
  storefront: 'pk_test_demo',
  backend: 'sk_test_demo',
  admin: 'ak_test_demo',
  otherStorefront: 'pk_test_other',
  otherBackend: 'sk_test_other',
} as const

export interface Reply {
  status: number
  headers: Headers
  /** As sent, byte for byte. */
  text: string
  /** Parsed; undefined where the body is no JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read whatever arrives
  json: any
  replayed: boolean
}

export class Client {
  readonly url: string
  readonly key: string

  constructor(url: string, key: string) {
    this.url = url
    this.key = key
  }

  withKey(key: string): Client {
    return new Client(this.url, key)
  }

  at(url: string | undefined): Client {
    return new Client(url ?? '', this.key)
  }

  get(path: string): Promise<Reply> {
    return this.send('GET', path)
  }

  post(path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Reply> {
    return this.send('POST', path, body, headers)
  }

  put(path: string, body: unknown): Promise<Reply> {
    return this.send('PUT', path, body)
  }

  delete(path: string): Promise<Reply> {
    return this.send('DELETE', path)
  }

  /** `POST /v1/checkouts` with a key. */
  checkout(key: string, body: Record<string, unknown> = cart(), headers: Record<string, string> = {}): Promise<Reply> {
    return this.post('/v1/checkouts', body, { 'idempotency-key': key, ...headers })
  }

  async send(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Reply> {
    const raw = typeof body === 'string' || body instanceof Uint8Array
    const response = await fetch(this.url + path, {
      method,
      headers: {
        authorization: `Bearer ${this.key}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: (raw ? body : JSON.stringify(body)) as string }),
    })
    const text = await response.text()
    // The path as it went out: `fetch` normalises it.
    expectInContract({
      method,
      path: new URL(this.url + path).pathname,
      status: response.status,
      headers: response.headers,
      text,
    })
    return {
      status: response.status,
      headers: response.headers,
      text,
      json: parse(text),
      replayed: response.headers.get('idempotent-replayed') === 'true',
    }
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A checkout body that succeeds. */
export function cart(overrides: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    items: [{ sku: 'mug', quantity: 1 }],
    customer: { email: 'ada@example.com', name: 'Ada' },
    payment_method: 'pm_card_visa',
    ...overrides,
  }
}
