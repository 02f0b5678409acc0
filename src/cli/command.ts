/** What a command is, and what it is given. */
import { userInfo } from 'node:os'
import type { ParseArgsConfig } from 'node:util'
import type { Kysely } from 'kysely'
import type { Deps } from '../deps.ts'
import type { Operator } from '../flows/operators/operator.ts'
import type { Tables } from '../store/tables.ts'

interface Option {
  type: 'string' | 'boolean'
  /** Shown behind the option's name, e.g. `ID`. */
  value?: string
  about: string
  required?: true
}

export interface Command {
  /** As typed, e.g. `key create`. */
  name: string
  about: string
  options: Readonly<Record<string, Option>>
  /** The one word behind the options, where it takes one. */
  argument?: { name: string; about: string }
  /** What is worth knowing besides, in whole lines. */
  notes?: readonly string[]
  /** Resolves with the exit code; 0 where it resolves with none. */
  // biome-ignore lint/suspicious/noConfusingVoidType: most commands just end
  run(context: Context): Promise<number | void>
}

export interface Context {
  values: Readonly<Record<string, string | boolean | undefined>>
  argument: string
  env: Env
  out: Output
  /** The database, migrated to what this version needs. */
  database(): Promise<Kysely<Tables>>
  /** Everything that flows work with, the payment provider included. */
  deps(): Promise<Deps>
  /** The database as it is. */
  databaseUrl(): Promise<string>
}

export type Env = Readonly<Record<string, string | undefined>>

export interface Output {
  /** A command's result: the value as JSON with `--json`, otherwise the lines. */
  result(value: unknown, lines: readonly string[]): void
  progress(fraction: number, text: string): void
  /** Leaves what has been drawn, so that what follows begins on a line of its own. */
  endProgress(): void
}

/** What the caller can put right; the message says how. */
export class CommandError extends Error {
  override name = 'CommandError'
}

/** The arguments cannot be understood. */
export class UsageError extends CommandError {
  override name = 'UsageError'
}

export const tenantOption: Option = { type: 'string', value: 'ID', about: 'the tenant', required: true }

export function textOf(context: Context, name: string): string {
  const value = context.values[name]
  if (typeof value !== 'string') throw new UsageError(`--${name} is missing`)
  return value
}

export function parseOptions({ options }: Command): NonNullable<ParseArgsConfig['options']> {
  return {
    ...Object.fromEntries(Object.entries(options).map(([name, { type }]) => [name, { type }])),
    json: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  }
}

/** Who acts, for the audit log: the command line, and the account of the machine that runs it. */
export function operatorFor(context: Context, tenantId: string, runId: string): Operator {
  return { tenantId, actor: `command line (${accountOf(context.env)})`, keyId: null, requestId: runId }
}

/** Services and containers often run without these variables; the machine then knows the account, by its number at least. */
function accountOf({ USER, LOGNAME, USERNAME }: Env): string {
  const said = USER || LOGNAME || USERNAME
  if (said) return said
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`
  }
}
