/** How long to wait before the same request is sent again. */

const firstMs = 400
/** Somebody looks at the page: a service that is back should not be waited for. */
const longestMs = 5_000

/**
 * Exponential with full jitter: clients that failed together do not come back together
 * (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/). What the service asks for in Retry-After
 * is waited for whole. `tries` counts from 0; ms.
 */
export function backoffMs(tries: number, retryAfterMs: number | null): number {
  const spread = Math.random() * Math.min(longestMs, firstMs * 2 ** tries)
  return retryAfterMs === null ? spread : retryAfterMs + Math.min(spread, 1000)
}

/** RFC 9110, 10.2.3: seconds or a date. Null where there is none that can be read. */
export function parseRetryAfterMs(header: string | null): number | null {
  if (header === null) return null
  if (/^\d+$/.test(header)) return Number(header) * 1000
  const untilMs = Date.parse(header) - Date.now()
  return Number.isNaN(untilMs) ? null : Math.max(0, untilMs)
}

/** Waits, but no longer than until the network is back or the page is looked at again. Throws the signal's reason when it is aborted. */
export async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted()
  const over = new AbortController()
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms)
    const { signal: ended } = over
    ended.addEventListener('abort', () => clearTimeout(timer))
    globalThis.addEventListener?.('online', () => resolve(), { signal: ended })
    globalThis.document?.addEventListener(
      'visibilitychange',
      () => document.visibilityState === 'visible' && resolve(),
      { signal: ended },
    )
    signal?.addEventListener('abort', () => resolve(), { signal: ended })
  })
  over.abort()
  signal?.throwIfAborted()
}
