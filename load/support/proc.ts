/** What processes have used, read from Linux's /proc; elsewhere nothing is known. */
import { readdir, readFile } from 'node:fs/promises'

// USER_HZ, which is 100 on every architecture that Node runs on (man 5 proc, "utime").
const ticksPerSecond = 100

interface Usage {
  pid: number
  parent: number
  /** Of the process itself. */
  ownSeconds: number
  /** Of children that have ended. */
  childrenSeconds: number
}

/** CPU seconds that a process and all its descendants have used; null where /proc is missing or the process has ended. */
export async function cpuSeconds(pid: number): Promise<number | null> {
  const all = await usages()
  const root = all.find((each) => each.pid === pid)
  if (root === undefined) return null
  const family = [root]
  for (const member of family) family.push(...all.filter((each) => each.parent === member.pid))
  return family.reduce((sum, { ownSeconds, childrenSeconds }) => sum + ownSeconds + childrenSeconds, 0)
}

/** Resident memory, bytes; null where unknown. */
export async function residentBytes(pid: number): Promise<number | null> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  const kilobytes = /^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]
  return kilobytes === undefined ? null : Number(kilobytes) * 1024
}

async function usages(): Promise<Usage[]> {
  const entries = await readdir('/proc').catch(() => [])
  const found = await Promise.all(entries.filter((name) => /^\d+$/.test(name)).map((name) => usage(Number(name))))
  return found.filter((each) => each !== null)
}

async function usage(pid: number): Promise<Usage | null> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  // The name, in brackets, may contain anything; what follows it starts with the third field.
  const fields = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
  const [, parent, , , , , , , , , , user, system, childrenUser, childrenSystem] = fields
  if (parent === undefined || user === undefined || system === undefined) return null
  return {
    pid,
    parent,
    ownSeconds: (user + system) / ticksPerSecond,
    childrenSeconds: ((childrenUser ?? 0) + (childrenSystem ?? 0)) / ticksPerSecond,
  }
}
