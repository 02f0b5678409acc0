/** Storms that each show one thing; README.md tells how to read them. */
import type { Defaults } from './options.ts'

interface Scenario {
  about: string
  defaults: Defaults
  /** Restarts, kills or measures what it must have started itself. */
  needsOwnService?: true
  settings?: Record<string, string>
}

export const scenarioNames = ['storm', 'stampede', 'flash-sale', 'outage', 'crash', 'failover', 'soak', 'aged'] as const
export type ScenarioName = (typeof scenarioNames)[number]

export const scenarios: Record<ScenarioName, Scenario> = {
  storm: { about: 'one request in ten re-posts an earlier key while the provider is slow', defaults: {} },
  stampede: {
    about: 'every new key arrives ten times at once',
    defaults: { twins: 9, repeats: 0, connections: 80 },
  },
  'flash-sale': {
    about: 'one product, far more buyers than units',
    defaults: { 'hot-share': 1, units: 500, products: 1, declines: 0.05, connections: 64, duration: 10 },
  },
  outage: {
    about: 'the provider hangs, then fails with 500, then is back',
    defaults: { duration: 30, workers: 2 },
  },
  crash: {
    about: 'API and worker processes are killed over and over',
    defaults: { duration: 60, processes: 3, workers: 2 },
    needsOwnService: true,
  },
  failover: {
    about:
      'connections to Postgres are cut, answers to commits are lost, it is restarted, killed and replaced by its standby',
    defaults: { duration: 40 },
    needsOwnService: true,
  },
  soak: {
    about: 'a long, steady load with a short retention: memory and stored answers stay flat',
    defaults: { duration: 900, connections: 16, faults: 'none', latency: '20' },
    needsOwnService: true,
    settings: { IDEMPOTENCY_RETENTION_HOURS: '0.01', SWEEP_INTERVAL_MS: '2000' },
  },
  aged: {
    about: 'a storm upon ten million stored keys',
    defaults: { 'aged-keys': 10_000_000 },
    needsOwnService: true,
  },
}

export function isScenario(name: string): name is ScenarioName {
  return (scenarioNames as readonly string[]).includes(name)
}
