/** From what a command, or the start of the service, threw to a line for whoever typed it. */
import { ConfigError } from '../config.ts'
import { Problem } from '../domain/problem.ts'
import { ProviderUnavailable } from '../provider/port.ts'
import { isDatabaseUnavailable, lacksPassword } from '../runtime/database.ts'
import { codeOf } from '../runtime/error-code.ts'
import { MigrationError } from '../runtime/migrate.ts'
import { CommandError } from './command.ts'

/** What can be put right by whoever reads it; undefined for a fault of ours. No message holds a password. */
export function messageOf(error: unknown): string | undefined {
  if (error instanceof CommandError || error instanceof ConfigError || error instanceof MigrationError)
    return error.message
  if (error instanceof Problem) return `${error.title.toLowerCase()}: ${error.message}`
  if (error instanceof ProviderUnavailable) return `the payment provider does not answer: ${error.message}`
  if (lacksPassword(error))
    return 'the database asks for a password, and DATABASE_URL has none: postgres://USER:PASSWORD@HOST:PORT/DATABASE'
  if (isDatabaseUnavailable(error)) return `the database cannot be reached: ${reasonOf(error)}`
  if (isRefusal(error)) return `the database refuses: ${reasonOf(error)}`
  if (error instanceof Error && error.message.includes('is in use by')) return error.message
  return undefined
}

/** Of a connect that tried several addresses, the first one's. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0])
  return error instanceof Error && error.message !== '' ? error.message : 'no answer'
}

/** A wrong role, password or name of a database, or too few privileges.
 * https://www.postgresql.org/docs/18/errcodes-appendix.html */
function isRefusal(error: unknown): boolean {
  const code = codeOf(error) ?? ''
  return code.length === 5 && (code.startsWith('28') || code.startsWith('3D') || code === '42501')
}
