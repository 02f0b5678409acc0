import { setTimeout as delay } from 'node:timers/promises'
import type { BaseLogger } from 'pino'
import { HOST } from '../free-port.ts'
import type { Account } from './account.ts'
import type { Binaries } from './binaries.ts'
import { spawnGuarded } from './guarded.ts'
import { CLUSTER_NAME, freeDataFolder, isChildOf, readPidFile } from './postmaster.ts'

type LaunchOptions = {
  data: string
  binaries: Binaries
  account: Account | undefined
  port: number
  unsafeFast: boolean
  log: Pick<BaseLogger, 'debug' | 'info' | 'error'>
}

/** One run of the server. */
export type Server = {
  port: number
  /** Resolves when the server, or the watchdog that starts and ends it, has ended. */
  exited: Promise<unknown>
  /** Fast shutdown. */
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

/** Starts the server and waits until it accepts connections, however long it has to recover first. Throws a
 * `StartFailure` when it ends before that. */
export async function launch({ data, binaries, account, port, unsafeFast, log }: LaunchOptions): Promise<Server> {
  const command = [binaries.postgres, '-D', data, ...settings(port, unsafeFast)]
  const server = spawnGuarded(command, account, (line) => {
    if (line.includes('PANIC:')) log.error({ line }, 'embedded Postgres')
    else log.debug({ line }, 'embedded Postgres')
  })
  let ended = false
  void server.exited.then(() => {
    ended = true
  })

  const since = Date.now()
  let told = since
  while (!ended) {
    const file = await readPidFile(data)
    // The file may still be that of a server which crashed while it was ready.
    if (file?.ready && (await isChildOf(server.pid, file.pid))) {
      return {
        port,
        exited: server.exited,
        async stop() {
          const code = await server.stop()
          // The watchdog was killed and could not do it. Refused where another server is there already.
          if (code === undefined) await freeDataFolder(data).catch((error) => log.debug({ err: error }, 'not stopped'))
        },
      }
    }
    if (Date.now() - told > 5_000) {
      told = Date.now()
      log.info({ waitingMs: told - since }, 'embedded Postgres is still starting, perhaps recovering from a crash')
    }
    await Promise.race([server.exited, delay(20)])
  }
  const said = server.lastLines.join('\n')
  throw new StartFailure(reasonIn(said), `the embedded Postgres on ${data} did not start:\n${said}`)
}

function reasonIn(said: string): StartFailure['reason'] {
  if (/could not bind|could not create any TCP\/IP sockets/.test(said)) return 'port'
  if (/lock file "postmaster.pid" already exists|pre-existing shared memory block/.test(said)) return 'busy'
  return 'failed'
}

function settings(port: number, unsafeFast: boolean): string[] {
  const durable = unsafeFast ? 'off' : 'on'
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
    fsync: durable,
    synchronous_commit: 'on',
    full_page_writes: durable,
  }
  return Object.entries(values).flatMap(([name, value]) => ['-c', `${name}=${value}`])
}
