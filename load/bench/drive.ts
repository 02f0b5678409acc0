/** Load of one shape on one server for a few seconds. */
import { randomUUID } from 'node:crypto'
import { createHistogram } from 'node:perf_hooks'
import autocannon from 'autocannon'

export interface Shape {
  /** SKUs are bought evenly. */
  skus: readonly string[]
  /** Of the shop that is bought from; the demo shop otherwise. */
  storefrontKey?: string
  /** Read this path instead of buying. */
  read?: string
  /** Share of requests that re-post an earlier key. */
  repeats?: number
  /** More requests with each new key, at once. */
  twins?: number
  /** Post only these keys, which are settled. */
  keys?: readonly string[]
}

export interface Run {
  /** As it turned out. */
  seconds: number
  /** Per second. */
  requests: number
  firsts: number
  /** Of first attempts; of all requests where there are none. ms. */
  p50Ms: number
  p99Ms: number
  /** 503, per second, and how long they took. */
  refused: number
  refusedP99Ms: number
  /** Answers other than 2xx and 503, and connections that broke. */
  failures: number
}

export interface Load {
  connections: number
  seconds: number
  /** Requests a second, all connections together; as many as they carry otherwise. */
  rate?: number
}

const shoppers = 5000
const recentKeys = 1000
const demoKey = 'pk_test_demo'

export async function drive(url: string, shape: Shape, { connections, seconds, rate }: Load): Promise<Run> {
  const next = poster(shape)
  const histograms = { first: createHistogram(), other: createHistogram(), refused: createHistogram() }
  const counts = { first: 0, other: 0, refused: 0 }
  const { storefrontKey = demoKey, read } = shape
  const result = await autocannon({
    url,
    connections,
    duration: seconds,
    timeout: 30,
    ...(rate === undefined ? {} : { overallRate: rate }),
    setupClient(client) {
      let isFirst = false
      let isConnected = false
      client.setRequests([
        read !== undefined
          ? { method: 'GET', path: read, headers: { authorization: `Bearer ${storefrontKey}` } }
          : {
              method: 'POST',
              path: '/v1/checkouts',
              setupRequest(request) {
                const post = next()
                isFirst = post.isFirst
                return { ...request, headers: headersOf(post.key, storefrontKey), body: post.body }
              },
            },
      ])
      // The answer comes before the next request is set up.
      client.on('response', (status: number, _bytes: number, ms: number) => {
        const kind = status === 503 ? 'refused' : isFirst ? 'first' : 'other'
        counts[kind] += 1
        // A crowd's connections are taken one by one, and each one's first request waits for that.
        if (isConnected) histograms[kind].record(Math.max(1, Math.round(ms * 1000)))
        isConnected = true
      })
    },
  })
  const told = counts.first > 0 ? histograms.first : histograms.other
  return {
    seconds: result.duration,
    requests: (counts.first + counts.other + counts.refused) / result.duration,
    firsts: counts.first / result.duration,
    p50Ms: told.percentile(50) / 1000,
    p99Ms: told.percentile(99) / 1000,
    refused: counts.refused / result.duration,
    refusedP99Ms: histograms.refused.percentile(99) / 1000,
    failures: result.non2xx - counts.refused + result.errors + result.timeouts,
  }
}

/** Posts each key once, so that it is settled. Throws where one is not. */
export async function settleKeys(url: string, skus: readonly string[], count: number): Promise<string[]> {
  const keys: string[] = []
  for (let at = 0; at < count; at++) {
    const key = randomUUID()
    const response = await fetch(`${url}/v1/checkouts`, {
      method: 'POST',
      headers: headersOf(key),
      body: bodyFor(key, skus),
    })
    if (response.status !== 201) throw new Error(`a checkout was answered ${response.status}: ${await response.text()}`)
    await response.arrayBuffer()
    keys.push(key)
  }
  return keys
}

interface Post {
  key: string
  body: string
  isFirst: boolean
}

function poster({ skus, repeats = 0, twins = 0, keys }: Shape): () => Post {
  if (keys !== undefined) {
    const posts = keys.map((key): Post => ({ key, body: bodyFor(key, skus), isFirst: false }))
    let at = 0
    return () => posts[at++ % posts.length] as Post
  }
  const recent: Post[] = []
  let twin: Post | undefined
  let twinsLeft = 0
  return () => {
    if (twin !== undefined && twinsLeft > 0) {
      twinsLeft -= 1
      return twin
    }
    if (recent.length > 0 && Math.random() < repeats) {
      return recent[Math.floor(Math.random() * recent.length)] as Post
    }
    const key = randomUUID()
    const body = bodyFor(key, skus)
    if (repeats > 0) {
      const repeat = { key, body, isFirst: false }
      if (recent.length < recentKeys) recent.push(repeat)
      else recent[Math.floor(Math.random() * recentKeys)] = repeat
    }
    twin = { key, body, isFirst: false }
    twinsLeft = twins
    return { key, body, isFirst: true }
  }
}

/** The same for the same key: a repeat has to be the same request. */
function bodyFor(key: string, skus: readonly string[]): string {
  const number = Number.parseInt(key.slice(0, 8), 16)
  return JSON.stringify({
    items: [{ sku: skus[number % skus.length], quantity: 1 }],
    customer: { email: `shopper-${number % shoppers}@example.com`, name: 'Shopper' },
    payment_method: 'pm_card_visa',
  })
}

function headersOf(key: string, storefrontKey = demoKey): Record<string, string> {
  return {
    authorization: `Bearer ${storefrontKey}`,
    'content-type': 'application/json',
    'idempotency-key': key,
  }
}
