import { readFile, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/runtime/embedded.ts'
import { migrate } from '../../src/runtime/migrate.ts'
import { startPgBouncer } from './pgbouncer.ts'
import { isPooled, poolFor } from './pooling.ts'
import { quiet } from './quiet.ts'
import { temporaryFolder } from './temporary-folder.ts'
import { until } from './until.ts'

export type ThrowawayPostgres = {
  /** Stays the same over restarts. */
  url: string
  /** Stops it, if it runs, and starts it again. */
  restart(): Promise<void>
  /** Kills the server (SIGKILL), as a crash would; it stays down until `restart`. */
  kill9(): Promise<void>
  /** Stops it and removes its data. */
  stop(): Promise<void>
}

/** A server of the test's own, with the durable settings of a real one, to stop or kill while it is in use. */
export async function startThrowawayPostgres({ migrated = true } = {}): Promise<ThrowawayPostgres> {
  const dataDir = await temporaryFolder('throwaway-postgres')
  const start = (port?: number) =>
    startEmbeddedPostgres({
      dataDir,
      log: quiet,
      restartAfterCrash: false,
      ...(port === undefined ? {} : { port }),
    })
  let server: EmbeddedPostgres = await start()
  const { url, port } = server
  if (migrated) await migrate(url, resolve(import.meta.dirname, '../../migrations'), quiet)
  const pgbouncer = isPooled() ? await startPgBouncer(url) : undefined
  if (pgbouncer) poolFor(url, pgbouncer.host)
  return {
    url,
    async restart() {
      await server.stop()
      server = await start(port)
    },
    async kill9() {
      const pid = await postmasterPid(dataDir)
      process.kill(pid, 'SIGKILL')
      await until(() => !isRunning(pid), { what: `the killed server ${pid} is gone` })
    },
    async stop() {
      await pgbouncer?.stop()
      await server.stop()
      await rm(dataDir, { recursive: true })
    },
  }
}

/** Process id of the server on an embedded server's data folder. */
export async function postmasterPid(dataDir: string): Promise<number> {
  return Number.parseInt(await readFile(join(dataDir, 'postgres', 'data', 'postmaster.pid'), 'utf8'), 10)
}

/** Whether a process with this id exists. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
