/** Programs of the harness as processes of their own. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { openSync } from 'node:fs'

export interface Program {
  pid: number
  /** Null where it does not listen. */
  url: string | null
  /** SIGTERM; resolves when it has ended. */
  stop(): Promise<void>
  /** SIGKILL; resolves when it has ended. */
  kill(): Promise<void>
}

/** Starts a program that sends `{url}` once it is ready; what it prints goes to `logFile`. Throws where it ends first. */
export async function startProgram(path: string, env: Record<string, string>, logFile: string): Promise<Program> {
  const log = openSync(logFile, 'a')
  const child = fork(path, [], {
    env: { PATH: process.env.PATH, ...env },
    execArgv: ['--disable-warning=ExperimentalWarning'],
    stdio: ['ignore', log, log, 'ipc'],
  })
  const gone = once(child, 'exit')
  const ready = once(child, 'message') as Promise<[{ url: string | null }]>
  const first = await Promise.race([ready, gone.then(() => undefined)])
  if (first === undefined) throw new Error(`${path} ended at its start; see ${logFile}`)
  return {
    pid: child.pid as number,
    url: first[0].url,
    stop: () => end(child, gone, 'SIGTERM'),
    kill: () => end(child, gone, 'SIGKILL'),
  }
}

async function end(child: ChildProcess, gone: Promise<unknown>, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) child.kill(signal)
  await gone
}
