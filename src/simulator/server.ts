import { fastify } from 'fastify'
import { type Logger, pino } from 'pino'
import { apiRoutes, unknownRoutes } from './api.ts'
import { controlRoutes } from './control.ts'
import { World } from './world.ts'

export type SimulatorOptions = {
  /** 0 takes any free port. */
  port: number
  host?: string
  /** Where the books are kept over restarts; in memory only where absent. One running simulator a file. */
  stateFile?: string
  /** The whole inbox URL that notifications are sent to; without one none are. */
  webhookUrl?: string
  webhookSecret: string
  /** Event types to send; all where absent. */
  webhookTypes?: string[]
  /** Delay before the first repeat of a failed notification, doubled up to a minute. Default 1000. */
  webhookRetryBaseMs?: number
  /** After how long an idempotency key is forgotten. Default 24 hours, as Stripe. */
  keyLifetimeMs?: number
  /** How long a hold lasts. Default 7 days. */
  holdLifetimeMs?: number
  /** After how long a pending or failing refund settles and a test card's dispute opens. Default 1000. */
  settleDelayMs?: number
  logger?: Logger
}

export type Simulator = { url: string; port: number; close(): Promise<void> }

const dayMs = 24 * 3600 * 1000

/** Starts a stand-in for Stripe: its API below /v1, its control below /_sim. Rejects where the port is taken or the
 * state file is damaged. */
export async function startSimulator(options: SimulatorOptions): Promise<Simulator> {
  const { host = '127.0.0.1', logger = pino({ level: 'silent' }) } = options
  const world = new World({
    stateFile: options.stateFile,
    keyLifetimeMs: options.keyLifetimeMs ?? dayMs,
    terms: { holdLifetimeMs: options.holdLifetimeMs ?? 7 * dayMs, settleDelayMs: options.settleDelayMs ?? 1000 },
    webhooks: {
      url: options.webhookUrl,
      secret: options.webhookSecret,
      types: options.webhookTypes,
      retryBaseMs: options.webhookRetryBaseMs ?? 1000,
    },
    log: logger,
  })
  const app = fastify({
    forceCloseConnections: true,
    keepAliveTimeout: 65_000,
    routerOptions: { querystringParser: () => ({}) },
    ajv: { customOptions: { removeAdditional: false, coerceTypes: false } },
  })
  app.setNotFoundHandler(unknownRoutes(world))
  await app.register(apiRoutes(world), { prefix: '/v1' })
  await app.register(controlRoutes(world), { prefix: '/_sim' })
  await world.load()
  await app.listen({ port: options.port, host })
  world.start()
  const address = app.server.address()
  const port = typeof address === 'object' && address !== null ? address.port : options.port
  const close = async () => {
    await app.close()
    world.close()
  }
  return { url: `http://${host}:${port}`, port, close }
}
