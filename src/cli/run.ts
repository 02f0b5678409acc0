/** The command line: finds the command, gives it what it needs, and turns what it throws into a message and an exit code. */
import { parseArgs } from 'node:util'
import { loadConfig } from '../config.ts'
import { createDatabase, createPool } from '../runtime/database.ts'
import { runningEmbeddedPostgres } from '../runtime/embedded/running.ts'
import { startEmbeddedPostgres } from '../runtime/embedded.ts'
import { createLog } from '../runtime/log.ts'
import { pendingMigrations } from '../runtime/migrate.ts'
import { migrations, openDeps } from '../service.ts'
import type { Tables } from '../store/tables.ts'
import { type Command, CommandError, type Context, type Env, parseOptions, UsageError } from './command.ts'
import { migrateCommand } from './database.ts'
import { messageOf, reasonOf } from './faults.ts'
import { helpFor, overview } from './help.ts'
import { jobsDiscard, jobsList, jobsRequeue } from './jobs.ts'
import { outputTo, type Streams } from './output.ts'
import { reconcileReport } from './reconcile.ts'
import { keyCreate, keyList, keyRevoke, tenantCreate, tenantList } from './tenants.ts'

const commands: readonly Command[] = [
  migrateCommand,
  tenantCreate,
  tenantList,
  keyCreate,
  keyList,
  keyRevoke,
  jobsList,
  jobsRequeue,
  jobsDiscard,
  reconcileReport,
]

/** Resolves with the exit code: 0, 1 for what failed, 2 for arguments that cannot be understood, or the command's own. */
export async function runCli(args: readonly string[], env: Env, streams: Streams): Promise<number> {
  try {
    return await runCommand(args, env, streams)
  } catch (error) {
    const message = messageOf(error)
    // A fault of ours: whoever reports it needs all of it.
    if (message === undefined) throw error
    streams.err.write(`error: ${message}\n`)
    return error instanceof UsageError ? 2 : 1
  }
}

async function runCommand(args: readonly string[], env: Env, streams: Streams): Promise<number> {
  if (args[0] === 'help') return runCommand([...args.slice(1), '--help'], env, streams)
  const command = commands.find(({ name }) => name.split(' ').every((word, index) => args[index] === word))
  if (command === undefined) {
    streams.out.write(withoutCommand(args))
    return 0
  }
  const { values, positionals } = parse(command, args.slice(command.name.split(' ').length))
  if (values.help === true) {
    streams.out.write(helpFor(command))
    return 0
  }
  const argument = argumentOf(command, positionals)
  for (const [name, { required }] of Object.entries(command.options)) {
    if (required && values[name] === undefined) throw new UsageError(`--${name} is missing; --help tells more`)
  }

  const out = outputTo(streams, values.json === true)
  const stops: (() => Promise<void>)[] = []
  try {
    const context = { values: values as Context['values'], argument, env, out, ...opening(env, stops) }
    return (await command.run(context)) ?? 0
  } finally {
    out.endProgress()
    for (const stop of stops.reverse()) await stop()
  }
}

/** What helps whoever named no command; throws where something was named that is none. */
function withoutCommand(args: readonly string[]): string {
  const words = args.filter((arg) => !arg.startsWith('-'))
  const group = commands.filter(({ name }) => name.split(' ')[0] === words[0])
  if (args.length === 0 || args.includes('--help') || args.includes('-h')) {
    return overview(group.length === 0 ? commands : group)
  }
  if (words.length === 0) throw new UsageError(`a command comes before ${args[0]}; --help lists them`)
  const inGroup = group.length === 0 ? '' : `; there is ${group.map(({ name }) => name).join(', ')}`
  throw new UsageError(`there is no command "${words.slice(0, 2).join(' ')}"${inGroup || '; --help lists them'}`)
}

function parse(command: Command, args: string[]) {
  try {
    return parseArgs({ args, options: parseOptions(command), allowPositionals: true, strict: true })
  } catch (error) {
    // Its first sentence; what follows is about a case that is none here.
    const [message] = (error instanceof Error ? error.message : String(error)).split('. ')
    throw new UsageError(`${message}; ${command.name} --help tells more`)
  }
}

function argumentOf({ argument }: Command, positionals: readonly string[]): string {
  const [first, second] = positionals
  if (argument === undefined) {
    if (first !== undefined) throw new UsageError(`"${first}" is one word too many`)
    return ''
  }
  if (second !== undefined) throw new UsageError(`"${second}" is one word too many`)
  if (first === undefined) throw new UsageError(`${argument.name} is missing: ${argument.about}`)
  return first
}

/** Opens only what a command asks for. */
function opening(env: Env, stops: (() => Promise<void>)[]): Pick<Context, 'database' | 'deps' | 'databaseUrl'> {
  // No command makes a digest, so none needs the secret.
  const { config } = loadConfig({ DIGEST_SECRET: 'not used by commands', DIGEST_SECRET_FILE: '', ...env })
  const log = createLog(env.LOG_LEVEL ?? 'warn', 'stderr')

  async function databaseUrl(): Promise<string> {
    if (config.databaseUrl !== undefined) {
      await reach(config.databaseUrl)
      return config.databaseUrl
    }
    const url = await runningEmbeddedPostgres(config.dataDir)
    if (url !== undefined) return url
    const server = await startEmbeddedPostgres({ dataDir: config.dataDir, log })
    stops.push(() => server.stop())
    return server.url
  }

  async function migratedUrl(): Promise<string> {
    const url = await databaseUrl()
    const pool = createPool(url, { max: 1, applicationName: 'checkout-cli' })
    try {
      const [pending] = await pendingMigrations(pool, migrations)
      if (pending !== undefined)
        throw new CommandError(`the database lacks ${pending} and perhaps more; run migrate first`)
    } finally {
      await pool.end()
    }
    return url
  }

  return {
    databaseUrl,
    async database() {
      const pool = createPool(await migratedUrl(), { max: 2, applicationName: 'checkout-cli' })
      stops.push(() => pool.end())
      return createDatabase<Tables>(pool)
    },
    deps: async () => openDeps(config, log, await migratedUrl(), stops),
  }
}

/** Whatever prevents a first statement can be put right by whoever set DATABASE_URL. */
async function reach(url: string): Promise<void> {
  const pool = createPool(url, { max: 1, applicationName: 'checkout-cli' })
  try {
    await pool.query('select 1')
  } catch (error) {
    throw new CommandError(messageOf(error) ?? `the database cannot be used: ${reasonOf(error)}`, { cause: error })
  } finally {
    await pool.end()
  }
}
