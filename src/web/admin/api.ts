/** The operator's API, as the page calls it. */

/** A refusal, in the service's own words. */
export class Refusal extends Error {
  override name = 'Refusal'
  readonly status: number
  readonly code: string
  readonly title: string
  /** What the problem says besides. */
  readonly members: Readonly<Record<string, unknown>>

  constructor(status: number, problem: { code?: string; title?: string; detail?: string }) {
    super(problem.detail ?? problem.title ?? `The service answered ${status}.`)
    this.status = status
    this.code = problem.code ?? ''
    this.members = problem
    this.title = problem.title ?? `The service answered ${status}`
  }
}

/** No answer came: what was asked for may have been done. */
export class NoAnswer extends Error {
  override name = 'NoAnswer'
}

/** Longer than the service itself takes at most before it answers. */
const timeoutMs = 40_000

export type Query = Readonly<Record<string, string | undefined>>

export class Api {
  readonly #key: string
  readonly #onUnauthorized: () => void

  constructor(key: string, onUnauthorized: () => void) {
    this.#key = key
    this.#onUnauthorized = onUnauthorized
  }

  /** `path` is below `/v1/admin`. Rejects with `Refusal` or `NoAnswer`. */
  get<Answer>(path: string, query: Query = {}, signal?: AbortSignal): Promise<Answer> {
    const given = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))
    const text = new URLSearchParams(given).toString()
    return this.#send<Answer>('GET', text === '' ? path : `${path}?${text}`, undefined, signal)
  }

  post<Answer>(path: string, body?: unknown): Promise<Answer> {
    return this.#send<Answer>('POST', path, body)
  }

  async #send<Answer>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Answer> {
    const limits = [AbortSignal.timeout(timeoutMs), ...(signal === undefined ? [] : [signal])]
    let response: Response
    let text: string
    try {
      response = await fetch(`/v1/admin${path}`, {
        method,
        headers: {
          authorization: `Bearer ${this.#key}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        cache: 'no-store',
        credentials: 'omit',
        redirect: 'error',
        signal: AbortSignal.any(limits),
      })
      text = await response.text()
    } catch (cause) {
      signal?.throwIfAborted()
      throw new NoAnswer('The service did not answer.', { cause })
    }
    const answer = parsed(text)
    if (response.ok) return answer as Answer
    const refusal = new Refusal(response.status, (answer ?? {}) as { code?: string })
    if (response.status === 401) this.#onUnauthorized()
    throw refusal
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** An id as a part of a path. */
export function part(id: string): string {
  return encodeURIComponent(id)
}
