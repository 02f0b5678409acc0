/** Runs that are compared take turns, A B A B, so that what drifts (heat, neighbours, growing tables) drifts for all. */

import type { LoadPostgres } from '../support/postgres.ts'
import type { Contestant } from './contestants.ts'
import { drive, type Run, type Shape } from './drive.ts'
import { type Cost, measured, warmUpSeconds } from './measured.ts'

export interface Entry {
  name: string
  contestant: Contestant
  shape: Shape
  connections: number
}

/** Medians over the rounds. */
export interface Result extends Run, Cost {
  name: string
}

interface RaceOptions {
  rounds: number
  /** Of each run. */
  seconds: number
  postgres: LoadPostgres
  say(what: string): void
}

export async function race(entries: readonly Entry[], options: RaceOptions): Promise<Result[]> {
  const { rounds, seconds, postgres, say } = options
  for (const { name, contestant, shape, connections } of entries) {
    say(`${name}: warming up`)
    await drive(contestant.url, shape, { connections, seconds: warmUpSeconds })
  }
  const runs = new Map<string, Omit<Result, 'name'>[]>(entries.map(({ name }) => [name, []]))
  for (let round = 1; round <= rounds; round++) {
    for (const { name, contestant, shape, connections } of entries) {
      const run = await measured(postgres, [contestant], () => drive(contestant.url, shape, { connections, seconds }))
      runs.get(name)?.push(run)
      say(`${name}: round ${round} of ${rounds}: ${Math.round(run.firsts > 0 ? run.firsts : run.requests)}/s`)
    }
  }
  return [...runs].map(([name, all]) => ({
    name,
    seconds,
    requests: median(all.map((run) => run.requests)),
    firsts: median(all.map((run) => run.firsts)),
    p50Ms: median(all.map((run) => run.p50Ms)),
    p99Ms: median(all.map((run) => run.p99Ms)),
    refused: median(all.map((run) => run.refused)),
    refusedP99Ms: median(all.map((run) => run.refusedP99Ms)),
    failures: all.reduce((sum, run) => sum + run.failures, 0),
    programCpu: medianKnown(all.map((run) => run.programCpu)),
    postgresCpu: medianKnown(all.map((run) => run.postgresCpu)),
  }))
}

function medianKnown(values: (number | null)[]): number | null {
  const known = values.filter((value) => value !== null)
  return known.length === 0 ? null : median(known)
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  const upper = sorted[middle] ?? 0
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? 0) + upper) / 2
}
