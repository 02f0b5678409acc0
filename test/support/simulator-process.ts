/** The simulator as a process of its own, to be killed while it is in use. Its books survive that. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Books } from './books.ts'
import { freePort } from './free-port.ts'
import { temporaryFolder } from './temporary-folder.ts'
import { until } from './until.ts'

export interface SimulatorProcess {
  /** Stays the same over restarts. */
  url: string
  books: Books
  /** Resolves when it answers. */
  start(): Promise<void>
  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void>
  /** Kills it, if it runs, and removes its books. */
  remove(): Promise<void>
}

/** Prepares one; nothing listens there before `start`. */
export async function simulatorProcess(): Promise<SimulatorProcess> {
  const dataDir = await temporaryFolder('simulator')
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const books = new Books(url)
  let child: ChildProcess | undefined
  const kill = async () => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }
  return {
    url,
    books,
    kill,
    async start() {
      child = spawn(process.execPath, [join(import.meta.dirname, '../../src/simulator/main.ts')], {
        env: { PATH: process.env.PATH, SIM_PORT: String(port), DATA_DIR: dataDir, STOP_WITH_STDIN: 'true' },
        stdio: ['pipe', 'ignore', 'inherit'],
      })
      await until(() => books.control('GET', '/faults'), { what: 'the simulator to answer' })
    },
    async remove() {
      await kill()
      await rm(dataDir, { recursive: true })
    },
  }
}
