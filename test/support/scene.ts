/**
 * The stage of a test: a fresh database, a simulator with its own books, and the service between them over real HTTP.
 * `start` may be called more than once: each is another process's worth of service on the same database.
 */
import { randomUUID } from 'node:crypto'
import type { Kysely } from 'kysely'
import { createDatabase, createPool } from '../../src/runtime/database.ts'
import { type Service, startService } from '../../src/service.ts'
import { type SimulatorOptions, startSimulator } from '../../src/simulator/server.ts'
import type { Tables } from '../../src/store/tables.ts'
import { Books } from './books.ts'
import { Client, keys } from './client.ts'
import { createTestDatabase } from './database.ts'
import { freePort } from './free-port.ts'
import { isPooled, pooled } from './pooling.ts'

export interface Scene {
  /** The first service's API with a storefront key. */
  shop: Client
  /** The same with a backend key. */
  backend: Client
  admin: Client
  service: Service
  /** What the simulator knows: what really happened. */
  books: Books
  /** A connection of the test's own, to look at rows and to age them. */
  db: Kysely<Tables>
  databaseUrl: string
  simulatorUrl: string
  /** Another service on the same database and simulator. */
  start(settings?: Record<string, string>): Promise<Service>
  /** Settings that any process of this scene needs. */
  env(settings?: Record<string, string>): Record<string, string>
  stop(): Promise<void>
}

export interface SceneOptions {
  /** Settings of the first service; by default it has only the role `api`, so that tests run workers by hand. */
  settings?: Record<string, string>
  simulator?: Partial<SimulatorOptions>
  /** Instead of a fresh database of the shared server. */
  databaseUrl?: string
  /** Why no service of this scene may be behind PgBouncer, in a run where the others are. */
  direct?: string
}

export const webhookSecret = 'whsec_test_scene'

export async function startScene(options: SceneOptions = {}): Promise<Scene> {
  const database = options.databaseUrl === undefined ? await createTestDatabase() : undefined
  const databaseUrl = options.databaseUrl ?? (database?.url as string)
  const port = await freePort()
  const simulator = await startSimulator({
    port: 0,
    webhookSecret,
    webhookUrl: `http://127.0.0.1:${port}/v1/webhooks/stripe`,
    webhookRetryBaseMs: 50,
    settleDelayMs: 20,
    ...options.simulator,
  })
  const env = ({ DATABASE_URL = databaseUrl, ...settings }: Record<string, string> = {}): Record<string, string> => ({
    PORT: '0',
    DATABASE_URL: options.direct === undefined ? pooled(DATABASE_URL) : DATABASE_URL,
    SEED_DEMO: 'true',
    DIGEST_SECRET: 'a digest secret for tests',
    STRIPE_SECRET_KEY: 'sk_test_scene',
    STRIPE_WEBHOOK_SECRET: webhookSecret,
    STRIPE_API_BASE: simulator.url,
    ROLES: 'api',
    LOG_LEVEL: process.env.LOG_LEVEL ?? 'silent',
    ...settings,
  })
  const services: Service[] = []
  const start = async (settings: Record<string, string> = {}): Promise<Service> => {
    const service = await startService(env(settings))
    services.push(service)
    return service
  }
  const service = await start({ PORT: String(port), ...options.settings })
  // Behind PgBouncer nothing is alone: a second process's worth, with the same roles. Where tests run workers by hand
  // that is an API; others have two workers.
  if (isPooled()) await start({ ...options.settings, PORT: '0' })
  const pool = createPool(databaseUrl, { max: 4, applicationName: 'test' })
  const url = service.url ?? ''
  return {
    shop: new Client(url, keys.storefront),
    backend: new Client(url, keys.backend),
    admin: new Client(url, keys.admin),
    service,
    books: new Books(simulator.url),
    db: createDatabase<Tables>(pool),
    databaseUrl,
    simulatorUrl: simulator.url,
    start,
    env,
    async stop() {
      await Promise.all(services.map((each) => each.stop()))
      await pool.end()
      await simulator.close()
      await database?.drop()
    },
  }
}

/** A key for a new attempt. */
export function newKey(): string {
  return randomUUID()
}
