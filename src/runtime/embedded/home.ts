import { execFile } from 'node:child_process'
import { chown, lstat, mkdir, mkdtemp, realpath, rmdir, stat, symlink, unlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { hasCode } from '../error-code.ts'
import { type Account, accountOfUid, canReach, serverAccount } from './account.ts'

/** Folder that holds all of one embedded server, and the account that owns it (undefined: our own). */
export type Home = { path: string; account: Account | undefined }

// Where a server lives whose account cannot enter the data folder; the first that can be written.
const OUTSIDE = ['/var/lib', '/var/tmp', tmpdir()]

/** Finds or makes `<dataDir>/postgres`, closed to others. Where the server's account cannot enter `dataDir` (root's
 * project under a closed /root), that is a link to a folder outside, which every later start follows; whoever removes
 * `dataDir` starts afresh. Files that are already there decide which account the server runs as. */
export async function openHome(dataDir: string): Promise<Home> {
  await mkdir(dataDir, { recursive: true })
  const link = join(await realpath(dataDir), 'postgres')
  const found = await existing(link)
  const account = await serverAccount()
  if (!account) return { path: found?.path ?? (await ownFolder(link)), account }
  if (!found) return { path: await folderFor(account, link), account }

  const owner = found.uid === 0 ? account : accountOfUid(found.uid, found.gid)
  // Copied or restored by root.
  if (found.uid === 0) await promisify(execFile)('chown', ['-R', `${owner.uid}:${owner.gid}`, found.path])
  if (!(await canReach(owner, found.path))) {
    throw new Error(
      `the embedded Postgres must run as ${owner.name}, which cannot enter ${found.path}; ` +
        'open the folders above it for others (chmod o+x), move the data folder, or set DATABASE_URL',
    )
  }
  return { path: found.path, account: owner }
}

async function existing(link: string): Promise<{ path: string; uid: number; gid: number } | undefined> {
  try {
    const { uid, gid } = await stat(link)
    const own = process.getuid?.()
    if (own !== undefined && own !== 0 && own !== uid) {
      throw new Error(
        `${link} belongs to another user (uid ${uid}); start the service as that user or as root, or use another data folder`,
      )
    }
    return { path: await realpath(link), uid, gid }
  } catch (error) {
    if (hasCode(error, 'EACCES')) {
      throw new Error(
        `${link} leads to a folder of another user; start the service as root, or use another data folder`,
      )
    }
    if (!hasCode(error, 'ENOENT')) throw error
    // A link whose folder is gone would stand in the way of the new one.
    if (await isDangling(link)) await unlink(link)
    return undefined
  }
}

async function isDangling(link: string): Promise<boolean> {
  try {
    return (await lstat(link)).isSymbolicLink()
  } catch {
    return false
  }
}

async function ownFolder(path: string): Promise<string> {
  await mkdir(path, { recursive: true, mode: 0o700 })
  return path
}

async function folderFor(account: Account, link: string): Promise<string> {
  if (await canReach(account, join(link, '..'))) {
    await ownFolder(link)
    await chown(link, account.uid, account.gid)
    return link
  }
  const outside = await outsideFolder(account)
  try {
    await symlink(outside, link)
    return outside
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
    await rmdir(outside) // another process was faster
    return await realpath(link)
  }
}

async function outsideFolder(account: Account): Promise<string> {
  let refusal: unknown
  for (const base of OUTSIDE) {
    try {
      const path = await mkdtemp(join(base, 'embedded-postgres-'))
      await chown(path, account.uid, account.gid)
      if (await canReach(account, path)) return path
      await rmdir(path)
    } catch (error) {
      refusal = error
    }
  }
  throw new Error(`found no folder that ${account.name} can enter for the embedded Postgres`, { cause: refusal })
}
