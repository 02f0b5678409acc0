/** The service's log: JSON lines without personal data or secrets. */
import { type Logger, pino } from 'pino'
import { currentTrace } from './tracing.ts'

/** To standard output, or to standard error where that is for a command's result. */
export function createLog(level: string, to: 'stdout' | 'stderr' = 'stdout'): Logger {
  const options = {
    level,
    serializers: { err: describeError, error: describeError },
    // A line that was written for a request or a job tells its trace, where it has one.
    mixin() {
      const trace = currentTrace()
      return trace === undefined ? {} : { trace_id: trace.traceId }
    },
  }
  return to === 'stdout' ? pino(options) : pino(options, pino.destination({ dest: 2, sync: true }))
}

/** What a log line tells of an error. Postgres puts rows and values into `detail`, `where` and, for malformed data (class
 * 22), the message; HTTP clients put requests into further fields. None of that may reach a log. */
export function describeError(error: unknown): Record<string, unknown> | undefined {
  if (error === undefined || error === null) return undefined
  if (!(error instanceof Error)) return { type: typeof error }
  const { code, constraint, table, routine } = error as Error & Partial<Record<string, unknown>>
  const hasValues = typeof routine === 'string' && typeof code === 'string' && code.startsWith('22')
  const message = hasValues ? 'malformed data' : error.message
  return {
    type: error.name,
    message,
    ...(code === undefined ? {} : { code }),
    ...(constraint === undefined ? {} : { constraint }),
    ...(table === undefined ? {} : { table }),
    // The first line of a stack is the message.
    stack: error.stack
      ?.split('\n')
      .filter((line) => line.startsWith('    at '))
      .join('\n'),
    ...(error.cause === undefined ? {} : { cause: describeError(error.cause) }),
  }
}
