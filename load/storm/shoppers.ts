/**
 * The shoppers: what they post next, and what they make of the answers. They keep their key until an answer is definite,
 * and they remember: two definite answers for one key have to be the same to the byte.
 */
import { createHash, randomUUID } from 'node:crypto'
import { type Random, seededRandom } from '../../src/simulator/random.ts'
import type { StormOptions } from './options.ts'
import type { AnswerClass, Tally } from './tally.ts'

type PostKind = 'first' | 'repeat' | 'twin' | 'retry' | 'conflict'

export interface Attempt {
  key: string
  body: string
  /** The first definite answer. */
  definite?: { status: number; digest: string }
  /** None is to come: refused before any effect, or its answer is past the retention. */
  hasNone?: true
  story: StoryLine[]
}

interface StoryLine {
  at: Date
  kind: PostKind
  told: string
}

export interface Post {
  attempt: Attempt
  kind: PostKind
  sentMs: number
  definiteWhenSent: boolean
}

/** One key's answers that contradict each other. */
export interface Contradiction {
  key: string
  detail: string
}

type ShopperOptions = Pick<
  StormOptions,
  'repeats' | 'conflicts' | 'twins' | 'declines' | 'products' | 'hotShare' | 'seed'
>

/** Earlier keys that repeats choose among: some are under way, most are settled. */
const recentKeys = 2000
/** Keys whose story is kept; older, settled ones are forgotten. */
const rememberedKeys = 300_000
const storyLines = 40
const retriesMax = 6

export class Shoppers {
  readonly contradictions: Contradiction[] = []
  readonly #options: ShopperOptions
  readonly #random: Random
  readonly #tally: Tally
  readonly #attempts = new Map<string, Attempt>()
  readonly #recent: Attempt[] = []
  readonly #retries: { attempt: Attempt; dueMs: number }[] = []
  readonly #retried = new Map<string, number>()
  #skus: { hot: string; others: string[] }
  #twins: { attempt: Attempt; left: number } | undefined

  constructor(options: ShopperOptions, skus: { hot: string; others: string[] }, tally: Tally) {
    this.#options = options
    this.#random = seededRandom(options.seed)
    this.#tally = tally
    this.#skus = skus
  }

  get attempts(): ReadonlyMap<string, Attempt> {
    return this.#attempts
  }

  /** Keys whose shopper still does not know what became of them. */
  unresolved(): Attempt[] {
    return [...this.#attempts.values()].filter((each) => each.definite === undefined && each.hasNone === undefined)
  }

  next(): Post {
    if (this.#twins !== undefined && this.#twins.left > 0) {
      this.#twins.left -= 1
      return this.#post(this.#twins.attempt, 'twin')
    }
    const due = this.#retries[0]
    if (due !== undefined && due.dueMs <= performance.now()) {
      this.#retries.shift()
      return this.#post(due.attempt, 'retry')
    }
    if (this.#recent.length > 0 && this.#random() < this.#options.repeats) {
      const earlier = this.#recent[Math.floor(this.#random() * this.#recent.length)] as Attempt
      // Another body under a key that may still be free would be a first attempt.
      const conflicts = earlier.definite !== undefined && this.#random() < this.#options.conflicts
      return this.#post(earlier, conflicts ? 'conflict' : 'repeat')
    }
    const attempt = this.#newAttempt()
    if (this.#options.twins > 0) this.#twins = { attempt, left: this.#options.twins }
    return this.#post(attempt, 'first')
  }

  /** What to send for a post. */
  bodyOf({ attempt, kind }: Post): string {
    return kind === 'conflict' ? attempt.body.replace('"quantity":1', '"quantity":2') : attempt.body
  }

  answered(post: Post, status: number, body: string, headers: Record<string, string>): void {
    const replayed = headers['idempotent-replayed'] ?? headers['Idempotent-Replayed']
    const code = status >= 400 ? codeIn(body) : ''
    const told = code === '' ? String(status) : `${status} ${code}`
    const answerClass = classify(post, status, code, replayed === 'true')
    this.#tally.record(answerClass, told, performance.now() - post.sentMs)
    this.#note(post, replayed === 'true' ? `${told} (replayed)` : told)
    const { attempt } = post
    switch (answerClass) {
      case 'first':
      case 'replay':
      case 'wait':
        this.#compare(attempt, status, body)
        break
      case 'refused':
        if (attempt.definite === undefined) attempt.hasNone = true
        else if (post.definiteWhenSent) {
          this.contradictions.push({ key: attempt.key, detail: `${told} after a definite ${attempt.definite.status}` })
        }
        break
      case 'expired':
        attempt.hasNone = true
        break
      case 'conflict':
        if (post.kind !== 'conflict') {
          this.contradictions.push({ key: attempt.key, detail: 'called a conflict, though the request was the same' })
        }
        break
      default:
        if (post.kind !== 'conflict') this.#retryLater(attempt)
    }
  }

  /** The connection ended without an answer. */
  lost(post: Post): void {
    this.#tally.record('lost', 'no answer', performance.now() - post.sentMs)
    this.#note(post, 'no answer')
    if (post.kind !== 'conflict') this.#retryLater(post.attempt)
  }

  /** Posts once more what is unresolved, as shoppers do who come back. `send` posts one and tells the answer. */
  async comeBack(send: (post: Post) => Promise<void>, attempts: readonly Attempt[]): Promise<void> {
    const left = [...attempts]
    const one = async () => {
      for (let attempt = left.pop(); attempt !== undefined; attempt = left.pop()) {
        await send(this.#post(attempt, 'retry'))
      }
    }
    await Promise.all(Array.from({ length: 8 }, one))
  }

  #post(attempt: Attempt, kind: PostKind): Post {
    return { attempt, kind, sentMs: performance.now(), definiteWhenSent: attempt.definite !== undefined }
  }

  #newAttempt(): Attempt {
    const { products, hotShare, declines } = this.#options
    const others = this.#skus.others
    const hot = others.length === 0 || this.#random() < hotShare
    const sku = hot ? this.#skus.hot : (others[Math.floor(this.#random() * (products - 1)) % others.length] as string)
    const shopper = Math.floor(this.#random() * 5000)
    const attempt: Attempt = {
      key: randomUUID(),
      body: JSON.stringify({
        items: [{ sku, quantity: 1 }],
        customer: { email: `shopper-${shopper}@example.com`, name: `Shopper ${shopper}` },
        payment_method: this.#random() < declines ? 'pm_card_chargeDeclined' : 'pm_card_visa',
        ...(this.#random() < 0.5 ? { cart_id: randomUUID() } : {}),
      }),
      story: [],
    }
    this.#attempts.set(attempt.key, attempt)
    if (this.#attempts.size > rememberedKeys) this.#forgetOldest()
    if (this.#recent.length < recentKeys) this.#recent.push(attempt)
    else this.#recent[Math.floor(this.#random() * recentKeys)] = attempt
    return attempt
  }

  #forgetOldest(): void {
    for (const [key, attempt] of this.#attempts) {
      if (attempt.definite === undefined && attempt.hasNone === undefined) continue
      this.#attempts.delete(key)
      return
    }
  }

  #compare(attempt: Attempt, status: number, body: string): void {
    const digest = createHash('sha1').update(`${status} ${body}`).digest('base64')
    delete attempt.hasNone
    if (attempt.definite === undefined) attempt.definite = { status, digest }
    else if (attempt.definite.digest !== digest) {
      const detail = `answered ${attempt.definite.status} and later ${status}, with other bytes`
      this.contradictions.push({ key: attempt.key, detail })
    }
  }

  #note(post: Post, told: string): void {
    const { story } = post.attempt
    if (story.length < storyLines) story.push({ at: new Date(), kind: post.kind, told })
  }

  #retryLater(attempt: Attempt): void {
    if (attempt.definite !== undefined) return
    const tried = this.#retried.get(attempt.key) ?? 0
    if (tried >= retriesMax) return
    this.#retried.set(attempt.key, tried + 1)
    this.#retries.push({ attempt, dueMs: performance.now() + 500 * (1 + this.#random()) })
  }
}

function classify(post: Post, status: number, code: string, replayed: boolean): AnswerClass {
  if (status === 201 || status === 402 || code === 'checkout_canceled') {
    if (!replayed) return 'first'
    return post.definiteWhenSent ? 'replay' : 'wait'
  }
  if (status === 202) return 'unknown'
  if (code === 'idempotency_key_conflict') return 'conflict'
  if (code === 'idempotency_key_in_progress') return 'in_progress'
  if (code === 'idempotency_key_expired') return 'expired'
  if (code === 'out_of_stock') return 'refused'
  if (status === 503 || status === 429) return 'unavailable'
  return status >= 500 ? 'error' : 'unexpected'
}

function codeIn(body: string): string {
  return /"code":"([a-z_]+)"/.exec(body)?.[1] ?? 'no code'
}
