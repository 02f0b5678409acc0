import type { Created, Page, PageQuery } from './collection.ts'
import { invalidRequest } from './errors.ts'
import type { Resource } from './expand.ts'
import { hash, integer, optional, type Reader, text } from './params.ts'
import type { EventRecord, Subject } from './records.ts'

const range = hash({ gt: optional(integer), gte: optional(integer), lt: optional(integer), lte: optional(integer) })

/** `created=…` or `created[gte]=…`, unix seconds. */
const created: Reader<Created> = (value, name) => {
  if (typeof value !== 'string') return range(value, name)
  const exactly = integer(value, name)
  return { gte: exactly, lte: exactly }
}

/** https://docs.stripe.com/api/pagination */
export const listShape = {
  created: optional(created),
  limit: optional(integer),
  starting_after: optional(text),
  ending_before: optional(text),
}

export function checkList(query: PageQuery): void {
  if (query.limit !== undefined && (query.limit < 1 || query.limit > 100)) {
    const message = 'limit must be between 1 and 100'
    throw invalidRequest(message, { code: 'parameter_invalid_integer', param: 'limit' })
  }
  if (query.starting_after !== undefined && query.ending_before !== undefined) {
    throw invalidRequest('You can only pass one of starting_after and ending_before.', { param: 'ending_before' })
  }
}

export function list(url: string, page: Page<Subject | EventRecord>): Resource {
  return { object: 'list', url, page }
}
