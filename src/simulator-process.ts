/** Runs the simulator beside the service, as a process of its own: its books survive whatever happens to the service. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { freePort } from './runtime/free-port.ts'

interface SimulatorProcessOptions {
  /** Where it is wanted; another free port is taken where something else listens there. 0 takes a free one. */
  port: number
  dataDir: string
  webhookUrl: string
  webhookSecret: string
  log: Logger
}

const startLimitMs = 15_000

/** Uses a simulator that runs already, at the wanted port or on the same files, for which there must be but one: another
 * process of the service, or one on another port, may have started it. */
export async function startSimulatorProcess(
  options: SimulatorProcessOptions,
): Promise<{ url: string; stop(): Promise<void> }> {
  const note = join(options.dataDir, 'simulator-url')
  const noted = await readFile(note, 'utf8').catch(() => undefined)
  const wanted = options.port === 0 ? undefined : `http://127.0.0.1:${options.port}`
  for (const running of [noted, wanted]) {
    if (running === undefined || !(await isSimulator(running))) continue
    options.log.info({ url: running }, 'using the simulator that is running')
    return { url: running, stop: async () => {} }
  }
  const port = await freePort(options.port === 0 ? undefined : options.port)
  if (options.port !== 0 && port !== options.port) {
    options.log.warn({ wanted: options.port, port }, 'the port of the simulator is taken; another one is used')
  }
  const url = `http://127.0.0.1:${port}`
  const child = spawn(process.execPath, [join(import.meta.dirname, 'simulator/main.ts')], {
    env: {
      PATH: process.env.PATH,
      SIM_PORT: String(port),
      DATA_DIR: options.dataDir,
      WEBHOOK_URL: options.webhookUrl,
      STRIPE_WEBHOOK_SECRET: options.webhookSecret,
      STOP_WITH_STDIN: 'true',
      LOG_LEVEL: options.log.level,
    },
    // Its stdin ends with this process, however that ends; standard output may be a command's result.
    stdio: ['pipe', 2, 2],
  })
  const exited = once(child, 'exit')
  const until = Date.now() + startLimitMs
  while (!(await isSimulator(url))) {
    if (child.exitCode !== null) throw new Error(`The simulator ended at its start (exit code ${child.exitCode})`)
    if (Date.now() > until) {
      child.kill('SIGKILL')
      throw new Error(`The simulator did not answer on port ${port} within ${startLimitMs} ms`)
    }
    await delay(50)
  }
  await mkdir(options.dataDir, { recursive: true })
  await writeFile(note, url)
  return {
    url,
    async stop() {
      await rm(note, { force: true })
      child.kill('SIGTERM')
      await exited
    },
  }
}

async function isSimulator(url: string): Promise<boolean> {
  try {
    const answer = await fetch(`${url}/_sim/faults`, { signal: AbortSignal.timeout(1000) })
    return answer.ok
  } catch {
    return false
  }
}
