/** Puts the service together from its settings and starts the roles asked for. */
import { randomBytes } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { buildApp } from './app.ts'
import { type Config, loadConfig } from './config.ts'
import type { Deps } from './deps.ts'
import { DigestSecrets } from './domain/digest.ts'
import { Admission } from './flows/saga/admission.ts'
import { AttemptWatch } from './flows/saga/attempt-watch.ts'
import { groupedClaims, groupedSettles } from './flows/saga/grouping.ts'
import { ReplayCache } from './flows/saga/replay-cache.ts'
import { Twins } from './flows/saga/twins.ts'
import { buildOperationsApp } from './http/operations.ts'
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
  /** Where `METRICS_PORT` listens; undefined without it. */
  operationsUrl: string | undefined
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
): Promise<Pick<Service, 'url' | 'operationsUrl' | 'deps'>> {
  const databaseUrl = config.databaseUrl ?? (await embedded(config, log, stops))
  await migrate(databaseUrl, migrations, log)
  const deps = await openDeps(config, log, databaseUrl, stops, otherProvider)
  if (config.demo) await seedDemo(deps.db)
  const lifecycle = { draining: false }
  const operationsUrl =
    config.metricsPort === undefined ? undefined : await listenForOperations(deps, config.metricsPort, lifecycle, stops)
  if (config.roles.worker) stops.push(startWorkers(deps))
  const url = config.roles.api ? await listen(deps, lifecycle, stops) : undefined
  // Before anything else is stopped, those who send requests here must learn of it.
  stops.push(async () => {
    lifecycle.draining = true
  })
  return { url, operationsUrl, deps }
}

/** What flows and doors work with, on a database that is migrated. `stops` gets what has to be closed. */
export async function openDeps(
  config: Config,
  log: Logger,
  databaseUrl: string,
  stops: (() => Promise<void>)[],
  otherProvider?: PaymentProvider,
): Promise<Deps> {
  const metrics = new Metrics()
  const tracing = config.tracing === undefined ? untraced : await startTracing(config.tracing, log)
  stops.push(() => tracing.stop())
  const pool = createPool(databaseUrl, {
    max: config.databasePoolSize,
    applicationName: 'checkout',
    onConnectionError: (error) => log.warn({ err: error }, 'a database connection broke'),
  })
  stops.push(() => pool.end())
  const db = createDatabase<Tables>(pool)

  const twins = new Twins(() => metrics.waited('twin'))
  metrics.show({
    name: 'checkout_attempts_under_way',
    help: 'Attempts that this process works on.',
    label: 'state',
    read: () => ({ running: twins.size }),
  })
  metrics.show({
    name: 'checkout_database_connections',
    help: 'Connections of this process, and who waits for one.',
    label: 'state',
    read: () => ({ busy: pool.totalCount - pool.idleCount, free: pool.idleCount, queued: pool.waitingCount }),
  })

  const { provider, standIn } =
    otherProvider === undefined
      ? await stripeProvider(config, log, metrics, stops)
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
    claim: groupedClaims(pool, config, { metrics, tracing }),
    settle: groupedSettles(pool, { metrics, tracing }),
    admission: new Admission(config.attemptsAtOnce),
    twins,
    replays: new ReplayCache({ ageMaxMs: config.replayCacheMs, retentionMs: config.retentionMs }),
    watch: new AttemptWatch(pool, log, () => metrics.waited('other_process')),
    // Well below the provider's own limit (Stripe: 25 a second in test mode, 100 in live mode).
    gate: new Gate({ perSecond: 20, customersMax: 20, patienceMs: 2000 }),
    metrics,
    tracing,
    mailer: config.mail && createMailer(config.mail.smtpUrl, config.mail.from),
  }
}

/** Stripe, or the simulator where no key is set. */
async function stripeProvider(
  config: Config,
  log: Logger,
  metrics: Metrics,
  stops: (() => Promise<void>)[],
): Promise<Pick<Deps, 'provider' | 'standIn'>> {
  const stripe = config.stripe ?? (await simulator(config, log, stops))
  const provider = createStripeProvider({
    secretKey: stripe.secretKey,
    apiBase: stripe.apiBase ?? 'https://api.stripe.com',
    ...(stripe.account === undefined ? {} : { account: stripe.account }),
    onAlert: (reason) => {
      metrics.providerAlert(reason)
      log.error({ reason }, 'the payment provider refuses our credentials')
    },
  })
  stops.push(async () => provider.close())
  const simulatorUrl = config.demo && config.stripe === undefined ? stripe.apiBase : undefined
  return { provider, standIn: simulatorUrl === undefined ? undefined : createStandIn(simulatorUrl) }
}

async function listen(deps: Deps, lifecycle: { draining: boolean }, stops: (() => Promise<void>)[]): Promise<string> {
  const app = buildApp(deps, lifecycle)
  const url = await app.listen({ port: deps.config.port, host: deps.config.host, backlog: connectionsWaiting })
  stops.push(async () => {
    await app.close()
    // Clients may have gone while their attempts were under way.
    await deps.twins.drained()
  })
  return url
}

/** Stays open while the rest drains, so that this can be watched. */
async function listenForOperations(
  deps: Deps,
  port: number,
  lifecycle: { draining: boolean },
  stops: (() => Promise<void>)[],
): Promise<string> {
  const app = buildOperationsApp(deps, lifecycle)
  const url = await app.listen({ port, host: deps.config.host })
  stops.push(() => app.close())
  return url
}

function startWorkers(deps: Deps): () => Promise<void> {
  const stopping = new AbortController()
  const { log, metrics } = deps
  const work = (name: string, pauseMs: number, runOnce: () => Promise<number>): Loop =>
    startLoop(name, pauseMs, log, async () => {
      let failed = true
      try {
        const found = await runOnce()
        failed = false
        return found
      } finally {
        metrics.workerRun(name, failed)
      }
    })
  const loops: Loop[] = [
    work('run-jobs', deps.config.workerPollMs, () => runJobs(deps, stopping.signal)),
    work('recover-orders', deps.config.recoveryIntervalMs, () => recoverOrders(deps)),
    work('settle-refunds', deps.config.recoveryIntervalMs, () => settleRefunds(deps)),
    work('end-holds', deps.config.recoveryIntervalMs, () => endHolds(deps)),
    work('sweep', deps.config.sweepIntervalMs, () => sweep(deps)),
    work('expire-runs', deps.config.recoveryIntervalMs, () => expireRuns(deps)),
  ]
  return async () => {
    stopping.abort()
    await Promise.all(loops.map((loop) => loop.stop()))
  }
}

/** Connections of a crowd that the kernel holds until they are taken, as far as it allows (`net.core.somaxconn`): one that finds
 * no place is tried again by its client after 1 s, then after 3 s. Node's own limit is 511. */
const connectionsWaiting = 4096

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
  return { secretKey: simulatorKey, webhookSecrets, apiBase: url, account: undefined }
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
