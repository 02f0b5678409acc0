import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Account } from './account.ts'

export const WATCHDOG_SCRIPT = 'watchdog.ts'

/** A program of Postgres that cannot outlive this process. */
type Guarded = {
  /** The watchdog's, which is the program's parent. */
  pid: number | undefined
  /** The end of what it wrote to standard error. */
  lastLines: string[]
  /** Resolves with the exit code when the program has ended; without one when the watchdog was killed, and the program
   * may still run. */
  exited: Promise<number | undefined>
  /** Asks it to end (SIGINT) and waits for that. */
  stop(): Promise<number | undefined>
}

const LINES_KEPT = 20
const LAST_LINES_MS = 500

/** Runs a program as the account, under a watchdog that ends it when this process ends. */
export function spawnGuarded(
  command: string[],
  account: Account | undefined,
  onLine: (line: string) => void = () => {},
): Guarded {
  const watchdog = spawn(
    process.execPath,
    [
      '--disable-warning=ExperimentalWarning',
      join(import.meta.dirname, WATCHDOG_SCRIPT),
      String(process.pid),
      account ? `${account.uid}:${account.gid}` : '-',
      ...command,
    ],
    {
      // A session of its own: neither Ctrl-C nor a killed process group may take the server before us.
      detached: true,
      cwd: '/',
      // Nothing of ours reaches the program: PG* variables would change what it does; its messages are to be English.
      env: { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' },
      stdio: ['pipe', 'ignore', 'pipe'],
    },
  )
  watchdog.stdin.on('error', () => {}) // it ended first

  const lastLines: string[] = []
  createInterface({ input: watchdog.stderr }).on('line', (line) => {
    lastLines.push(line)
    if (lastLines.length > LINES_KEPT) lastLines.shift()
    onLine(line)
  })
  const exited = new Promise<number | undefined>((resolve) => {
    watchdog.once('error', (error) => {
      lastLines.push(error.message)
      resolve(undefined)
    })
    watchdog.once('exit', (code) => {
      // The last lines come after the exit. A program that has lost its watchdog keeps the pipe open.
      const done = () => resolve(code ?? undefined)
      watchdog.once('close', done)
      setTimeout(done, LAST_LINES_MS).unref()
    })
  })
  return {
    pid: watchdog.pid,
    lastLines,
    exited,
    async stop() {
      watchdog.stdin.end()
      return await exited
    },
  }
}
