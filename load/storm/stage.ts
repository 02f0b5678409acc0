/** What a storm is let loose on: Postgres, the simulator, API processes and workers; or a service that runs already. */
import { join } from 'node:path'
import { createPool, type DatabasePool } from '../../src/runtime/database.ts'
import { freePort } from '../../src/runtime/free-port.ts'
import { startTcpProxy, type TcpProxy } from '../../test/support/tcp-proxy.ts'
import { type RunFolder, runFolder } from '../support/folder.ts'
import { type LoadPostgres, startLoadPostgres } from '../support/postgres.ts'
import { startProgram } from '../support/processes.ts'
import { addStandby } from './failover.ts'
import { Fleet } from './fleet.ts'
import type { StormOptions } from './options.ts'

export interface Stage {
  urls: readonly string[]
  simulatorUrl: string
  /** The storm's own connections, past any proxy. */
  pool: DatabasePool
  /** What only a service of the storm's own has. */
  own: OwnService | undefined
  stop(): Promise<void>
}

export interface OwnService {
  fleet: Fleet
  postgres: LoadPostgres
  /** Waits to take over. */
  standby: LoadPostgres | undefined
  /** Between the service and Postgres. */
  proxy: TcpProxy
  /** Holds logs and data. */
  folder: RunFolder
  /** The storm's own connections go to another server from now on. */
  moveTo(databaseUrl: string): void
}

/** Shorter than in production, so that half a minute shows what takes minutes there. */
const impatient = {
  PROVIDER_TIMEOUT_MS: '2000',
  CHECKOUT_BUDGET_MS: '5000',
  IDEMPOTENCY_WAIT_MS: '7000',
  IDEMPOTENCY_LEASE_SECONDS: '8',
  RECONCILE_AFTER_MS: '500',
  RECOVERY_INTERVAL_MS: '250',
  LOG_LEVEL: 'error',
}

const webhookSecret = 'whsec_storm'

export async function openStage(options: StormOptions): Promise<Stage> {
  if (options.running === undefined) return startOwn(options)
  const { urls, databaseUrl, simulatorUrl } = options.running
  const pool = stormPool(databaseUrl)
  return { urls, simulatorUrl, pool, own: undefined, stop: () => pool.end() }
}

async function startOwn(options: StormOptions): Promise<Stage> {
  const folder = await runFolder('checkout-storm')
  const stops: (() => Promise<unknown>)[] = []
  const stop = async () => {
    for (const each of stops.splice(0).reverse()) await each()
  }
  try {
    const postgres = await startLoadPostgres(folder.path)
    stops.push(() => postgres.stop())
    const standby = options.scenario === 'failover' ? await addStandby(postgres, folder.path) : undefined
    stops.push(async () => standby?.stop())
    const proxy = await startTcpProxy(postgres.url)
    stops.push(() => proxy.close())
    const port = await freePort(undefined)
    const simulator = await startProgram(
      join(import.meta.dirname, '../support/simulator-program.ts'),
      { WEBHOOK_URL: `http://127.0.0.1:${port}/v1/webhooks/stripe`, STRIPE_WEBHOOK_SECRET: webhookSecret },
      join(folder.logs, 'simulator.log'),
    )
    stops.push(() => simulator.stop())
    const simulatorUrl = simulator.url ?? ''
    const env = {
      DATABASE_URL: proxy.through(postgres.url),
      SEED_DEMO: 'true',
      DIGEST_SECRET: 'the digest secret of a storm',
      STRIPE_SECRET_KEY: 'sk_test_storm',
      STRIPE_WEBHOOK_SECRET: webhookSecret,
      STRIPE_API_BASE: simulatorUrl,
      PROVIDER: 'simulator',
      ...impatient,
      ...options.settings,
    }
    const fleet = new Fleet(folder.logs)
    stops.push(() => fleet.stop())
    await fleet.add('api', { ...env, PORT: String(port) })
    for (let at = 1; at < options.processes; at++) await fleet.add('api', env)
    for (let at = 0; at < options.workers; at++) await fleet.add('worker', env)
    let pool = stormPool(postgres.url)
    stops.push(() => pool.end())
    const own: OwnService = {
      fleet,
      postgres,
      standby,
      proxy,
      folder,
      moveTo(databaseUrl) {
        void pool.end().catch(() => {})
        pool = stormPool(databaseUrl)
      },
    }
    return {
      urls: fleet.urls,
      simulatorUrl,
      get pool() {
        return pool
      },
      own,
      stop,
    }
  } catch (error) {
    await stop()
    folder.keep()
    throw new Error(`the service could not be started; its logs are in ${folder.logs}`, { cause: error })
  }
}

function stormPool(databaseUrl: string): DatabasePool {
  // An audit's scans take as long as they take.
  return createPool(databaseUrl, { max: 3, applicationName: 'storm', answerTimeoutMs: 600_000 })
}
