/** What happens while the shoppers shop: one program for each scenario that disturbs something. */
import { setTimeout as delay } from 'node:timers/promises'
import { type Random, seededRandom } from '../../src/simulator/random.ts'
import { type FaultRule, setFaults } from '../support/simulator-control.ts'
import { failOver } from './failover.ts'
import type { StormOptions } from './options.ts'
import type { Stage } from './stage.ts'

export interface Trouble {
  options: StormOptions
  stage: Stage
  random: Random
  /** Marks the moment on the page. */
  note(what: string): void
  /** Resolves at this share of the storm's duration; false once the storm is over. */
  until(share: number): Promise<boolean>
}

const payments = { method: '*', path: '/v1/payment_intents' }

/** The faults and latencies of ordinary days. */
export function ordinaryFaults({ latency, faults }: StormOptions): FaultRule[] {
  return [
    ...latency.map(({ ms, share }) => ({ ...payments, fault: 'latency', latency_ms: ms, probability: share })),
    ...faults.map(({ fault, share }) => ({ ...payments, fault, probability: share })),
  ]
}

/** Runs until the storm is over. */
export async function makeTrouble(
  options: StormOptions,
  stage: Stage,
  note: (what: string) => void,
  over: AbortSignal,
): Promise<void> {
  const startedMs = performance.now()
  const trouble: Trouble = {
    options,
    stage,
    random: seededRandom(options.seed + 1),
    note,
    async until(share) {
      const dueMs = startedMs + share * options.durationSeconds * 1000
      await delay(Math.max(0, dueMs - performance.now()), undefined, { signal: over }).catch(() => {})
      return !over.aborted
    },
  }
  switch (options.scenario) {
    case 'outage':
      return outage(trouble)
    case 'crash':
      return crash(trouble, over)
    case 'failover':
      return failOver(trouble)
    default:
  }
}

async function outage({ options, stage, note, until }: Trouble): Promise<void> {
  const usual = ordinaryFaults(options)
  if (!(await until(0.25))) return
  note('the provider hangs')
  await setFaults(stage.simulatorUrl, [{ ...payments, fault: 'hang' }], options.seed)
  if (!(await until(0.5))) return
  note('the provider answers 500')
  // Half of them have had their effect: nobody can tell from outside.
  await setFaults(
    stage.simulatorUrl,
    [
      { ...payments, fault: 'latency', latency_ms: 200 },
      { ...payments, fault: 'error_before', probability: 0.5 },
      { ...payments, fault: 'error_after' },
    ],
    options.seed,
  )
  if (!(await until(0.65))) return
  note('the provider is back')
  await setFaults(stage.simulatorUrl, usual, options.seed)
}

async function crash({ stage, random, note }: Trouble, over: AbortSignal): Promise<void> {
  const fleet = stage.own?.fleet
  if (fleet === undefined) return
  while (!over.aborted) {
    await delay(300 + random() * 700, undefined, { signal: over }).catch(() => {})
    if (over.aborted) return
    await fleet.crash(Math.floor(random() * fleet.size), (name) => note(`${name} killed`))
  }
}
