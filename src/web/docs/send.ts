/** Sends a call and takes down all of its answer. */
import type { Call } from './request.ts'

export interface Reply {
  status: number
  statusText: string
  headers: readonly (readonly [string, string])[]
  text: string
  durationMs: number
  replayed: boolean
}

/** Rejects where no answer came, which does not say that nothing happened. */
export async function send({ method, target, headers, body }: Call): Promise<Reply> {
  const begun = performance.now()
  const response = await fetch(target, {
    method,
    headers,
    ...(body === undefined ? {} : { body }),
    cache: 'no-store',
    credentials: 'omit',
  })
  const text = await response.text()
  return {
    status: response.status,
    statusText: response.statusText,
    headers: [...response.headers],
    text,
    durationMs: performance.now() - begun,
    replayed: response.headers.get('idempotent-replayed') === 'true',
  }
}
