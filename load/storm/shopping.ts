/** Lets the shoppers loose on the service, over autocannon's connections. */
import autocannon from 'autocannon'
import { reconnectCleanly } from './reconnecting.ts'
import type { Post, Shoppers } from './shoppers.ts'

interface ShoppingOptions {
  urls: readonly string[]
  storefrontKey: string
  connections: number
  durationSeconds: number
  rate: number | undefined
}

/** Longer than any request of the service may take. */
const timeoutSeconds = 40

export async function shop(options: ShoppingOptions, shoppers: Shoppers): Promise<void> {
  await autocannon({
    url: [...options.urls],
    connections: options.connections,
    duration: options.durationSeconds,
    timeout: timeoutSeconds,
    ...(options.rate === undefined ? {} : { overallRate: options.rate }),
    setupClient(client) {
      reconnectCleanly(client, options.urls)
      let waiting: Post | undefined
      client.setRequests([
        {
          method: 'POST',
          path: '/v1/checkouts',
          setupRequest(request) {
            // Asked again while a post waits: its connection broke.
            if (waiting !== undefined) shoppers.lost(waiting)
            const post = shoppers.next()
            waiting = post
            return { ...request, headers: headersFor(post, options.storefrontKey), body: shoppers.bodyOf(post) }
          },
          onResponse(status, body, _context, headers) {
            const post = waiting
            waiting = undefined
            if (post !== undefined) shoppers.answered(post, status, body, headers)
          },
        },
      ])
    },
  })
}

/** Posts one by itself. */
export async function postOnce(post: Post, shoppers: Shoppers, url: string, storefrontKey: string): Promise<void> {
  try {
    const response = await fetch(`${url}/v1/checkouts`, {
      method: 'POST',
      headers: headersFor(post, storefrontKey),
      body: shoppers.bodyOf(post),
      signal: AbortSignal.timeout(timeoutSeconds * 1000),
    })
    shoppers.answered(post, response.status, await response.text(), Object.fromEntries(response.headers))
  } catch {
    shoppers.lost(post)
  }
}

function headersFor(post: Post, storefrontKey: string): Record<string, string> {
  return {
    authorization: `Bearer ${storefrontKey}`,
    'content-type': 'application/json',
    'idempotency-key': post.attempt.key,
  }
}
