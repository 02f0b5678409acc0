import { type AddressInfo, createServer } from 'node:net'
import { type Kysely, sql } from 'kysely'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  createDatabase,
  createPool,
  type DatabasePool,
  isDatabaseUnavailable,
  isRetryableTransaction,
  type PoolOptions,
  transaction,
} from '../../src/runtime/database.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { startProxy } from '../support/proxy.ts'
import type { TcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'

type Tables = { accounts: { id: number; balance: number } }

let database: TestDatabase
let proxy: TcpProxy
const pools: DatabasePool[] = []

beforeAll(async () => {
  database = await createTestDatabase()
  proxy = await startProxy(database.url)
  await open({}).query('create table accounts (id int primary key, balance bigint not null)')
})

beforeEach(async () => {
  await open({}).query('truncate accounts; insert into accounts values (1, 100), (2, 100)')
})

afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.end()))
})

afterAll(async () => {
  await proxy.close()
  await database.drop()
})

function open(options: Partial<PoolOptions>, url = database.url): DatabasePool {
  const pool = createPool(url, { max: 4, applicationName: 'test', ...options })
  pools.push(pool)
  return pool
}

function openDatabase(options: Partial<PoolOptions> = {}, url = database.url): Kysely<Tables> {
  return createDatabase<Tables>(open(options, url))
}

async function failure(work: Promise<unknown>): Promise<Error & { code?: string }> {
  return await work.then(
    () => expect.fail('should have failed'),
    (error) => error,
  )
}

describe('values', () => {
  test('bigint arrives as a number, alone and in arrays', async () => {
    const { rows } = await open({}).query("select 9007199254740991::int8 as one, '{{1,null},{-2,3}}'::int8[] as many")
    expect(rows).toEqual([
      {
        one: Number.MAX_SAFE_INTEGER,
        many: [
          [1, null],
          [-2, 3],
        ],
      },
    ])
  })

  test('a bigint that a number cannot hold fails its query instead of being rounded', async () => {
    const pool = open({ max: 1 })
    expect(await failure(pool.query('select 9007199254740993::int8'))).toBeInstanceOf(RangeError)
    expect(await failure(pool.query("select '{9007199254740993}'::int8[]"))).toBeInstanceOf(RangeError)
    expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }])
  })

  test('timestamps arrive as Date, and the parsers of the pg module are left alone', async () => {
    const { rows } = await open({}).query("select timestamptz '2026-01-02 03:04:05.678+00' as at")
    expect(rows).toEqual([{ at: new Date('2026-01-02T03:04:05.678Z') }])
    expect(pg.types.getTypeParser(20, 'text')('5')).toBe('5')
  })
})

describe('transaction', () => {
  test('commits what it returns and rolls back what it throws', async () => {
    const db = openDatabase()
    const left = await transaction(db, async (tx) => {
      await tx.updateTable('accounts').set({ balance: 90 }).where('id', '=', 1).execute()
      return 90
    })
    const error = await failure(
      transaction(db, async (tx) => {
        await tx.updateTable('accounts').set({ balance: 0 }).where('id', '=', 1).execute()
        throw new Error('changed my mind')
      }),
    )
    expect(left).toBe(90)
    expect(error.message).toBe('changed my mind')
    expect(await balances(db)).toEqual([90, 100])
  })

  test('a deadlock is retried until both transfers are done', async () => {
    const db = openDatabase()
    const bothHoldOne = barrier(2)
    let attempts = 0
    const transfer = (from: number, to: number) =>
      transaction(db, async (tx) => {
        attempts++
        await sql`update accounts set balance = balance - 10 where id = ${from}`.execute(tx)
        await bothHoldOne()
        await sql`update accounts set balance = balance + 10 where id = ${to}`.execute(tx)
      })
    await Promise.all([transfer(1, 2), transfer(2, 1)])
    expect(attempts).toBeGreaterThan(2)
    expect(await balances(db)).toEqual([100, 100])
  })

  test('a serialization failure is retried: no update is lost', async () => {
    const db = openDatabase()
    const bothHaveRead = barrier(2)
    let attempts = 0
    const add = () =>
      transaction(
        db,
        async (tx) => {
          attempts++
          const { balance } = await tx
            .selectFrom('accounts')
            .select('balance')
            .where('id', '=', 1)
            .executeTakeFirstOrThrow()
          await bothHaveRead()
          await tx
            .updateTable('accounts')
            .set({ balance: balance + 1 })
            .where('id', '=', 1)
            .execute()
        },
        { isolation: 'serializable' },
      )
    await Promise.all([add(), add()])
    expect(attempts).toBeGreaterThan(2)
    expect(await balances(db)).toEqual([102, 100])
  })

  test('retries end: the failure is thrown when it does not pass', async () => {
    const db = openDatabase()
    let attempts = 0
    const error = await failure(
      transaction(
        db,
        async (tx) => {
          attempts++
          await sql`do $$ begin raise exception 'again' using errcode = '40001'; end $$`.execute(tx)
        },
        { attemptsMax: 3 },
      ),
    )
    expect(attempts).toBe(3)
    expect(error.code).toBe('40001')
  })

  test('a lost answer to the commit is reported as unavailable and the work is not run twice', async () => {
    const db = openDatabase({}, proxy.through(database.url))
    let runs = 0
    const lost = proxy.loseAnswer('commit')
    const error = await failure(
      transaction(db, async (tx) => {
        runs++
        await sql`update accounts set balance = balance - 1 where id = 1`.execute(tx)
      }),
    )
    await lost
    expect(isDatabaseUnavailable(error)).toBe(true)
    expect(isRetryableTransaction(error)).toBe(false)
    expect(runs).toBe(1)
    expect(await balances(openDatabase())).toEqual([99, 100])
  })
})

describe('limits', () => {
  test('a statement in a transaction that takes too long is canceled by the server', async () => {
    const db = openDatabase({ statementTimeoutMs: 50 })
    const error = await failure(transaction(db, (tx) => sql`select pg_sleep(30)`.execute(tx)))
    expect(error.code).toBe('57014')
    expect(isDatabaseUnavailable(error)).toBe(true)
  })

  test('waiting too long for a lock ends with an error', async () => {
    const holder = openDatabase()
    const db = openDatabase({ lockTimeoutMs: 50 })
    const error = await transaction(holder, async (tx) => {
      await sql`select * from accounts where id = 1 for update`.execute(tx)
      return await failure(transaction(db, (other) => sql`update accounts set balance = 0 where id = 1`.execute(other)))
    })
    expect(error.code).toBe('55P03')
    expect(isDatabaseUnavailable(error)).toBe(true)
  })

  test('a transaction whose client falls silent is ended by the server, and its locks with it', async () => {
    const db = openDatabase({ idleInTransactionTimeoutMs: 50 }, proxy.through(database.url))
    const error = await failure(
      transaction(db, async (tx) => {
        await sql`update accounts set balance = 0 where id = 1`.execute(tx)
        await until(async () => (await balances(openDatabase({ max: 1 }), 'for update'))[0] === 100)
        await sql`select 1`.execute(tx)
      }),
    )
    expect(isDatabaseUnavailable(error)).toBe(true)
  })

  test('the limits leave no trace on the connection, which a pooler may give to another client', async () => {
    const pool = open({ max: 1, statementTimeoutMs: 1234, lockTimeoutMs: 1234, idleInTransactionTimeoutMs: 1234 })
    const db = createDatabase<Tables>(pool)
    const show = sql<{ name: string; setting: string }>`
      select name, setting from pg_settings where setting = '1234' order by name`
    const within = await transaction(db, async (tx) => (await show.execute(tx)).rows.map(({ name }) => name))
    expect(within).toEqual(['idle_in_transaction_session_timeout', 'lock_timeout', 'statement_timeout'])
    expect((await show.execute(db)).rows).toEqual([])
  })

  test('the isolation asked for is the isolation used', async () => {
    const db = openDatabase()
    const level = await transaction(
      db,
      async (tx) => (await sql<{ transaction_isolation: string }>`show transaction_isolation`.execute(tx)).rows[0],
      { isolation: 'repeatable read' },
    )
    expect(level).toEqual({ transaction_isolation: 'repeatable read' })
  })

  test('a connection that no longer answers is given up and replaced', async () => {
    const errors: Error[] = []
    const options = { max: 1, answerTimeoutMs: 200, onConnectionError: (error: Error) => errors.push(error) }
    const db = openDatabase(options, proxy.through(database.url))
    await balances(db)
    proxy.silence()
    try {
      expect(isDatabaseUnavailable(await failure(balances(db)))).toBe(true)
      expect(isDatabaseUnavailable(await failure(transaction(db, balances)))).toBe(true)
    } finally {
      proxy.resume()
    }
    await until(() => balances(db))
    expect(errors.length).toBeGreaterThan(0)
  })
})

describe('a database that is away', () => {
  test('refused, cut and terminated connections, a full pool and a full server are all "unavailable"', async () => {
    const through = proxy.through(database.url)
    const pool = open({ max: 1, connectTimeoutMs: 100 }, through)

    const cut = failure(pool.query('select pg_sleep(30)'))
    await until(() => proxy.cutAll() > 0)
    expect(isDatabaseUnavailable(await cut)).toBe(true)

    proxy.refuse()
    const refused = await failure(open({}, through).query('select 1'))
    await proxy.accept()
    expect(refused.code).toBe('ECONNREFUSED')
    expect(isDatabaseUnavailable(refused)).toBe(true)

    const terminated = await failure(open({}).query('select pg_terminate_backend(pg_backend_pid())'))
    expect(terminated.code).toBe('57P01')
    expect(isDatabaseUnavailable(terminated)).toBe(true)

    const only = await pool.connect()
    const full = await failure(pool.query('select 1'))
    only.release()
    expect(isDatabaseUnavailable(full)).toBe(true)

    proxy.silence()
    const silent = await failure(open({ connectTimeoutMs: 100 }, through).query('select 1'))
    proxy.resume()
    expect(isDatabaseUnavailable(silent)).toBe(true)

    await open({}).query(`alter database ${new URL(database.url).pathname.slice(1)} connection limit 0`)
    const role = `limited_${new URL(database.url).pathname.slice(1)}`
    await open({}).query(`create role ${role} login password 'x' connection limit 0`)
    const asRole = new URL(database.url)
    asRole.username = role
    asRole.password = 'x'
    const tooMany = await failure(open({}, asRole.href).query('select 1'))
    await open({}).query(`drop role ${role}`)
    expect(tooMany.code).toBe('53300')
    expect(isDatabaseUnavailable(tooMany)).toBe(true)
  })

  test('errors of ours are not "unavailable"', async () => {
    const pool = open({})
    const faults = [
      await failure(pool.query('select 1 / 0')),
      await failure(pool.query('select nothing')),
      await failure(pool.query('insert into accounts values (1, 1)')),
      new Error('something else'),
      null,
      'ECONNREFUSED',
    ]
    expect(faults.filter(isDatabaseUnavailable)).toEqual([])
    expect(faults.filter(isRetryableTransaction)).toEqual([])
  })

  test('a wrapped error is recognised by its cause', () => {
    const refused = Object.assign(new Error('connect'), { code: 'ECONNREFUSED' })
    expect(isDatabaseUnavailable(new Error('could not read', { cause: refused }))).toBe(true)
    expect(isDatabaseUnavailable(new AggregateError([new Error('x'), refused]))).toBe(true)
    const deadlock = Object.assign(new Error('deadlock'), { code: '40P01' })
    expect(isRetryableTransaction(new Error('could not write', { cause: deadlock }))).toBe(true)
  })

  test('connections cut while free or held do not end the process, and the pool recovers', async () => {
    const errors: Error[] = []
    const pool = open({ onConnectionError: (error) => errors.push(error) }, proxy.through(database.url))
    const held = await pool.connect()
    const other = await pool.connect()
    other.release()
    await until(() => proxy.cutAll() > 0)
    await until(() => errors.length >= 2)
    held.release()
    expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }])
  })
})

test('the start-up message holds nothing that PgBouncer refuses', async () => {
  const received = Promise.withResolvers<Buffer>()
  const listener = createServer((socket) => {
    socket.once('data', (message) => {
      received.resolve(message)
      socket.destroy()
    })
  })
  await new Promise<void>((done) => listener.listen(0, '127.0.0.1', done))
  const { port } = listener.address() as AddressInfo
  const limits = { statementTimeoutMs: 1, lockTimeoutMs: 1, idleInTransactionTimeoutMs: 1 }
  await failure(open(limits, `postgres://user@127.0.0.1:${port}/shop`).query('select 1'))
  listener.close()
  // Length and protocol version, 4 bytes each, then names and values in turn, each ended by a zero.
  const words = (await received.promise).subarray(8).toString('utf8').split('\0')
  expect(words.filter((word, i) => i % 2 === 0 && word !== '').sort()).toEqual([
    'application_name',
    'client_encoding',
    'database',
    'user',
  ])
})

async function balances(db: Kysely<Tables>, lock = ''): Promise<number[]> {
  const { rows } = await sql<Tables['accounts']>`select * from accounts order by id ${sql.raw(lock)}`.execute(db)
  return rows.map(({ balance }) => balance)
}

/** Lets callers through once `count` of them have come, and everybody after. */
function barrier(count: number): () => Promise<void> {
  let arrived = 0
  return async () => {
    arrived++
    await until(() => arrived >= count, { everyMs: 1 })
  }
}
