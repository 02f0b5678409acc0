/** Who runs in the benchmark, each on a database of its own within one Postgres. */
import { join } from 'node:path'
import pg from 'pg'
import { pino } from 'pino'
import { migrate } from '../../src/runtime/migrate.ts'
import { storeAgedKeys } from '../storm/aging.ts'
import { administer, type LoadPostgres } from '../support/postgres.ts'
import { type Program, startProgram } from '../support/processes.ts'

export interface Contestant {
  name: string
  url: string
  program: Program
  databaseUrl: string
}

const here = import.meta.dirname
const silent = pino({ level: 'silent' })

export const hotSku = 'bench_1'
export const skus = Array.from({ length: 100 }, (_, at) => `bench_${at + 1}`)

export class Contestants {
  readonly #postgres: LoadPostgres
  readonly #logs: string
  readonly #section: string
  readonly #running: Contestant[] = []
  readonly #others: Program[] = []

  /** `section` tells its databases and logs from those of others. */
  constructor(postgres: LoadPostgres, logs: string, section: string) {
    this.#postgres = postgres
    this.#logs = logs
    this.#section = section
  }

  /** The service, charging at a provider that answers from within its process, after the delay. */
  async service(
    name: string,
    { agedKeys = 0, providerDelayMs = 0 }: { agedKeys?: number; providerDelayMs?: number } = {},
  ): Promise<Contestant> {
    const databaseUrl = await this.#database(name)
    if (agedKeys > 0) {
      const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 })
      await storeAgedKeys(pool, 'ten_demo', agedKeys, () => {})
      await pool.end()
    }
    return this.#start(name, databaseUrl, join(here, '../support/bench-service.ts'), {
      ...serviceEnv,
      PROVIDER_DELAY_MS: String(providerDelayMs),
    })
  }

  /** Another process of a service that runs. */
  oneMoreOf({ name, databaseUrl }: Contestant): Promise<Contestant> {
    return this.#start(name, databaseUrl, join(here, '../support/bench-service.ts'), serviceEnv)
  }

  /** The service, charging at the simulator through the provider's SDK. */
  async serviceThroughSdk(name: string): Promise<Contestant> {
    const simulator = await startProgram(
      join(here, '../support/simulator-program.ts'),
      { STRIPE_WEBHOOK_SECRET: 'whsec_bench' },
      this.#log('simulator'),
    )
    this.#others.push(simulator)
    return this.#start(name, await this.#database(name), join(here, '../support/bench-service.ts'), {
      ...serviceEnv,
      PROVIDER: 'simulator',
      STRIPE_SECRET_KEY: 'sk_test_bench',
      STRIPE_WEBHOOK_SECRET: 'whsec_bench',
      STRIPE_API_BASE: simulator.url ?? '',
    })
  }

  async baseline(): Promise<Contestant> {
    return this.#start('baseline', await this.#database('baseline'), join(here, '../baseline/server.ts'), {})
  }

  async floor(): Promise<Contestant> {
    return this.#start('floor', await this.#database('floor'), join(here, 'floor.ts'), {})
  }

  async bareRoute(): Promise<Contestant> {
    return this.#start('bare route', '', join(here, 'bare-route.ts'), {})
  }

  /** A migrated database with the benchmark's products and nobody on it. */
  emptyDatabase(name: string): Promise<string> {
    return this.#database(name)
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#running.map(({ program }) => program), ...this.#others].map((each) => each.stop()))
  }

  async #start(name: string, databaseUrl: string, path: string, env: Record<string, string>): Promise<Contestant> {
    const program = await startProgram(path, { DATABASE_URL: databaseUrl, ...env }, this.#log(name))
    const contestant = { name, url: program.url ?? '', program, databaseUrl }
    this.#running.push(contestant)
    return contestant
  }

  async #database(name: string): Promise<string> {
    const database = `bench_${`${this.#section}_${name}`.replaceAll(/[^a-z0-9]/g, '_')}`
    await administer(this.#postgres.url, `CREATE DATABASE ${database}`)
    const url = new URL(this.#postgres.url)
    url.pathname = `/${database}`
    await migrate(url.href, join(here, '../../migrations'), silent)
    await administer(
      url.href,
      `INSERT INTO products (tenant_id, sku, name, unit_price, currency, available)
       SELECT tenant, 'bench_' || n, 'Product', 1000, 'EUR', 1000000000
       FROM generate_series(1, ${skus.length}) n, unnest(ARRAY['ten_demo', 'ten_other']) tenant`,
    )
    return url.href
  }

  #log(name: string): string {
    return join(this.#logs, `${this.#section}-${name.replaceAll(' ', '-')}.log`)
  }
}

const serviceEnv = {
  PORT: '0',
  ROLES: 'api',
  SEED_DEMO: 'true',
  DIGEST_SECRET: 'the digest secret of a benchmark',
  LOG_LEVEL: 'warn',
}
