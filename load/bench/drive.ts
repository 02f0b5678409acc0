/** Load of one shape on one server for a few seconds. */
import { randomUUID } from 'node:crypto'
import { createHistogram } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { Connection } from './connection.ts'

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

export async function drive(url: string, shape: Shape, load: Load): Promise<Run> {
  const next = sender(url, shape)
  const histograms = { first: createHistogram(), other: createHistogram(), refused: createHistogram() }
  const counts = { first: 0, other: 0, refused: 0, failed: 0 }
  const connections = await Promise.all(Array.from({ length: load.connections }, () => taken(url)))
  const turns = new Turns(load)

  async function shop(connection: Connection): Promise<void> {
    while (await turns.next()) {
      const { text, isFirst } = next()
      const { status, ms } = await connection.send(text)
      if (turns.areOver) break
      const kind = status === 503 ? 'refused' : isFirst ? 'first' : 'other'
      counts[kind] += 1
      if (kind !== 'refused' && (status < 200 || status > 299)) counts.failed += 1
      histograms[kind].record(Math.max(1, Math.round(ms * 1000)))
    }
    connection.close()
  }

  await Promise.all(connections.map(shop))
  const told = counts.first > 0 ? histograms.first : histograms.other
  return {
    seconds: load.seconds,
    requests: (counts.first + counts.other + counts.refused) / load.seconds,
    firsts: counts.first / load.seconds,
    p50Ms: told.percentile(50) / 1000,
    p99Ms: told.percentile(99) / 1000,
    refused: counts.refused / load.seconds,
    refusedP99Ms: histograms.refused.percentile(99) / 1000,
    failures: counts.failed,
  }
}

/** A connection that the server has taken, as those of a load balancer are: Node takes one a turn of its event loop, so
 * that a crowd of new ones would measure that. */
async function taken(url: string): Promise<Connection> {
  const connection = new Connection(url)
  await connection.send(`${head('GET', url, '/healthz')}\r\n`)
  return connection
}

/** Says when the next request may go: at once until the time is over, or evenly over it. */
class Turns {
  readonly #msBetween: number | null
  readonly #beganAt = performance.now()
  readonly #endsAt: number
  #taken = 0

  constructor({ seconds, rate }: Load) {
    this.#msBetween = rate === undefined ? null : 1000 / rate
    this.#endsAt = this.#beganAt + seconds * 1000
  }

  get areOver(): boolean {
    return performance.now() >= this.#endsAt
  }

  /** False where the time is over. Turns that nobody was free to take are taken late. */
  async next(): Promise<boolean> {
    if (this.#msBetween !== null) {
      const early = this.#beganAt + this.#taken++ * this.#msBetween - performance.now()
      if (early > 0) await delay(early)
    }
    return !this.areOver
  }
}

/** Posts each key once, so that it is settled. Throws where one is not. */
export async function settleKeys(url: string, skus: readonly string[], count: number): Promise<string[]> {
  const keys = Array.from({ length: count }, () => randomUUID())
  const connection = new Connection(url)
  for (const key of keys) {
    const { status } = await connection.send(checkout(url, key, skus))
    if (status !== 201) throw new Error(`a checkout was answered ${status}`)
  }
  connection.close()
  return keys
}

interface Post {
  text: string
  isFirst: boolean
}

function sender(url: string, { skus, storefrontKey, read, repeats = 0, twins = 0, keys }: Shape): () => Post {
  if (read !== undefined) {
    const post = { text: `${head('GET', url, read, storefrontKey)}\r\n`, isFirst: false }
    return () => post
  }
  if (keys !== undefined) {
    const posts = keys.map((key): Post => ({ text: checkout(url, key, skus, storefrontKey), isFirst: false }))
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
    const text = checkout(url, randomUUID(), skus, storefrontKey)
    if (repeats > 0) {
      const repeat = { text, isFirst: false }
      if (recent.length < recentKeys) recent.push(repeat)
      else recent[Math.floor(Math.random() * recentKeys)] = repeat
    }
    twin = { text, isFirst: false }
    twinsLeft = twins
    return { text, isFirst: true }
  }
}

/** The same for the same key: a repeat has to be the same request. */
function checkout(url: string, key: string, skus: readonly string[], storefrontKey?: string): string {
  const number = Number.parseInt(key.slice(0, 8), 16)
  const body = JSON.stringify({
    items: [{ sku: skus[number % skus.length], quantity: 1 }],
    customer: { email: `shopper-${number % shoppers}@example.com`, name: 'Shopper' },
    payment_method: 'pm_card_visa',
  })
  return (
    `${head('POST', url, '/v1/checkouts', storefrontKey)}content-type: application/json\r\n` +
    `idempotency-key: ${key}\r\ncontent-length: ${body.length}\r\n\r\n${body}`
  )
}

function head(method: string, url: string, path: string, storefrontKey = demoKey): string {
  return `${method} ${path} HTTP/1.1\r\nhost: ${url.slice('http://'.length)}\r\nauthorization: Bearer ${storefrontKey}\r\n`
}
