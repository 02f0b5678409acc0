/** Puts the service together from its settings and starts the roles asked for. */
import { randomBytes } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { buildApp } from './app.ts'
import { type Config, loadConfig } from './config.ts'
import type { Deps } from './deps.ts'
import { DigestSecrets } from './domain/digest.ts'
import { Admission } from './flows/admission.ts'
import { AttemptWatch } from './flows/attempt-watch.ts'
import { groupedClaims, groupedSettles } from './flows/grouping.ts'
import { ReplayCache } from './flows/replay-cache.ts'
import { Twins } from './flows/twins.ts'
import type { PaymentProvider } from './provider/port.ts'
import { createStandIn } from './provider/stand-in.ts'
import { createStripeProvider } from './provider/stripe.ts'
import { stripeNotifications } from './provider/stripe-webhook.ts'
import { createDatabase, createPool } from './runtime/database.ts'
import { startEmbeddedPostgres } from './runtime/embedded.ts'
import { freePort } from './runtime/free-port.ts'
import { Gate } from './runtime/gate.ts'
import { createLog } from './runtime/log.ts'
import { type Loop, startLoop } from './runtime/loop.ts'
import { createMailer } from './runtime/mailer.ts'
import { Metrics } from './runtime/metrics.ts'
import { migrate } from './runtime/migrate.ts'
import { startTracing, untraced } from './runtime/tracing.ts'
import { startSimulatorProcess } from './simulator-process.ts'
import { seedDemo } from './store/demo.ts'
import type { Tables } from './store/tables.ts'
import { endHolds } from './workers/end-holds.ts'
import { expireRuns } from './workers/expire-runs.ts'
import { recoverOrders } from './workers/recover-orders.ts'
import { runJobs } from './workers/run-jobs.ts'
import { settleRefunds } from './workers/settle-refunds.ts'
import { sweep } from './workers/sweep.ts'

export interface Service {
  /** Where the API listens; undefined without the role. */
  url: string | undefined
  deps: Deps
  config: Config
  /** Drains: what is under way ends, nothing new begins. */
  stop(): Promise<void>
}

export const migrations = join(import.meta.dirname, '../migrations')
const simulatorKey = 'sk_test_simulator'

/** Rejects with `ConfigError` or a clear message about what could not be started; then nothing is left running. */
export async function startService(
  env: Readonly<Record<string, string | undefined>>,
  replaced: { provider?: PaymentProvider } = {},
): Promise<Service> {
  const { config: wanted, warnings } = loadConfig(env)
  const log = createLog(wanted.logLevel)
  const config = wanted.portMayMove ? { ...wanted, port: await freePort(wanted.port) } : wanted
  if (config.port !== wanted.port)
    log.warn({ wanted: wanted.port, port: config.port }, 'the port is taken; another one is used')
  for (const warning of warnings) log.warn(warning)

  // Undone in reverse order.
  const stops: (() => Promise<void>)[] = []
  const stop = async () => {
    for (const each of stops.splice(0).reverse()) await each()
  }
  try {
    const service = await start(config, log, stops, replaced.provider)
    return { ...service, config, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function start(
  config: Config,
  log: Logger,
  stops: (() => Promise<void>)[],
  otherProvider: PaymentProvider | undefined,
): Promise<{ url: string | undefined; deps: Deps }> {
  const databaseUrl = config.databaseUrl ?? (await embedded(config, log, stops))
  await migrate(databaseUrl, migrations, log)
  const deps = await openDeps(config, log, databaseUrl, stops, otherProvider)
  if (config.demo) await seedDemo(deps.db)
  if (config.roles.worker) stops.push(startWorkers(deps))
  const url = config.roles.api ? await listen(deps, stops) : undefined
  return { url, deps }
}

/** What flows and doors work with, on a database that is migrated. `stops` gets what has to be closed. */
export async function openDeps(
  config: Config,
  log: Logger,
  databaseUrl: string,
  stops: (() => Promise<void>)[],
  otherProvider?: PaymentProvider,
): Promise<Deps> {
  const tracing = config.tracing === undefined ? untraced : await startTracing(config.tracing, log)
  stops.push(() => tracing.stop())
  const pool = createPool(databaseUrl, {
    max: config.databasePoolSize,
    applicationName: 'checkout',
    onConnectionError: (error) => log.warn({ err: error }, 'a database connection broke'),
  })
  stops.push(() => pool.end())
  const db = createDatabase<Tables>(pool)

  const { provider, standIn } =
    otherProvider === undefined
      ? await stripeProvider(config, log, stops)
      : { provider: otherProvider, standIn: undefined }

  return {
    config,
    log,
    pool,
    db,
    provider,
    standIn,
    notifications: stripeNotifications((config.stripe ?? config.simulator).webhookSecrets),
    digests: new DigestSecrets(await digestSecrets(config)),
    claim: groupedClaims(pool, config, tracing),
    settle: groupedSettles(pool, tracing),
    admission: new Admission(config.attemptsAtOnce),
    twins: new Twins(),
    replays: new ReplayCache({ ageMaxMs: config.replayCacheMs, retentionMs: config.retentionMs }),
    watch: new AttemptWatch(pool, log),
    // Well below the provider's own limit (Stripe: 25 a second in test mode, 100 in live mode).
    gate: new Gate({ perSecond: 20, customersMax: 20, patienceMs: 2000 }),
    metrics: new Metrics(),
    tracing,
    mailer: config.mail && createMailer(config.mail.smtpUrl, config.mail.from),
  }
}

/** Stripe, or the simulator where no key is set. */
async function stripeProvider(
  config: Config,
  log: Logger,
  stops: (() => Promise<void>)[],
): Promise<Pick<Deps, 'provider' | 'standIn'>> {
  const stripe = config.stripe ?? (await simulator(config, log, stops))
  const provider = createStripeProvider({
    secretKey: stripe.secretKey,
    apiBase: stripe.apiBase ?? 'https://api.stripe.com',
    onAlert: (reason) => log.error({ reason }, 'the payment provider refuses our credentials'),
  })
  stops.push(async () => provider.close())
  const simulatorUrl = config.demo && config.stripe === undefined ? stripe.apiBase : undefined
  return { provider, standIn: simulatorUrl === undefined ? undefined : createStandIn(simulatorUrl) }
}

async function listen(deps: Deps, stops: (() => Promise<void>)[]): Promise<string> {
  const lifecycle = { draining: false }
  const app = buildApp(deps, lifecycle)
  const url = await app.listen({ port: deps.config.port, host: deps.config.host })
  stops.push(async () => {
    lifecycle.draining = true
    await app.close()
    // Clients may have gone while their attempts were under way.
    await deps.twins.drained()
  })
  return url
}

function startWorkers(deps: Deps): () => Promise<void> {
  const stopping = new AbortController()
  const loops: Loop[] = [
    startLoop('run-jobs', deps.config.workerPollMs, deps.log, () => runJobs(deps, stopping.signal)),
    startLoop('recover-orders', deps.config.recoveryIntervalMs, deps.log, () => recoverOrders(deps)),
    startLoop('settle-refunds', deps.config.recoveryIntervalMs, deps.log, () => settleRefunds(deps)),
    startLoop('end-holds', deps.config.recoveryIntervalMs, deps.log, () => endHolds(deps)),
    startLoop('sweep', deps.config.sweepIntervalMs, deps.log, () => sweep(deps)),
    startLoop('expire-runs', deps.config.recoveryIntervalMs, deps.log, () => expireRuns(deps)),
  ]
  return async () => {
    stopping.abort()
    await Promise.all(loops.map((loop) => loop.stop()))
  }
}

async function embedded(config: Config, log: Logger, stops: (() => Promise<void>)[]): Promise<string> {
  const server = await startEmbeddedPostgres({ dataDir: config.dataDir, log })
  stops.push(() => server.stop())
  return server.url
}

async function simulator(
  config: Config,
  log: Logger,
  stops: (() => Promise<void>)[],
): Promise<NonNullable<Config['stripe']>> {
  const { port, webhookSecrets } = config.simulator
  let { url } = config.simulator
  if (url === undefined) {
    const started = await startSimulatorProcess({
      port,
      dataDir: config.dataDir,
      webhookUrl: `http://127.0.0.1:${config.port}/v1/webhooks/stripe`,
      webhookSecret: webhookSecrets[0] as string,
      log,
    })
    url = started.url
    stops.push(started.stop)
  }
  return { secretKey: simulatorKey, webhookSecrets, apiBase: url }
}

/** Those of the settings, or one that is made at the first start and kept. */
async function digestSecrets(config: Config): Promise<string[]> {
  if (config.digestSecrets.length > 0) return config.digestSecrets
  const file = join(config.dataDir, 'digest-secret')
  await mkdir(config.dataDir, { recursive: true })
  try {
    await writeFile(file, randomBytes(32).toString('base64url'), { flag: 'wx', mode: 0o600 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  return [(await readFile(file, 'utf8')).trim()]
}
