import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** The operating system's account that the server runs as, where that is not our own. */
export type Account = { uid: number; gid: number; name: string }

/** Postgres refuses to run as root, so root hands it to `postgres`, else to `nobody`; for everybody else the server
 * runs as they do. Throws when root finds neither account. */
export async function serverAccount(): Promise<Account | undefined> {
  if (process.getuid?.() !== 0) return undefined
  for (const name of ['postgres', 'nobody']) {
    const account = await lookUp(name)
    if (account && account.uid !== 0) return account
  }
  throw new Error(
    'Postgres refuses to run as root, and this machine has neither a "postgres" nor a "nobody" account to run it as; ' +
      'start the service as an ordinary user, or set DATABASE_URL to a Postgres of your own',
  )
}

/** The account with this numeric id, named after it. */
export function accountOfUid(uid: number, gid: number): Account {
  return { uid, gid, name: `uid ${uid}` }
}

async function lookUp(name: string): Promise<Account | undefined> {
  try {
    const [uid, gid] = await Promise.all([run('id', ['-u', name]), run('id', ['-g', name])])
    return { name, uid: Number(uid.stdout), gid: Number(gid.stdout) }
  } catch {
    return undefined // no such account
  }
}

/** Whether the account can enter a folder or execute a file. Asked by trying, as that account: modes of all parent
 * folders, access lists and mount options count alike. */
export async function canReach(account: Account, path: string): Promise<boolean> {
  try {
    await run('/bin/sh', ['-c', 'test -x "$1" && test -r "$1"', 'sh', path], {
      cwd: '/',
      env: {},
      uid: account.uid,
      gid: account.gid,
    })
    return true
  } catch (error) {
    if ((error as { code?: unknown }).code === 1) return false
    throw new Error(
      `cannot start a process as ${account.name}, which Postgres needs because it refuses to run as root ` +
        `(${error instanceof Error ? error.message : String(error)}); start the service as an ordinary user, or set DATABASE_URL`,
    )
  }
}
