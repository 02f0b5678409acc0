import { join } from 'node:path'
import { pino } from 'pino'
import { type SimulatorOptions, startSimulator } from './server.ts'

/** Reads the settings of the simulator run alone. Throws with a message that names the variable. */
function readSettings(env: NodeJS.ProcessEnv): SimulatorOptions {
  const port = Number(env.SIM_PORT || 12111)
  if (!Number.isInteger(port) || port < 0 || port > 65535) {
    throw new Error(`SIM_PORT must be a port number from 0 to 65535, not "${env.SIM_PORT}"`)
  }
  const webhookUrl = env.WEBHOOK_URL || undefined
  if (webhookUrl !== undefined && !/^https?:$/.test(URL.parse(webhookUrl)?.protocol ?? '')) {
    throw new Error(`WEBHOOK_URL must be a whole http or https URL, not "${webhookUrl}"`)
  }
  const webhookSecret = (env.STRIPE_WEBHOOK_SECRET || 'whsec_test_demo').split(',')[0]?.trim() ?? ''
  if (webhookSecret === '') throw new Error('STRIPE_WEBHOOK_SECRET must not start with an empty secret')
  return {
    port,
    host: env.HOST || '127.0.0.1',
    stateFile: join(env.DATA_DIR || '.data', 'simulator.jsonl'),
    webhookSecret,
    ...(webhookUrl === undefined ? {} : { webhookUrl }),
  }
}

const logger = pino({ name: 'simulator', level: process.env.LOG_LEVEL || 'info' })
try {
  const settings = readSettings(process.env)
  const simulator = await startSimulator({ ...settings, logger })
  const stop = async () => {
    process.stdin.destroy()
    await simulator.close()
    logger.info('simulator stopped')
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void stop())
  // A parent that was killed cannot send a signal, but the pipe that it held ends.
  if (process.env.STOP_WITH_STDIN === 'true') process.stdin.resume().once('end', () => void stop())
  const notifies = settings.webhookUrl !== undefined
  logger.info({ url: simulator.url, stateFile: settings.stateFile, notifies }, 'simulator listens')
} catch (error) {
  logger.fatal(error instanceof Error ? error.message : String(error))
  process.exitCode = 1
}
