/** All that a storm has to tell. */
import type { Finding } from '../../src/store/audit.ts'
import type { Calm } from './judgement.ts'
import type { PostgresFigures } from './postgres-watch.ts'
import type { Contradiction } from './shoppers.ts'
import type { ClassFigures, Second } from './tally.ts'
import type { UpkeepSample } from './upkeep.ts'

export interface Page {
  scenario: string
  about: string
  startedAt: string
  /** How it was run. */
  given: Record<string, string | number>
  /** Of load, as it turned out. */
  seconds: number
  classes: ClassFigures[]
  statuses: Record<string, number>
  timeline: Second[]
  /** What was done to the service meanwhile. */
  notes: { second: number; what: string }[]
  postgres: PostgresFigures | null
  /** Null where there was no load. */
  calm: Calm | null
  /** Keys whose shoppers had to ask once more after the storm. */
  cameBack: number
  orders: Record<string, number>
  upkeep: UpkeepSample[]
  verdict: Verdict
}

export interface Verdict {
  findings: Finding[]
  contradictions: Contradiction[]
  /** What grew that should be flat. */
  grown: string[]
  histories: History[]
}

/** All that is known of a key. */
export interface History {
  key: string
  orderId: string | null
  lines: string[]
}

export function isClean({ findings, contradictions, grown }: Verdict): boolean {
  return findings.length + contradictions.length + grown.length === 0
}

/** What each class of answer means to a reader. */
export const classNames = {
  first: 'first attempts',
  replay: 'replays',
  wait: 'waits',
  unknown: 'unknowns (202)',
  conflict: 'conflicts',
  in_progress: 'still in progress',
  expired: 'answer expired',
  refused: 'refused, no effect',
  unavailable: '503 or 429',
  error: 'other 5xx',
  unexpected: 'unexpected',
  lost: 'answer lost',
} as const
