/** The simulator's control calls: its books, faults, and what the customer or the dashboard does there. */

export interface BookedPayment {
  id: string
  status: string
  amount: number
  amount_received: number
  amount_capturable: number
  currency: string
  /** Why the latest try of the card or the customer failed. */
  decline_code: string | null
  idempotency_key: string | null
  /** How often it was asked for under its key. */
  requests: number
  metadata: { tenant?: string; order?: string; key?: string }
  charges: {
    id: string
    status: string
    amount: number
    captured: boolean
    amount_captured: number
    amount_refunded: number
  }[]
  refunds: { id: string; amount: number; status: string }[]
  disputes: { id: string; amount: number; status: string }[]
}

/** One call of the provider's API, as it arrived there. */
export interface SeenRequest {
  method: string
  path: string
  idempotency_key: string | null
  params: Record<string, unknown>
  headers: Record<string, string>
  replayed: boolean
}

export interface FaultRule {
  method: string
  /** Prefix. */
  path: string
  fault: 'latency' | 'drop_before' | 'drop_after' | 'error_before' | 'error_after' | 'rate_limit' | 'hang'
  probability?: number
  times?: number
  latency_ms?: number
}

export class Books {
  readonly #url: string

  constructor(url: string) {
    this.#url = url
  }

  async payments(): Promise<BookedPayment[]> {
    return ((await this.#send('GET', '/_sim/payment_intents')) as { data: BookedPayment[] }).data
  }

  /** Every payment made for an attempt's key. */
  async paymentsFor(key: string): Promise<BookedPayment[]> {
    return (await this.payments()).filter((payment) => payment.metadata.key === key)
  }

  /** Every call that created a payment for an attempt's key, replays and refused ones included. */
  async chargesSeen(key: string): Promise<SeenRequest[]> {
    const { data } = (await this.#send('GET', '/_sim/requests')) as { data: SeenRequest[] }
    return data.filter((each) => each.method === 'POST' && each.idempotency_key?.endsWith(`:${key}`) === true)
  }

  async fault(...rules: FaultRule[]): Promise<void> {
    await this.#send('POST', '/_sim/faults', { rules })
  }

  async noFaults(): Promise<void> {
    await this.#send('DELETE', '/_sim/faults')
  }

  async webhooks(how: { delay_ms?: number; duplicates?: number; shuffle?: boolean; drop?: number }): Promise<void> {
    await this.#send('PUT', '/_sim/webhooks', how)
  }

  /** The customer finishes 3-D Secure. */
  async act(intentId: string, outcome: 'succeed' | 'fail'): Promise<void> {
    await this.#send('POST', `/_sim/payment_intents/${intentId}/action`, { outcome })
  }

  /** Any other control call. */
  control(method: string, path: string, body?: unknown): Promise<unknown> {
    return this.#send(method, `/_sim${path}`, body)
  }

  async #send(method: string, path: string, body?: unknown): Promise<unknown> {
    const response = await fetch(this.#url + path, {
      method,
      ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return text === '' ? undefined : JSON.parse(text)
  }
}
