import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import type { BaseLogger } from 'pino'
import type { Account } from './embedded-account.ts'
import type { Binaries } from './embedded-binaries.ts'
import { serverEnvironment } from './embedded-cluster.ts'
import { HOST } from './embedded-port.ts'
import { CLUSTER_NAME, isChildOf, readPidFile, WATCHDOG_SCRIPT } from './embedded-postmaster.ts'

export type LaunchOptions = {
  data: string
  binaries: Binaries
  account: Account | undefined
  port: number
  unsafeFast: boolean
  log: Pick<BaseLogger, 'debug' | 'info' | 'warn' | 'error'>
}

/** One run of the server. */
export type Server = {
  port: number
  /** Resolves when the server has ended, for whatever reason. */
  exited: Promise<void>
  stop(): Promise<void>
}

/** `port`: taken by another process; `busy`: another server on the folder has not quite ended; both pass. */
export class StartFailure extends Error {
  readonly reason: 'port' | 'busy' | 'failed'

  constructor(reason: 'port' | 'busy' | 'failed', message: string) {
    super(message)
    this.reason = reason
  }
}

/** Starts the server under its watchdog and waits until it accepts connections, however long it has to recover first.
 * Throws a `StartFailure` when it ends before that. */
export async function launch(options: LaunchOptions): Promise<Server> {
  const { data, binaries, account, port, log } = options
  const watchdog = spawn(
    process.execPath,
    [
      '--disable-warning=ExperimentalWarning',
      join(import.meta.dirname, WATCHDOG_SCRIPT),
      String(process.pid),
      account ? `${account.uid}:${account.gid}` : '-',
      ...[binaries.postgres, '-D', data, ...settings(port, options.unsafeFast)],
    ],
    // A session of its own: neither Ctrl-C nor a killed process group may take the server before us.
    { detached: true, cwd: '/', env: serverEnvironment(), stdio: ['pipe', 'ignore', 'pipe'] },
  )
  watchdog.stdin.on('error', () => {}) // it ended first

  const lastLines: string[] = []
  createInterface({ input: watchdog.stderr }).on('line', (line) => {
    lastLines.push(line)
    if (lastLines.length > 20) lastLines.shift()
    if (/(FATAL|PANIC):/.test(line)) log.warn({ line }, 'embedded Postgres')
    else log.debug({ line }, 'embedded Postgres')
  })

  let ended = false
  const exited = new Promise<void>((resolve) => {
    const end = () => {
      ended = true
      resolve()
    }
    // `close` comes after the last line of output.
    watchdog.once('close', end).once('error', end)
  })

  const since = Date.now()
  let told = since
  while (!ended) {
    const file = await readPidFile(data)
    if (file?.ready && (await isChildOf(watchdog.pid, file.pid))) {
      return {
        port,
        exited,
        async stop() {
          watchdog.stdin.end()
          await exited
        },
      }
    }
    if (Date.now() - told > 5_000) {
      told = Date.now()
      log.info({ waitingMs: told - since }, 'embedded Postgres is still starting, perhaps recovering from a crash')
    }
    await Promise.race([exited, delay(20)])
  }
  const said = lastLines.join('\n')
  throw new StartFailure(reasonIn(said), `the embedded Postgres on ${data} did not start:\n${said}`)
}

function reasonIn(said: string): StartFailure['reason'] {
  if (/could not bind|could not create any TCP\/IP sockets/.test(said)) return 'port'
  if (/lock file "postmaster.pid" already exists|pre-existing shared memory block/.test(said)) return 'busy'
  return 'failed'
}

function settings(port: number, unsafeFast: boolean): string[] {
  const values: Record<string, string | number> = {
    cluster_name: CLUSTER_NAME,
    listen_addresses: HOST,
    port,
    // None: its path may be at most 107 bytes long, and nobody needs it.
    unix_socket_directories: '',
    max_connections: 200,
    shared_buffers: '256MB',
    timezone: 'UTC',
    log_timezone: 'UTC',
    log_checkpoints: 'off',
    // Errors belong to the client that gets them; here they would only spread what is in the statements.
    log_min_messages: 'log',
    log_min_error_statement: 'panic',
    fsync: 'on',
    synchronous_commit: 'on',
    full_page_writes: 'on',
    ...(unsafeFast ? { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' } : {}),
  }
  return Object.entries(values).flatMap(([name, value]) => ['-c', `${name}=${value}`])
}
