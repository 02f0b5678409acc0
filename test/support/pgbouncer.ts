/** A real PgBouncer in transaction mode, as `ops/pgbouncer` sets it up, in front of a Postgres of the tests. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import pg from 'pg'
import { freePort } from './free-port.ts'
import { temporaryFolder } from './temporary-folder.ts'
import { until } from './until.ts'

const CONFIG = resolve(import.meta.dirname, '../../ops/pgbouncer/pgbouncer.ini')
const program = process.env.TEST_PGBOUNCER ?? '/usr/sbin/pgbouncer'

/** Why no PgBouncer can be started here; undefined where one can. */
export const noPgBouncer = existsSync(program)
  ? undefined
  : `no PgBouncer at ${program}; install it (Debian: apt-get install pgbouncer) or name it in TEST_PGBOUNCER`

export interface PgBouncer {
  /** HOST:PORT. */
  host: string
  /** `url` with PgBouncer in place of the server. */
  through(url: string): string
  /** Transactions that it has passed on so far, over all databases. */
  transactions(): Promise<number>
  /** Kills it (SIGKILL) and starts another on the same port. */
  crash(): Promise<void>
  stop(): Promise<void>
}

export interface PgBouncerOptions {
  /** Connections to Postgres for each database; far fewer than the services' own pools have together. Default 6. */
  poolSize?: number
}

/** `adminUrl` names the server and a superuser, who looks up everybody else's password. Rejects with what PgBouncer said. */
export async function startPgBouncer(adminUrl: string, { poolSize = 6 }: PgBouncerOptions = {}): Promise<PgBouncer> {
  const folder = await temporaryFolder('pgbouncer')
  const port = await freePort()
  const host = `127.0.0.1:${port}`
  const config = join(folder, 'pgbouncer.ini')
  const server = new URL(adminUrl)
  const [user, password] = [decodeURIComponent(server.username), decodeURIComponent(server.password)]
  const shipped = await readFile(CONFIG, 'utf8')
  // The section for PgBouncer itself is the last one, and of two lines the later one holds.
  const own = {
    listen_addr: '127.0.0.1',
    listen_port: port,
    auth_file: join(folder, 'users.txt'),
    auth_user: user,
    admin_users: user,
    default_pool_size: poolSize,
  }
  const lines = Object.entries(own).map(([name, value]) => `${name} = ${value}\n`)
  const target = `host=${server.hostname} port=${server.port}`
  const changed = shipped.replace('host=postgres port=5432', target)
  if (changed === shipped) throw new Error(`${CONFIG} names the server in another way than the tests expect`)
  await writeFile(config, changed + lines.join(''))
  await writeFile(join(folder, 'users.txt'), `"${user}" "${password}"\n`)

  const start = async (): Promise<Running> => {
    const running = launch(config)
    const console = new URL(adminUrl)
    console.host = host
    console.pathname = '/pgbouncer'
    await until(() => running.ended() || isOpen(console.href), { what: 'PgBouncer to answer' })
    if (running.ended()) throw new Error(`PgBouncer did not start: ${running.said()}`)
    return running
  }
  let running = await start()

  const through = (url: string) => {
    const other = new URL(url)
    other.host = host
    return other.href
  }
  return {
    host,
    through,
    async transactions() {
      const console = new URL(through(adminUrl))
      console.pathname = '/pgbouncer'
      return await ask(console.href, 'show stats_totals', (rows) =>
        rows.reduce((sum, row) => sum + Number(row.xact_count), 0),
      )
    },
    async crash() {
      await running.kill('SIGKILL')
      running = await start()
    },
    async stop() {
      await running.kill('SIGTERM')
      await rm(folder, { recursive: true })
    },
  }
}

interface Running {
  ended(): boolean
  said(): string
  kill(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>
}

/** As root it would refuse to run. The shell ends it when its own input ends, which also happens when this process is
 * killed; it is told the signal by name. */
function launch(config: string): Running {
  const watch = '"$@" & bouncer=$!; read -r signal || signal=TERM; kill -s "$signal" "$bouncer"; wait "$bouncer"'
  const account = process.getuid?.() === 0 ? ['-u', 'nobody'] : []
  const child: ChildProcess = spawn('/bin/sh', ['-c', watch, 'sh', program, ...account, config], {
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const gone = once(child, 'exit')
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-4000)
    })
  }
  return {
    // The shell waits for its input whatever becomes of what it has started.
    ended: () => child.exitCode !== null || /\bFATAL\b/.test(said),
    said: () => said,
    async kill(signal) {
      child.stdin?.end(`${signal.slice(3)}\n`)
      await gone
    },
  }
}

async function isOpen(consoleUrl: string): Promise<boolean> {
  return await ask(consoleUrl, 'show version', () => true).catch(() => false)
}

/** A command of PgBouncer's own console (https://www.pgbouncer.org/usage.html). */
async function ask<Result>(
  consoleUrl: string,
  command: string,
  read: (rows: Record<string, unknown>[]) => Result,
): Promise<Result> {
  const client = new pg.Client({ connectionString: consoleUrl })
  client.on('error', () => {})
  await client.connect()
  try {
    return read((await client.query(command)).rows)
  } finally {
    await client.end()
  }
}
