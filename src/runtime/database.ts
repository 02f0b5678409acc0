import { setTimeout as delay } from 'node:timers/promises'
import {
  CompiledQuery,
  type DatabaseConnection,
  type Driver,
  type IsolationLevel,
  Kysely,
  PostgresDialect,
  PostgresDriver,
  type Transaction,
  type TransactionSettings,
} from 'kysely'
import pg from 'pg'
import { isRetryableTransaction } from './database-errors.ts'
import { numericTypes } from './database-types.ts'

export { isDatabaseUnavailable, isRetryableTransaction, lacksPassword } from './database-errors.ts'

export type PoolOptions = {
  /** Connections at most. */
  max: number
  /** Shown in `pg_stat_activity`. */
  applicationName: string
  /** Waiting for a connection, free or new, ends with an error after this long. Default 5000 ms. */
  connectTimeoutMs?: number
  /** A statement in a transaction is canceled by the server after this long. Default 10000 ms. */
  statementTimeoutMs?: number
  /** Waiting for one lock in a transaction ends with an error after this long. Default 5000 ms. */
  lockTimeoutMs?: number
  /** The server ends a transaction whose client has been silent for this long. Default 15000 ms. */
  idleInTransactionTimeoutMs?: number
  /** A connection that has not answered a statement after this long is given up and closed; the statement may have been
   * carried out. The only limit of single statements. Default 15000 ms. */
  answerTimeoutMs?: number
  /** A free connection is closed after this long. Default 60000 ms. */
  idleTimeoutMs?: number
  /** Told of connections that broke, in use or free. Nothing needs to be done: the pool replaces them. */
  onConnectionError?: (error: Error) => void
}

/** A pool of connections that never takes the process down and works behind PgBouncer in transaction mode.
 *
 * The server-side time limits are set by each transaction for itself (see `createDatabase`). As start-up parameters,
 * which is how `pg` would send them, PgBouncer refuses them; as `SET` they would stay on a server connection that the
 * next transaction of another client gets. */
export class DatabasePool extends pg.Pool {
  /** Opens a transaction with the pool's time limits, in one round trip; PgBouncer passes it on as it is. */
  readonly begin: string

  constructor(url: string, options: PoolOptions) {
    const onConnectionError = options.onConnectionError ?? (() => {})
    super({
      Client: Connection,
      connectionString: url,
      application_name: options.applicationName,
      max: options.max,
      connectionTimeoutMillis: options.connectTimeoutMs ?? 5_000,
      idleTimeoutMillis: options.idleTimeoutMs ?? 60_000,
      query_timeout: options.answerTimeoutMs ?? 15_000,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      // Statements sent together on one connection do not wait for each other's answers, and one that gets no answer
      // closes its connection, where `pg` would otherwise hand a stuck connection to the next user.
      pipeline: true,
      types: numericTypes,
    })
    this.begin = [
      'begin',
      `set local statement_timeout = ${options.statementTimeoutMs ?? 10_000}`,
      `set local lock_timeout = ${options.lockTimeoutMs ?? 5_000}`,
      `set local idle_in_transaction_session_timeout = ${options.idleInTransactionTimeoutMs ?? 15_000}`,
    ].join('; ')
    // An `error` event without a listener ends the process. Each comes from a connection; the pool repeats those of
    // free ones.
    this.on('connect', (client) => client.on('error', onConnectionError))
    this.on('error', () => {})
  }
}

/** One that is closed where it could not be opened: `pg` leaves the socket, and the process, to a server that goes on
 * waiting for a password which is not there. */
class Connection extends pg.Client {
  override connect(): Promise<pg.Client>
  override connect(callback: (error: Error) => void): void
  override connect(callback?: (error: Error) => void): Promise<pg.Client> | undefined {
    if (callback === undefined) {
      const opened = super.connect()
      opened.catch(() => void this.end())
      return opened
    }
    super.connect((error: Error | null) => {
      // Without an error there is none to give, whatever the type says.
      callback(error as Error)
      if (error) void this.end()
    })
    return undefined
  }
}

/** Opens no connection until one is needed. `url` is a `postgres://` connection string. */
export function createPool(url: string, options: PoolOptions): DatabasePool {
  return new DatabasePool(url, options)
}

/** Kysely over the pool. Transactions carry the pool's time limits; int8 arrives as a number, timestamps as Date. */
export function createDatabase<Tables>(pool: DatabasePool): Kysely<Tables> {
  return new Kysely<Tables>({ dialect: new LimitedDialect(pool) })
}

type TransactionOptions = {
  /** Default: the database's, normally read committed. */
  isolation?: IsolationLevel
  /** Default 6. */
  attemptsMax?: number
}

/** Runs `work` in a transaction: commits what it returns, rolls back if it throws. A deadlock or a serialization
 * failure rolls back and runs `work` again, after a short random wait, so it must have no effect outside the database.
 *
 * Given a transaction instead of a database, `work` is a part of that one, which alone commits and is repeated.
 *
 * Throws what `work` threw, or the last failure. After an error for which `isDatabaseUnavailable` holds the commit may
 * or may not have happened; it is never repeated here. */
export async function transaction<Tables, Result>(
  db: Kysely<Tables>,
  work: (tx: Transaction<Tables>) => Promise<Result>,
  { isolation, attemptsMax = 6 }: TransactionOptions = {},
): Promise<Result> {
  if (db.isTransaction) return work(db as Transaction<Tables>)
  for (let attempt = 1; ; attempt++) {
    try {
      const builder = db.transaction()
      return await (isolation ? builder.setIsolationLevel(isolation) : builder).execute(work)
    } catch (error) {
      if (attempt >= attemptsMax || !isRetryableTransaction(error)) throw error
      await delay(Math.random() * retryDelayMsMax(attempt))
    }
  }
}

// Doubles, so that rivals in a crowd part; ends at 320 ms, so that a request can afford all attempts.
function retryDelayMsMax(attempt: number): number {
  return Math.min(10 * 2 ** attempt, 320)
}

class LimitedDialect extends PostgresDialect {
  readonly #pool: DatabasePool

  constructor(pool: DatabasePool) {
    super({ pool })
    this.#pool = pool
  }

  override createDriver(): Driver {
    return new LimitedDriver(this.#pool)
  }
}

class LimitedDriver extends PostgresDriver {
  readonly #begin: string

  constructor(pool: DatabasePool) {
    super({ pool })
    this.#begin = pool.begin
  }

  override async beginTransaction(connection: DatabaseConnection, settings: TransactionSettings): Promise<void> {
    const modes = [
      ...(settings.isolationLevel ? [`isolation level ${settings.isolationLevel}`] : []),
      ...(settings.accessMode ? [settings.accessMode] : []),
    ]
    const begin = modes.length > 0 ? this.#begin.replace('begin', `begin ${modes.join(', ')}`) : this.#begin
    await connection.executeQuery(CompiledQuery.raw(begin))
  }
}
