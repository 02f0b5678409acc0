/** Moments and ages for people. */
import { el } from '../common/dom.ts'

const time = { hour: 'numeric', minute: '2-digit', second: '2-digit' } as const
const thisYear = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric', ...time })
const anyYear = new Intl.DateTimeFormat(undefined, { year: 'numeric', month: 'short', day: 'numeric', ...time })

/** The moment in the operator's own time, with UTC to the millisecond in the title; `none` where there is none. */
export function moment(at: string | null | undefined, none = '–'): HTMLElement | string {
  if (at === null || at === undefined) return none
  const date = new Date(at)
  const utc = `${date.toISOString().replace('T', ' ').replace('Z', '')} UTC`
  return el('time', { datetime: at, title: utc }, localTime(at))
}

/** The moment in the operator's own time, as text. */
export function localTime(at: string): string {
  const date = new Date(at)
  return (date.getFullYear() === new Date().getFullYear() ? thisYear : anyYear).format(date)
}

const units: [name: string, seconds: number][] = [
  ['d', 86_400],
  ['h', 3600],
  ['min', 60],
  ['s', 1],
]

/** "42 s", "3 min 5 s", "2 h 10 min", "4 d 3 h". */
export function duration(seconds: number): string {
  let left = Math.max(0, Math.floor(seconds))
  const words: string[] = []
  for (const [name, length] of units) {
    const count = Math.floor(left / length)
    if (words.length === 0 && count === 0 && name !== 's') continue
    left -= count * length
    if (count > 0 || words.length === 0) words.push(`${count} ${name}`)
    if (words.length === 2) break
    if (words.length === 1 && count > 0 && left < 1) break
  }
  return words.join(' ')
}

/** How long ago, seconds, by this computer's clock: good enough to tell minutes from days. */
export function secondsSince(at: string, now = Date.now()): number {
  return Math.max(0, (now - Date.parse(at)) / 1000)
}

/** For the titles of a timeline that begins at `from`: "+1.2 s". */
export function offset(from: string, at: string): string {
  const ms = Date.parse(at) - Date.parse(from)
  if (ms < 60_000) return `+${(ms / 1000).toFixed(ms < 10_000 ? 2 : 0)} s`
  return `+${duration(ms / 1000)}`
}
