import { randomBytes } from 'node:crypto'
import { chown, mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from '../error-code.ts'
import type { Account } from './account.ts'
import type { Binaries } from './binaries.ts'
import { spawnGuarded } from './guarded.ts'
import type { Home } from './home.ts'

/** A database cluster on disk and the superuser's password. */
type Cluster = { data: string; user: string; password: string }

const USER = 'postgres'
// Lies in the data folder, so that the two cannot be parted.
const PASSWORD_FILE = 'superuser-password'

/** Opens `<home>/data`, or makes it: initialised beside its place and moved there only when complete, so that a crash
 * at any moment leaves either a whole cluster or none. */
export async function openCluster(home: Home, binaries: Binaries, unsafeFast: boolean): Promise<Cluster> {
  const data = join(home.path, 'data')
  await removeLeftovers(home.path)
  if (!(await isComplete(data))) {
    await moveAside(data)
    await create(home, data, binaries, unsafeFast)
  }
  return { data, user: USER, password: await readPassword(data) }
}

async function isComplete(data: string): Promise<boolean> {
  if (await exists(join(data, PASSWORD_FILE))) return true
  if (await exists(join(data, 'global', 'pg_control'))) {
    throw new Error(
      `${data} holds a database, but the file ${PASSWORD_FILE} with its password is missing; ` +
        'put it back, or remove the folder to start afresh',
    )
  }
  return false // nothing, or what an interrupted initdb has left: no control file, no database
}

/** Removes an incomplete folder. Moved first, then looked at again: another process may just have completed it. */
async function moveAside(data: string): Promise<void> {
  const aside = `${data}-${randomBytes(4).toString('hex')}.incomplete`
  try {
    await rename(data, aside)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return
    throw error
  }
  if (await isComplete(aside)) await rename(aside, data)
  else await rm(aside, { recursive: true })
}

async function create(home: Home, data: string, binaries: Binaries, unsafeFast: boolean): Promise<void> {
  const name = `${process.pid}-${randomBytes(4).toString('hex')}`
  const unfinished = join(home.path, `unfinished-${name}`)
  const passwordFile = join(unfinished, PASSWORD_FILE)
  const given = join(home.path, `unfinished-${name}.password`)
  const password = randomBytes(24).toString('base64url')
  try {
    await mkdir(unfinished, { mode: 0o700 })
    await writePrivately(given, password, home.account)
    if (home.account) await chown(unfinished, home.account.uid, home.account.gid)
    await initdb(binaries.initdb, unfinished, given, home.account, unsafeFast)
    await writePrivately(passwordFile, password, home.account)
    await syncFolder(unfinished)
    await rename(unfinished, data)
    await syncFolder(home.path)
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true })
    // Another process was faster: its cluster serves as well.
    if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error
  } finally {
    await rm(given, { force: true })
  }
}

async function initdb(
  program: string,
  data: string,
  passwordFile: string,
  account: Account | undefined,
  fast: boolean,
) {
  const initdb = spawnGuarded(
    [
      program,
      ...['--pgdata', data, '--username', USER, '--pwfile', passwordFile],
      // A password for local users too: everybody on the machine can reach the port.
      ...['--auth', 'scram-sha-256', '--encoding', 'UTF8'],
      // The server's own, so that sort order does not change with the operating system's libraries.
      ...['--locale-provider', 'builtin', '--builtin-locale', 'C.UTF-8', '--locale', 'C'],
      ...(fast ? ['--no-sync'] : []),
    ],
    account,
  )
  if ((await initdb.exited) === 0) return
  throw new Error(
    `could not make a database in ${data}, because initdb ended with:\n${initdb.lastLines.join('\n')}\n` +
      'The embedded Postgres needs macOS or a Linux with glibc, and a user whom the system knows by name; ' +
      'with DATABASE_URL a Postgres of your own is used',
  )
}

async function readPassword(data: string): Promise<string> {
  return (await readFile(join(data, PASSWORD_FILE), 'utf8')).trim()
}

async function writePrivately(path: string, content: string, account: Account | undefined): Promise<void> {
  await writeFile(path, content, { mode: 0o600, flag: 'wx', flush: true })
  if (account) await chown(path, account.uid, account.gid)
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

/** What starts that were killed have left behind, except those still under way. */
async function removeLeftovers(home: string): Promise<void> {
  for (const name of await readdir(home)) {
    const pid = Number(/^unfinished-(\d+)-/.exec(name)?.[1])
    if (pid > 0 && !isAlive(pid)) await rm(join(home, name), { recursive: true, force: true, maxRetries: 5 })
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return hasCode(error, 'EPERM')
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path)
    return true
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return false
    throw error
  }
}
