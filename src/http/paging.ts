/** Cursor pages: `?limit=&cursor=`. A cursor is opaque to clients; it names the last item of the page before. */
import { type ParsedUrlQuery, parse } from 'node:querystring'
import { Type } from 'typebox'
import { invalidRequest } from './problems.ts'

const limitDefault = 20
const limitMax = 100

export const pageProperties = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: limitMax, default: limitDefault })),
  cursor: Type.Optional(Type.String({ minLength: 1, maxLength: 400 })),
}
export const PageQuery = Type.Object(pageProperties, { additionalProperties: false })

/** A query as texts, all but `limit`: its number, where it is written as one. */
export function parseQuery(text: string): ParsedUrlQuery & { limit?: unknown } {
  const query: ReturnType<typeof parseQuery> = parse(text)
  if (typeof query.limit === 'string' && /^(0|[1-9][0-9]{0,8})$/.test(query.limit)) query.limit = Number(query.limit)
  return query
}

export interface Page {
  limit: number
  /** The last item's key on the page before. */
  after: string | null
}

export function pageFrom(query: { limit?: number; cursor?: string }): Page {
  return { limit: query.limit ?? limitDefault, after: query.cursor === undefined ? null : decode(query.cursor) }
}

interface ListView<View> {
  object: 'list'
  data: View[]
  has_more: boolean
  next_cursor: string | null
}

/** `items` holds up to one more than the page: its presence tells that there is more. */
export function listPage<Item, View>(
  items: readonly Item[],
  page: Page,
  view: (item: Item) => View,
  keyOf: (item: Item) => string,
): ListView<View> {
  const shown = items.slice(0, page.limit)
  const last = shown.at(-1)
  const hasMore = items.length > page.limit
  return {
    object: 'list',
    data: shown.map(view),
    has_more: hasMore,
    next_cursor: hasMore && last !== undefined ? Buffer.from(keyOf(last)).toString('base64url') : null,
  }
}

function decode(cursor: string): string {
  const text = Buffer.from(cursor, 'base64url').toString()
  if (Buffer.from(text).toString('base64url') !== cursor || /[^\x20-\x7e]/.test(text)) {
    throw invalidRequest('cursor: is not one that a list has given.')
  }
  return text
}
