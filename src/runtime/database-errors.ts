import { codeOf } from './error-code.ts'

// Node's, when the other side cannot be reached or has gone.
const CONNECTION_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EADDRNOTAVAIL',
])

// https://www.postgresql.org/docs/18/errcodes-appendix.html
const UNAVAILABLE_STATES = new Set([
  '25006', // read_only_sql_transaction: still connected to what was the primary before a failover
  '25P03', // idle_in_transaction_session_timeout
  '25P04', // transaction_timeout
  '55P03', // lock_not_available: lock_timeout, under more load than it can bear
  '57014', // query_canceled: statement_timeout, likewise
  '57P01', // admin_shutdown
  '57P02', // crash_shutdown
  '57P03', // cannot_connect_now: starting, recovering or stopping
  '57P05', // idle_session_timeout
])
const UNAVAILABLE_CLASSES = new Set([
  '08', // connection exception; also what PgBouncer reports when it finds no server or its queue is full
  '53', // insufficient resources: too many connections, disk or memory full
  '58', // system error outside Postgres
])

// `pg` and `pg-pool` give these errors no code.
const DRIVER_MESSAGES = [
  'Connection terminated', // also "unexpectedly", "due to connection timeout"
  'timeout exceeded when trying to connect',
  'timeout expired',
  'Query read timeout',
  'Client has encountered a connection error and is not queryable',
  'Client was closed and is not queryable',
  'Cannot use a pool after calling end on the pool',
]

/** Whether the database could not be reached, went away, or is too busy: the same request may succeed later. Says
 * nothing about whether a statement or commit that was under way has been carried out. */
export function isDatabaseUnavailable(error: unknown): boolean {
  for (const cause of causes(error)) {
    const code = codeOf(cause)
    if (code && (CONNECTION_CODES.has(code) || isUnavailableState(code))) return true
    if (cause instanceof Error && DRIVER_MESSAGES.some((message) => cause.message.startsWith(message))) return true
  }
  return false
}

/** Whether the server asked for a password and there was none to give: nothing that a later try could change. */
export function lacksPassword(error: unknown): boolean {
  return causes(error).some((cause) => cause instanceof Error && cause.message.includes('client password must be a'))
}

/** Whether the transaction was rolled back only because of others running beside it: serialization failure (40001) or
 * deadlock (40P01). Running it again is right. */
export function isRetryableTransaction(error: unknown): boolean {
  return causes(error).some((cause) => ['40001', '40P01'].includes(codeOf(cause) ?? ''))
}

function isUnavailableState(code: string): boolean {
  return code.length === 5 && (UNAVAILABLE_STATES.has(code) || UNAVAILABLE_CLASSES.has(code.slice(0, 2)))
}

/** The error and what it was caused by, including the several attempts of one connect (`AggregateError`). */
function causes(error: unknown, depth = 0): unknown[] {
  if (typeof error !== 'object' || error === null || depth > 5) return []
  const inner = error instanceof AggregateError ? error.errors : []
  const cause = error instanceof Error ? error.cause : undefined
  return [error, ...[...inner, cause].flatMap((one) => causes(one, depth + 1))]
}
