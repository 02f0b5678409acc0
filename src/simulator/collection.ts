import { inOtherMode, noSuch } from './errors.ts'
import { type Scope, scopeName } from './records.ts'

export type Created = {
  gt?: number | undefined
  gte?: number | undefined
  lt?: number | undefined
  lte?: number | undefined
}

export type PageQuery = {
  limit?: number | undefined
  created?: Created | undefined
  starting_after?: string | undefined
  ending_before?: string | undefined
}

export type Page<R> = { data: R[]; has_more: boolean }

/** `within`: ids to choose from, oldest first, where they are known; otherwise all of the account and mode. */
export type Filter<R> = { within?: readonly string[] | undefined; matches?: (record: R) => boolean }

type Listed = Scope & { id: string; created: number }

/** The records of one kind, each account and mode apart, listed newest first. */
export class Collection<R extends Listed> {
  readonly #what: string
  readonly #records = new Map<string, R>()
  readonly #oldestFirst = new Map<string, string[]>()

  /** `what` names the kind in errors, as in "No such charge". */
  constructor(what: string) {
    this.#what = what
  }

  get size(): number {
    return this.#records.size
  }

  put(record: R): void {
    if (!this.#records.has(record.id)) this.#ids(record).push(record.id)
    this.#records.set(record.id, record)
  }

  /** Whatever its account; undefined where there is none. */
  peek(id: string): R | undefined {
    return this.#records.get(id)
  }

  all(): MapIterator<R> {
    return this.#records.values()
  }

  /** Forgets the records that are not to be kept; asked from the oldest on. */
  keep(isKept: (record: R) => boolean): void {
    for (const record of this.#records.values()) if (!isKept(record)) this.#records.delete(record.id)
    for (const [name, ids] of this.#oldestFirst) {
      this.#oldestFirst.set(
        name,
        ids.filter((id) => this.#records.has(id)),
      )
    }
  }

  clear(): void {
    this.#records.clear()
    this.#oldestFirst.clear()
  }

  /** The record of that account and mode; otherwise Stripe's 404, or 400 where a parameter named it. */
  get(scope: Scope, id: string, param: string, status: 400 | 404): R {
    const record = this.#records.get(id)
    if (record === undefined || record.account !== scope.account) throw noSuch(this.#what, id, param, status)
    if (record.livemode !== scope.livemode) throw inOtherMode(this.#what, record, param, status)
    return record
  }

  /** A page, newest first, see https://docs.stripe.com/api/pagination. */
  page(scope: Scope, query: PageQuery, filter: Filter<R> = {}): Page<R> {
    const ids = filter.within ?? this.#ids(scope)
    const matches = filter.matches ?? (() => true)
    const limit = query.limit ?? 10
    const forward = query.ending_before === undefined
    const { gt = -1, gte = -1, lt = Number.POSITIVE_INFINITY, lte = Number.POSITIVE_INFINITY } = query.created ?? {}
    const from = Math.max(gt + 1, gte)
    const until = Math.min(lt - 1, lte)
    let at = forward
      ? this.#countUntil(ids, until) - 1
      : this.#position(scope, ids, query.ending_before ?? '', 'ending_before') + 1
    if (query.starting_after !== undefined)
      at = Math.min(at, this.#position(scope, ids, query.starting_after, 'starting_after') - 1)
    const found: R[] = []
    for (; at >= 0 && at < ids.length && found.length <= limit; at += forward ? -1 : 1) {
      const record = this.#at(ids, at)
      if (forward ? record.created < from : record.created > until) break
      if (record.created >= from && matches(record)) found.push(record)
    }
    const data = found.slice(0, limit)
    return { data: forward ? data : data.reverse(), has_more: found.length > limit }
  }

  #ids(scope: Scope): string[] {
    const name = scopeName(scope)
    const known = this.#oldestFirst.get(name)
    if (known !== undefined) return known
    const ids: string[] = []
    this.#oldestFirst.set(name, ids)
    return ids
  }

  #at(ids: readonly string[], index: number): R {
    return this.#records.get(ids[index] as string) as R
  }

  /** How many records were created at or before that second. */
  #countUntil(ids: readonly string[], second: number): number {
    let low = 0
    let high = ids.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#at(ids, middle).created <= second) low = middle + 1
      else high = middle
    }
    return low
  }

  #position(scope: Scope, ids: readonly string[], id: string, param: string): number {
    const record = this.get(scope, id, param, 400)
    let at = this.#countUntil(ids, record.created) - 1
    while (at >= 0 && ids[at] !== id) at--
    if (at < 0) throw noSuch(this.#what, id, param, 400)
    return at
  }
}
