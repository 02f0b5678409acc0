/** What a page of the console is given, and what it gives. */
import type { Api, Query } from './api.ts'
import type { LiveFigures } from './live.ts'
import type { Piece } from './parts.ts'

export interface Route {
  /** Decoded: `#/orders/ord_1?a=b` is ['orders', 'ord_1']. */
  path: readonly string[]
  query: Query
  /** What was searched for: kept with the entry of the history and not in the address, since it may be about a person. */
  search: string
}

export interface View {
  api: Api
  route: Route
  live: LiveFigures
  /** Ends when another page is shown. */
  signal: AbortSignal
  /** Shows the same page anew, as things are now. */
  reload(): Promise<void>
  /** Searches, as the field above every page does. */
  find(text: string): void
  /** Says what came of something, above the page. */
  say(outcome: Node): void
}

export interface Shown {
  /** The page's heading and the window's title. */
  title: string
  /** Beside the heading. */
  beside?: Piece
  content: readonly Piece[]
}

export type Page = (view: View) => Promise<Shown>

export function hashOf(path: readonly string[], query: Query = {}): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [[name, value]],
  )
  const text = new URLSearchParams(given).toString()
  return `#/${path.map(encodeURIComponent).join('/')}${text === '' ? '' : `?${text}`}`
}

export function routeNow(): Route {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split(/\?(.*)/s)
  return {
    path: path === '' ? [] : path.split('/').map(decoded),
    query: Object.fromEntries(new URLSearchParams(query)),
    search: (history.state as { search?: string } | null)?.search ?? '',
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
