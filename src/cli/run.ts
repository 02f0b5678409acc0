/** The command line: finds the command, gives it what it needs, and turns what it throws into a message and an exit code. */
import { parseArgs } from 'node:util'
import { ConfigError, loadConfig } from '../config.ts'
import { Problem } from '../domain/problem.ts'
import { ProviderUnavailable } from '../provider/port.ts'
import { createDatabase, createPool, isDatabaseUnavailable } from '../runtime/database.ts'
import { runningEmbeddedPostgres } from '../runtime/embedded/running.ts'
import { startEmbeddedPostgres } from '../runtime/embedded.ts'
import { createLog } from '../runtime/log.ts'
import { MigrationError, pendingMigrations } from '../runtime/migrate.ts'
import { migrations, openDeps } from '../service.ts'
import type { Tables } from '../store/tables.ts'
import { type Command, CommandError, type Context, type Env, type Output, parseOptions, UsageError } from './command.ts'
import { migrateCommand } from './database.ts'
import { helpFor, overview } from './help.ts'
import { jobsDiscard, jobsList, jobsRequeue } from './jobs.ts'
import { reconcileReport } from './reconcile.ts'
import { keyCreate, keyList, keyRevoke, tenantCreate } from './tenants.ts'

const commands: readonly Command[] = [
  migrateCommand,
  tenantCreate,
  keyCreate,
  keyList,
  keyRevoke,
  jobsList,
  jobsRequeue,
  jobsDiscard,
  reconcileReport,
]

interface Streams {
  out: { write(text: string): unknown }
  err: { write(text: string): unknown; isTTY?: boolean; columns?: number }
}

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
  const command = commands.find(({ name }) => name.split(' ').every((word, index) => args[index] === word))
  if (command === undefined) {
    const wantsHelp = args.length === 0 || args.some((arg) => ['--help', '-h', 'help'].includes(arg))
    if (!wantsHelp) throw new UsageError(`there is no command "${wordsOf(args)}"; --help lists them`)
    const [group] = args
    const shown = commands.filter(({ name }) => name.split(' ')[0] === group)
    streams.out.write(overview(shown.length === 0 ? commands : shown))
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

  const stops: (() => Promise<void>)[] = []
  try {
    const context = {
      values: values as Context['values'],
      argument,
      env,
      out: outputTo(streams, values.json === true),
      ...opening(env, stops),
    }
    return (await command.run(context)) ?? 0
  } finally {
    for (const stop of stops.reverse()) await stop()
  }
}

function parse(command: Command, args: string[]) {
  try {
    return parseArgs({ args, options: parseOptions(command), allowPositionals: true, strict: true })
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
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

function wordsOf(args: readonly string[]): string {
  return args
    .filter((arg) => !arg.startsWith('-'))
    .slice(0, 2)
    .join(' ')
}

/** Opens only what a command asks for. */
function opening(env: Env, stops: (() => Promise<void>)[]): Pick<Context, 'database' | 'deps' | 'databaseUrl'> {
  // No command makes a digest, so none needs the secret.
  const { config } = loadConfig({ DIGEST_SECRET: 'not used by commands', DIGEST_SECRET_FILE: '', ...env })
  const log = createLog(env.LOG_LEVEL ?? 'warn', 'stderr')

  async function databaseUrl(): Promise<string> {
    const url = config.databaseUrl ?? (await runningEmbeddedPostgres(config.dataDir))
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

function outputTo({ out, err }: Streams, json: boolean): Output {
  let drawn = false
  return {
    result(value, lines) {
      // The bar gives its line back.
      if (drawn) err.write('\r\u001b[K')
      out.write(json ? `${JSON.stringify(value, null, 2)}\n` : lines.map((line) => `${line}\n`).join(''))
    },
    progress(fraction, text) {
      if (err.isTTY !== true) return
      drawn = true
      const width = 24
      const full = Math.round(Math.min(1, Math.max(0, fraction)) * width)
      const line = `[${'#'.repeat(full)}${'.'.repeat(width - full)}] ${Math.floor(fraction * 100)}% ${text}`
      err.write(`\r\u001b[K${line.slice(0, (err.columns ?? 80) - 1)}`)
    },
  }
}

/** What can be put right by whoever reads it; undefined for a fault of ours. */
function messageOf(error: unknown): string | undefined {
  if (error instanceof CommandError || error instanceof ConfigError || error instanceof MigrationError)
    return error.message
  if (error instanceof Problem) return `${error.title.toLowerCase()}: ${error.message}`
  if (error instanceof ProviderUnavailable) return `the payment provider does not answer: ${error.message}`
  if (isDatabaseUnavailable(error)) return `the database cannot be reached: ${(error as Error).message || 'no answer'}`
  if (error instanceof Error && error.message.includes('is in use by')) return error.message
  return undefined
}
