/** What this tab remembers while it is open: the API key, and ids that answers have brought, to try the next call with. */
import type { Operation } from './contract.ts'

export type DemoKeys = Readonly<Record<string, string>>

const keyName = 'docs.api_key'
const seenName = 'docs.seen'

/** The keys that everybody knows, where the service runs as a demo; otherwise none. */
export async function loadDemoKeys(): Promise<DemoKeys> {
  const response = await fetch('/assets/demo.json')
  if (!response.ok) return {}
  const { keys } = (await response.json()) as { keys: DemoKeys | null }
  return keys ?? {}
}

/** What was typed last; in a demo, a key that may call the operation instead of none or of a demo key that may not. */
export function apiKeyFor({ roles }: Operation, demoKeys: DemoKeys): string {
  const kept = sessionStorage.getItem(keyName) ?? ''
  const known = Object.entries(demoKeys).find(([, key]) => key === kept)?.[0]
  const replaceable = kept === '' || (known !== undefined && !roles.includes(known))
  return replaceable ? (demoKeys[roles[0] ?? ''] ?? kept) : kept
}

export function keepApiKey(key: string): void {
  sessionStorage.setItem(keyName, key)
}

const ids = /\b([a-z]{3})_[0-7][0-9a-hjkmnp-tv-z]{25}\b/g

/** Keeps the newest id of each kind in an answer; a kind is what stands before the underscore. */
export function rememberIds(text: string): void {
  const seen = readSeen()
  for (const [id, kind] of text.matchAll(ids)) seen[kind ?? ''] = id
  sessionStorage.setItem(seenName, JSON.stringify(seen))
}

export function rememberAttempt(idempotencyKey: string): void {
  sessionStorage.setItem(seenName, JSON.stringify({ ...readSeen(), attempt: idempotencyKey }))
}

/** For a place in a path: what the contract's example has there, with the newest ids of this tab in place of its own. */
export function suggestionFor({ path, answers }: Operation, parameter: string): string {
  const seen = readSeen()
  if (parameter === 'key') return seen.attempt ?? ''
  const example = answers.find(({ status }) => status.startsWith('2'))?.body?.examples[0]?.value
  if (typeof example !== 'object' || example === null) return ''
  // The order of `/orders/{id}/refunds` is the refund's `order_id`; that of `/orders/{id}` its `id`.
  const [, collection = ''] = path.match(new RegExp(`/([^/]+)/\\{${parameter}\\}`)) ?? []
  const members = example as Record<string, unknown>
  const value = members[`${collection.replace(/s$/, '')}_${parameter}`] ?? members[parameter]
  return typeof value === 'string' ? value.replaceAll(ids, (id, kind: string) => seen[kind] ?? id) : ''
}

function readSeen(): Record<string, string> {
  return JSON.parse(sessionStorage.getItem(seenName) ?? '{}') as Record<string, string>
}
