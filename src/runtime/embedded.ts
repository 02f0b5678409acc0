import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { BaseLogger } from 'pino'
import { prepareBinaries } from './embedded/binaries.ts'
import { openCluster } from './embedded/cluster.ts'
import { openHome } from './embedded/home.ts'
import { freeDataFolder } from './embedded/postmaster.ts'
import { launch, type Server, StartFailure } from './embedded/server.ts'
import { freePort, HOST } from './free-port.ts'

export type EmbeddedPostgres = {
  /** Connection string of the superuser, for the database `postgres`. Contains the password. */
  url: string
  port: number
  /** Fast shutdown: open transactions are rolled back, all committed data is on disk. Safe to call again. */
  stop(): Promise<void>
}

export type EmbeddedOptions = {
  /** Folder that keeps the database; made if missing. */
  dataDir: string
  log: Pick<BaseLogger, 'debug' | 'info' | 'warn' | 'error'>
  /** This port and no other. Default: the one of the last start, or any that is free. */
  port?: number
  /** Start the server again when it dies. Default: true. */
  restartAfterCrash?: boolean
  /** TESTS ONLY: does not wait for the disk; when the machine crashes, everything may be lost or corrupt. */
  unsafeFast?: boolean
}

// How long a start waits for what passes by itself: a port being closed, the shared memory of a killed server.
const BUSY_LIMIT_MS = 30_000
const RESTART_DELAY_MS_MAX = 5_000

/** Starts a real Postgres from npm's binaries on 127.0.0.1, keeping its data in `dataDir`. It ends with this process,
 * however that ends, and is started again if it crashes.
 *
 * Throws when the platform has no binaries, when a living process uses the folder, or when the server cannot start;
 * the message says what to do. */
export async function startEmbeddedPostgres(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const { dataDir, log, unsafeFast = false, restartAfterCrash = true } = options
  const home = await openHome(dataDir)
  const binaries = await prepareBinaries(home.path, home.account)
  const cluster = await openCluster(home, binaries, unsafeFast)
  const portFile = join(home.path, 'port')

  const start = async (port: number | undefined): Promise<Server> => {
    const deadline = Date.now() + BUSY_LIMIT_MS
    const wanted = port ?? (await remembered(portFile))
    for (let attempt = 0; ; attempt++) {
      await freeDataFolder(cluster.data)
      try {
        const chosen = port ?? (await freePort(wanted))
        const server = await launch({ ...cluster, binaries, account: home.account, port: chosen, unsafeFast, log })
        if (chosen !== wanted) await writeFile(portFile, String(chosen))
        return server
      } catch (error) {
        const passing = error instanceof StartFailure && error.reason !== 'failed'
        if (!passing || Date.now() > deadline) throw error
        log.debug({ reason: error.reason, attempt }, 'embedded Postgres could not start yet')
        await delay(100)
      }
    }
  }

  let server = await start(options.port)
  const { port } = server
  log.info({ port, data: cluster.data, account: home.account?.name }, 'embedded Postgres is ready')

  let stopping = false
  const supervise = async (): Promise<void> => {
    for (let failures = 0; ; ) {
      await server.exited
      if (stopping) return
      log.error({ port }, 'embedded Postgres ended unexpectedly')
      if (!restartAfterCrash) return
      for (;;) {
        try {
          server = await start(port)
          failures = 0
          break
        } catch (error) {
          if (stopping) return
          log.error({ err: error }, 'embedded Postgres could not be started again')
          await delay(Math.min(250 * 2 ** failures++, RESTART_DELAY_MS_MAX))
        }
      }
      if (stopping) await server.stop()
      else log.warn({ port }, 'embedded Postgres is running again')
    }
  }
  const supervised = supervise()

  return {
    url: `postgres://${cluster.user}:${encodeURIComponent(cluster.password)}@${HOST}:${port}/postgres`,
    port,
    async stop() {
      stopping = true
      await server.stop()
      await supervised
    },
  }
}

async function remembered(portFile: string): Promise<number | undefined> {
  try {
    return Number.parseInt(await readFile(portFile, 'utf8'), 10) || undefined
  } catch {
    return undefined // the first start
  }
}
