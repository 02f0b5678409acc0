/** One call of the API as it was seen. */
export type LoggedRequest = {
  id: string
  at: string
  method: string
  path: string
  idempotency_key: string | null
  params: unknown
  account: string | null
  livemode: boolean | null
  stripe_version: string | null
  headers: Record<string, string>
  /** Null while it runs, and for ever where the answer was lost. */
  status: number | null
  replayed: boolean
  fault: string | null
}

const keptMax = 5000

/** The latest calls of the API. */
export class RequestLog {
  #entries: LoggedRequest[] = []

  add(entry: LoggedRequest): void {
    this.#entries.push(entry)
    if (this.#entries.length >= 2 * keptMax) this.#entries = this.#entries.slice(-keptMax)
  }

  /** Oldest first. */
  latest(): LoggedRequest[] {
    return this.#entries.slice(-keptMax)
  }

  clear(): void {
    this.#entries = []
  }
}
