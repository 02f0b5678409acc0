import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type EmbeddedOptions, type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/runtime/embedded.ts'
import {
  kill9,
  parentOf,
  spawnBystander,
  spawnEmbeddedProcess,
  startEmbeddedProcess,
} from '../support/embedded-process.ts'
import { quiet } from '../support/quiet.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { isRunning, postmasterPid } from '../support/throwaway-postgres.ts'
import { until } from '../support/until.ts'

// Making a database takes a second, so all tests use one but those about its making.
let shared: string
let dataDir: string
const folders: string[] = []
const running: EmbeddedPostgres[] = []

beforeAll(async () => {
  shared = await newFolder()
})

beforeEach(() => {
  dataDir = shared
})

afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.stop()))
  const served = async () => (await list(join(dataDir, 'postgres', 'data'))).includes('postmaster.pid')
  await until(async () => !(await served()), { what: 'no server is left on the folder' })
})

afterAll(async () => {
  for (const folder of folders) await rm(folder, { recursive: true })
})

async function newFolder(): Promise<string> {
  const folder = await temporaryFolder('embedded test, ü')
  folders.push(folder)
  return folder
}

async function start(options: Partial<EmbeddedOptions> = {}): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({ dataDir, log: quiet, unsafeFast: true, ...options })
  running.push(server)
  return server
}

async function query(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  try {
    const result = await client.query(text)
    return result.rows
  } finally {
    await client.end()
  }
}

async function remember(url: string): Promise<void> {
  await query(url, 'drop table if exists memory; create table memory (fact text); insert into memory values (1)')
}

async function remembers(url: string): Promise<boolean> {
  return (await query(url, 'select * from memory')).length === 1
}

async function occupy(port: number): Promise<Server> {
  const server = createServer()
  await new Promise<void>((done) => server.listen(port, '127.0.0.1', done))
  return server
}

async function list(folder: string): Promise<string[]> {
  return await readdir(folder).catch(() => [])
}

const pidFile = () => join(dataDir, 'postgres', 'data', 'postmaster.pid')

test('keeps data over restarts, on the same port, in a folder with spaces and other letters', async () => {
  const first = await start()
  await remember(first.url)
  await first.stop()
  const second = await start()
  expect(second.url).toBe(first.url)
  expect(await remembers(second.url)).toBe(true)
})

test('commits wait for the disk, text is UTF-8 sorted the same everywhere, and unsafeFast is what it says', async () => {
  const settings = `select name, setting from pg_settings
    where name in ('fsync', 'synchronous_commit', 'full_page_writes', 'listen_addresses', 'unix_socket_directories')`
  const { url, stop } = await start({ unsafeFast: false })
  expect(Object.fromEntries((await query(url, settings)).map((row) => Object.values(row as object)))).toEqual({
    fsync: 'on',
    full_page_writes: 'on',
    synchronous_commit: 'on',
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
  })
  const locale = `select pg_encoding_to_char(encoding) as encoding, datlocprovider as provider, datlocale as locale
    from pg_database where datname = current_database()`
  expect(await query(url, locale)).toEqual([{ encoding: 'UTF8', provider: 'b', locale: 'C.UTF-8' }])
  await stop()
  const fast = await start()
  expect(await query(fast.url, 'show fsync')).toEqual([{ fsync: 'off' }])
})

test('other users of the machine need the password, which only the owner can read', async () => {
  const { url } = await start()
  const wrong = new URL(url)
  wrong.password = 'guess'
  await expect(query(wrong.href, 'select 1')).rejects.toMatchObject({ code: '28P01' })
  const { mode } = await stat(join(dataDir, 'postgres', 'data', 'superuser-password'))
  expect(mode & 0o777).toBe(0o600)
})

test('stop can be called twice, and a start can follow at once, many times', async () => {
  for (let round = 0; round < 5; round++) {
    const { stop } = await start()
    await Promise.all([stop(), stop()])
    await stop()
  }
})

describe('ports', () => {
  test('takes another port when the one of the last start is taken', async () => {
    const first = await start()
    await first.stop()
    const other = await occupy(first.port)
    try {
      const second = await start()
      expect(second.port).not.toBe(first.port)
      expect(await query(second.url, 'select 1 as one')).toEqual([{ one: 1 }])
    } finally {
      other.close()
    }
  })

  test('waits for a given port to become free', async () => {
    const other = await occupy(0)
    const { port } = other.address() as AddressInfo
    const starting = start({ port })
    const log: string[] = []
    void starting.then(() => log.push('started'))
    await until(async () => (await list(join(dataDir, 'postgres', 'data'))).length > 0)
    expect(log).toEqual([])
    other.close()
    expect((await starting).port).toBe(port)
  })
})

describe('a folder in use', () => {
  test('is refused by name of the process, which is left alone', async () => {
    const holder = await startEmbeddedProcess(dataDir)
    try {
      await expect(start()).rejects.toThrow(`in use by process ${holder.node.pid} `)
      expect(await query(holder.url, 'select 1 as one')).toEqual([{ one: 1 }])
    } finally {
      await kill9(holder.node)
    }
  })

  test('of two starts at the same moment on a new folder one wins, the other says who', async () => {
    dataDir = await newFolder()
    const results = await Promise.allSettled([startEmbeddedProcess(dataDir), startEmbeddedProcess(dataDir)])
    const won = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
    const lost = results.flatMap((result) => (result.status === 'rejected' ? [String(result.reason)] : []))
    try {
      expect(won).toHaveLength(1)
      expect(lost).toEqual([expect.stringContaining(`in use by process ${won[0]?.node.pid} `)])
      expect(await query(won[0]?.url ?? '', 'select 1 as one')).toEqual([{ one: 1 }])
    } finally {
      for (const { node } of won) await kill9(node)
    }
    const left = (await list(join(dataDir, 'postgres'))).filter((name) => !name.startsWith('binaries-'))
    expect(left.sort()).toEqual(['data', 'port'])
  })
})

describe('after a crash', () => {
  test('Postgres ends when its Node process is killed', async () => {
    const holder = await startEmbeddedProcess(dataDir)
    const server = await postmasterPid(dataDir)
    await kill9(holder.node)
    await until(() => !isRunning(server), { what: 'Postgres ends' })
  })

  test('a start at once after the kill waits for that end and finds all committed data', async () => {
    const holder = await startEmbeddedProcess(dataDir)
    await remember(holder.url)
    await kill9(holder.node)
    const { url } = await start()
    expect(await remembers(url)).toBe(true)
  })

  test.runIf(process.platform === 'linux')(
    'a server that lost both its Node process and its watchdog is stopped by the next start',
    async () => {
      const holder = await startEmbeddedProcess(dataDir)
      await remember(holder.url)
      const orphan = await postmasterPid(dataDir)
      const watchdog = await parentOf(orphan)
      process.kill(watchdog, 'SIGSTOP') // so that it cannot do its work
      await kill9(holder.node)
      process.kill(watchdog, 'SIGKILL')
      expect(isRunning(orphan)).toBe(true)
      const { url } = await start()
      await until(() => !isRunning(orphan), { what: 'the orphan is gone' })
      expect(await remembers(url)).toBe(true)
    },
  )

  test('a killed server is started again on its port, and has all committed data', async () => {
    const { url, stop } = await start()
    await remember(url)
    const killed = await postmasterPid(dataDir)
    process.kill(killed, 'SIGKILL')
    expect(await until(() => remembers(url))).toBe(true)
    expect(await postmasterPid(dataDir)).not.toBe(killed)
    await stop()
    await expect(query(url, 'select 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })

  test.runIf(process.platform === 'linux')('a killed watchdog is replaced, and stop leaves no server', async () => {
    const { url, stop } = await start()
    await remember(url)
    const first = await postmasterPid(dataDir)
    process.kill(await parentOf(first), 'SIGKILL')
    const second = await until(async () => {
      const pid = await postmasterPid(dataDir)
      return pid !== first && (await remembers(url)) && pid
    })
    process.kill(await parentOf(second), 'SIGKILL')
    await stop()
    await until(() => !isRunning(second), { what: 'the server without a watchdog is gone' })
  })

  test('a lock file whose process is gone, or is another program by now, does not stand in the way', async () => {
    const first = await start()
    await remember(first.url)
    const left = await readFile(pidFile(), 'utf8')
    await first.stop()
    const bystander = spawnBystander()
    for (const pid of [2 ** 22 + 1, process.pid, bystander.pid]) {
      await writeFile(pidFile(), left.replace(/^\d+/, String(pid)))
      const { url, stop } = await start()
      expect(await remembers(url)).toBe(true)
      await stop()
    }
    expect(bystander.exitCode).toBeNull()
    await kill9(bystander)
  })

  test('a half-finished initdb is done again', async () => {
    dataDir = await newFolder()
    const data = join(dataDir, 'postgres', 'data')
    await mkdir(join(data, 'base', '1'), { recursive: true })
    await writeFile(join(data, 'PG_VERSION'), '18\n')
    const { url } = await start()
    expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }])
  })

  test('a process killed during initdb leaves nothing that a later start would trip over', async () => {
    dataDir = await newFolder()
    const node = spawnEmbeddedProcess(dataDir)
    const home = join(dataDir, 'postgres')
    const unfinished = async () => (await list(home)).filter((name) => name.startsWith('unfinished-'))
    const begun = async (name: string) => (await list(join(home, name))).includes('base')
    await until(async () => (await Promise.all((await unfinished()).map(begun))).includes(true))
    await kill9(node)
    const { url } = await start()
    expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }])
    expect(await unfinished()).toEqual([])
  })
})

test('a database without its password is not overwritten', async () => {
  dataDir = await newFolder()
  const { stop } = await start()
  await stop()
  await rm(join(dataDir, 'postgres', 'data', 'superuser-password'))
  await expect(start()).rejects.toThrow(/superuser-password.* is missing/)
  expect((await stat(join(dataDir, 'postgres', 'data', 'PG_VERSION'))).isFile()).toBe(true)
})

test('why the server cannot start is in the error', async () => {
  dataDir = await newFolder()
  const { stop } = await start()
  await stop()
  await writeFile(join(dataDir, 'postgres', 'data', 'postgresql.conf'), 'no_such_setting = 1\n')
  await expect(start()).rejects.toThrow(/no_such_setting/)
})
