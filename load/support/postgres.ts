/** An embedded Postgres of the run's own, durable as in production, that can be restarted, killed and copied. */
import { execFile } from 'node:child_process'
import { readFile, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { pino } from 'pino'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/runtime/embedded.ts'

export interface LoadPostgres {
  /** Stays the same over restarts. */
  url: string
  /** Process id of the server now running; changes with every start. */
  pid(): Promise<number>
  /** Fast shutdown, then start. */
  restart(): Promise<void>
  /** SIGKILL; it is started again by itself. */
  kill(): Promise<void>
  /** SIGKILL, and it stays down. */
  killForGood(): Promise<void>
  /** Stops it for as long as its files are copied to `dataDir`, then starts it again. */
  copyTo(dataDir: string): Promise<void>
  stop(): Promise<void>
}

const log = pino({ level: 'silent' })

/** With pg_stat_statements. The data folder is the caller's to remove. */
export async function startLoadPostgres(dataDir: string): Promise<LoadPostgres> {
  const postgres = await resumeLoadPostgres(dataDir)
  await administer(postgres.url, "ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'")
  await postgres.restart()
  await administer(postgres.url, 'CREATE EXTENSION IF NOT EXISTS pg_stat_statements')
  return postgres
}

/** As the data folder is. */
export async function resumeLoadPostgres(dataDir: string): Promise<LoadPostgres> {
  let server: EmbeddedPostgres = await startEmbeddedPostgres({ dataDir, log })
  const { url, port } = server
  const folder = await realpath(join(dataDir, 'postgres', 'data'))
  const pid = async () => Number.parseInt(await readFile(join(folder, 'postmaster.pid'), 'utf8'), 10)
  const whileStopped = async (work: () => Promise<unknown>) => {
    await server.stop()
    await work()
    server = await startEmbeddedPostgres({ dataDir, log, port })
  }
  return {
    url,
    pid,
    restart: () => whileStopped(async () => {}),
    async kill() {
      process.kill(await pid(), 'SIGKILL')
    },
    async killForGood() {
      process.kill(await pid(), 'SIGKILL')
      await server.stop()
    },
    copyTo: (target) => whileStopped(() => promisify(execFile)('cp', ['-a', folder, target])),
    stop: () => server.stop(),
  }
}

/** One statement over a connection of its own. */
export async function administer(url: string, statement: string): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000 })
  client.on('error', () => {}) // the statement fails with the same error
  await client.connect()
  try {
    return await client.query(statement)
  } finally {
    await client.end()
  }
}
