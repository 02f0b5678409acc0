import { execFile } from 'node:child_process'
import { readFile, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { hasCode } from '../error-code.ts'
import { WATCHDOG_SCRIPT } from './guarded.ts'

/** `cluster_name` of the servers started here; visible in their command line. */
export const CLUSTER_NAME = 'embedded'

/** What a server writes about itself into its data folder. */
type PidFile = { pid: number; ready: boolean }

/** A command line's arguments are joined by spaces: that is all that `ps` tells. */
type Process = { parent: number; command: string }

// A fast shutdown ends with a checkpoint: seconds on a slow disk. An orphan that takes longer is stopped harder.
const PATIENCE_MS = 30_000

/** `postmaster.pid`, whose first line is the pid and eighth the status (src/include/utils/pidfile.h). */
export async function readPidFile(data: string): Promise<PidFile | undefined> {
  try {
    const lines = (await readFile(join(data, 'postmaster.pid'), 'utf8')).split('\n')
    const pid = Number.parseInt(lines[0] ?? '', 10)
    return pid > 0 ? { pid, ready: lines[7]?.trim() === 'ready' } : undefined
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}

/** Returns once no server runs on the folder. A server whose starting process is gone is stopped, or awaited where its
 * watchdog is already doing that; a lock file left by a crash whose pid now belongs to another program is removed.
 *
 * Throws when a living process uses the folder, naming it. */
export async function freeDataFolder(data: string): Promise<void> {
  const since = Date.now()
  let asked: 'SIGINT' | 'SIGQUIT' | undefined
  for (;;) {
    const file = await readPidFile(data)
    if (!file) return
    const server = await processOf(file.pid)
    if (!server) return // Postgres itself removes the lock file of a process that is gone
    if (!isServerOf(data, server)) {
      await removeStale(data, file.pid)
      return
    }
    const watchdog = await processOf(server.parent)
    const owner = watchdog && ownerOf(watchdog)
    if (owner?.alive) throw inUse(data, `process ${owner.pid} (its Postgres is process ${file.pid})`)
    if (!server.command.includes(` cluster_name=${CLUSTER_NAME} `)) {
      throw inUse(data, `a Postgres that was not started from here, process ${file.pid}`)
    }
    const late = Date.now() - since > PATIENCE_MS
    if (late && asked !== 'SIGQUIT') {
      asked = 'SIGQUIT'
      process.kill(file.pid, asked)
    } else if (!owner && !asked) {
      asked = 'SIGINT'
      process.kill(file.pid, asked)
    }
    if (Date.now() - since > 2 * PATIENCE_MS) throw inUse(data, `process ${file.pid}, which does not stop`)
    await delay(50)
  }
}

/** Whether the process was started by this parent. */
export async function isChildOf(parent: number | undefined, pid: number): Promise<boolean> {
  return parent !== undefined && (await processOf(pid))?.parent === parent
}

function inUse(data: string, by: string): Error {
  return new Error(`the data folder ${data} is in use by ${by}; stop it first, or use another data folder`)
}

function isServerOf(data: string, { command }: Process): boolean {
  return command.includes(`/postgres -D ${data} `)
}

/** The process that a watchdog serves. The watchdog's parent changes when that process ends, so a pid that has been
 * given to another program since is not mistaken for it. */
function ownerOf({ parent, command }: Process): { pid: number; alive: boolean } | undefined {
  const [, pid] = command.split(`/${WATCHDOG_SCRIPT} `)
  return pid === undefined ? undefined : { pid: Number.parseInt(pid, 10), alive: parent === Number.parseInt(pid, 10) }
}

async function removeStale(data: string, pid: number): Promise<void> {
  const now = await readPidFile(data)
  if (now?.pid === pid) await unlink(join(data, 'postmaster.pid'))
}

async function processOf(pid: number): Promise<Process | undefined> {
  try {
    return process.platform === 'linux' ? await fromProc(pid) : await fromPs(pid)
  } catch {
    return undefined // no such process
  }
}

async function fromProc(pid: number): Promise<Process> {
  const [status, command] = await Promise.all([
    readFile(`/proc/${pid}/stat`, 'utf8'),
    readFile(`/proc/${pid}/cmdline`, 'utf8'),
  ])
  // "pid (name) state parent ...", and the name may itself contain spaces and brackets (proc(5)).
  const [state, parent] = status.slice(status.lastIndexOf(')') + 2).split(' ')
  if (state === 'Z') throw new Error('ended, not yet collected by its parent')
  return { parent: Number(parent), command: command.replaceAll('\0', ' ') }
}

async function fromPs(pid: number): Promise<Process> {
  const { stdout } = await promisify(execFile)('ps', ['-ww', '-o', 'ppid=,command=', '-p', String(pid)])
  const [, parent, command = ''] = /^\s*(\d+)\s+(.*)$/m.exec(stdout) ?? []
  return { parent: Number(parent), command }
}
