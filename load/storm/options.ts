/** What a storm is made of: the scenario's defaults, and what the command line says otherwise. */
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import { isScenario, type ScenarioName, scenarioNames, scenarios } from './scenarios.ts'

export interface StormOptions {
  scenario: ScenarioName
  /** A service that runs already; otherwise one is started. */
  running: { urls: string[]; databaseUrl: string; simulatorUrl: string } | undefined
  /** No load: only judge the books. */
  auditOnly: boolean
  storefrontKey: string
  backendKey: string
  tenantId: string
  connections: number
  durationSeconds: number
  /** Requests a second at most; undefined: as many as the connections carry. */
  rate: number | undefined
  /** Share of requests that re-post an earlier key. */
  repeats: number
  /** Share of the repeats that carry another body. */
  conflicts: number
  /** How many more requests carry a new key at once. */
  twins: number
  /** Share of cards that are declined. */
  declines: number
  /** Each adds its delay to a share of the provider's calls. */
  latency: { ms: number; share: number }[]
  faults: { fault: string; share: number }[]
  /** How many SKUs are sold. */
  products: number
  /** Share of carts that want the hot one. */
  hotShare: number
  /** Units of the hot SKU. */
  units: number
  processes: number
  workers: number
  seed: number
  /** Keys stored before the storm starts. */
  agedKeys: number
  /** How long recovery may take after the storm, s. */
  recoverySeconds: number
  /** Settings of the service that is started. */
  settings: Record<string, string>
  jsonFile: string | undefined
  htmlFile: string | undefined
}

/** The command line makes no sense; the message says what is wrong. */
export class UsageError extends Error {}

const plenty = 1_000_000_000

/** Values of a storm without a scenario's own. */
const defaults = {
  connections: 32,
  duration: 20,
  repeats: 0.1,
  conflicts: 0.02,
  twins: 0,
  declines: 0.02,
  latency: '40,200:0.05,800:0.005',
  faults: 'drop_before:0.002,drop_after:0.002,error_after:0.002,rate_limit:0.002,hang:0.0005',
  products: 100,
  'hot-share': 0.1,
  units: plenty,
  processes: 2,
  workers: 1,
  seed: 1,
  'aged-keys': 0,
  'recovery-limit': 180,
} as const

export type Defaults = { -readonly [Name in keyof typeof defaults]?: number | string }

const flags = {
  scenario: { type: 'string' },
  url: { type: 'string', multiple: true },
  database: { type: 'string' },
  simulator: { type: 'string' },
  'audit-only': { type: 'boolean' },
  'storefront-key': { type: 'string' },
  'backend-key': { type: 'string' },
  tenant: { type: 'string' },
  rate: { type: 'string' },
  set: { type: 'string', multiple: true },
  json: { type: 'string' },
  html: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
  ...(Object.fromEntries(Object.keys(defaults).map((name) => [name, { type: 'string' }])) as Record<
    keyof typeof defaults,
    { type: 'string' }
  >),
} satisfies ParseArgsOptionsConfig

export const usage = `npm run storm -- [--scenario NAME] [flags]

  --scenario        ${scenarioNames.join(', ')}
  --duration S  --connections N  --rate N     how long, how many at once, requests a second at most
  --repeats P  --conflicts P  --twins N       share that re-posts an earlier key; of it with another body; twins at once
  --latency MS[:P],…                          each delays a share of the provider's calls   (${defaults.latency})
  --faults FAULT:P,… | none                   ${defaults.faults}
  --declines P  --products N  --hot-share P  --units N   declined cards; SKUs; carts with the hot SKU; units of it
  --processes N  --workers N  --set NAME=VALUE           API and worker processes that are started, and their settings
  --aged-keys N  --recovery-limit S  --seed N
  --url URL (repeatable)  --database URL  --simulator URL   a service that runs already
  --storefront-key K  --backend-key K  --tenant ID          who buys there (the demo tenant)
  --audit-only                                only judge the books of a service that runs
  --json FILE  --html FILE                    the page at the end, as data and with charts`

/** Throws a `UsageError`. Null where help was asked for. */
export function readOptions(args: string[]): StormOptions | null {
  const values = parse(args)
  if (values.help === true) return null
  const scenario = values.scenario ?? 'storm'
  if (!isScenario(scenario)) throw new UsageError(`there is no scenario "${scenario}": ${scenarioNames.join(', ')}`)
  const preset: Defaults = scenarios[scenario].defaults
  const text = (name: keyof typeof defaults) => String(values[name] ?? preset[name] ?? defaults[name])
  const number = (name: keyof typeof defaults, max = Number.MAX_SAFE_INTEGER) =>
    numberFrom(`--${name}`, text(name), max)
  const count = (name: keyof typeof defaults) => whole(`--${name}`, number(name))

  const running = runningService(values)
  if (running !== undefined && scenarios[scenario].needsOwnService) {
    throw new UsageError(`${scenario} needs a service that the storm starts itself: leave out --url`)
  }
  return {
    scenario,
    running,
    auditOnly: values['audit-only'] === true,
    storefrontKey: values['storefront-key'] ?? 'pk_test_demo',
    backendKey: values['backend-key'] ?? 'sk_test_demo',
    tenantId: values.tenant ?? 'ten_demo',
    connections: Math.max(1, count('connections')),
    durationSeconds: number('duration'),
    rate: values.rate === undefined ? undefined : numberFrom('--rate', values.rate),
    repeats: number('repeats', 1),
    conflicts: number('conflicts', 1),
    twins: count('twins'),
    declines: number('declines', 1),
    latency: pairs(text('latency')).map(([ms, share]) => ({ ms: numberFrom('--latency', ms), share })),
    faults: pairs(text('faults')).map(([fault, share]) => ({ fault, share })),
    products: Math.max(1, count('products')),
    hotShare: number('hot-share', 1),
    units: count('units'),
    processes: Math.max(1, count('processes')),
    workers: count('workers'),
    seed: count('seed'),
    agedKeys: count('aged-keys'),
    recoverySeconds: number('recovery-limit'),
    settings: { ...scenarios[scenario].settings, ...settingsFrom(values.set ?? []) },
    jsonFile: values.json,
    htmlFile: values.html,
  }
}

function parse(args: string[]) {
  try {
    return parseArgs({ args, options: flags }).values
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}

function runningService(values: ReturnType<typeof parse>): StormOptions['running'] {
  const { url, database, simulator } = values
  const auditOnly = values['audit-only'] === true
  if (url === undefined && !auditOnly) {
    if (database !== undefined || simulator !== undefined)
      throw new UsageError('--database and --simulator go with --url')
    return undefined
  }
  if (database === undefined || simulator === undefined) {
    throw new UsageError('the audit reads the books of a running service: give --database and --simulator too')
  }
  return {
    urls: (url ?? []).map((each) => each.replace(/\/+$/, '')),
    databaseUrl: database,
    simulatorUrl: simulator.replace(/\/+$/, ''),
  }
}

/** `a:0.5,b` as [a, 0.5], [b, 1]. */
function pairs(text: string): [string, number][] {
  if (text === 'none' || text === '0' || text === '') return []
  return text.split(',').map((part) => {
    const [name = '', share = '1'] = part.split(':')
    return [name, numberFrom(part, share, 1)]
  })
}

function settingsFrom(given: string[]): Record<string, string> {
  return Object.fromEntries(
    given.map((each) => {
      const at = each.indexOf('=')
      if (at <= 0) throw new UsageError(`--set takes NAME=VALUE, not "${each}"`)
      return [each.slice(0, at), each.slice(at + 1)]
    }),
  )
}

function numberFrom(flag: string, text: string, max = Number.MAX_SAFE_INTEGER): number {
  const value = Number(text)
  if (text.trim() === '' || !(value >= 0 && value <= max))
    throw new UsageError(`${flag}: "${text}" is no number up to ${max}`)
  return value
}

function whole(flag: string, value: number): number {
  if (!Number.isInteger(value)) throw new UsageError(`${flag} must be a whole number`)
  return value
}
