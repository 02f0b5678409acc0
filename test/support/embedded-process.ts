/** A process of its own that holds an embedded Postgres, to be killed.
 *
 * As a program (`node embedded-process.ts <dataDir> [path of embedded.ts]`) it prints one line of JSON, `{url, port}`
 * or `{error}`, and then waits for its end. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

export type EmbeddedProcess = {
  node: ChildProcess
  url: string
  port: number
}

export type ProcessOptions = {
  /** Runs as this user; only root may choose. */
  uid?: number
  gid?: number
  /** A copy of src/runtime/embedded.ts. */
  module?: string
}

/** Starts the program and resolves when its Postgres is ready; throws what it could not do. */
export async function startEmbeddedProcess(dataDir: string, options: ProcessOptions = {}): Promise<EmbeddedProcess> {
  const node = spawnEmbeddedProcess(dataDir, options)
  let output = ''
  node.stdout?.setEncoding('utf8').on('data', (text) => {
    output += text
  })
  await Promise.race([once(node.stdout as NodeJS.ReadableStream, 'data'), once(node, 'close')])
  const answer = JSON.parse(output.split('\n')[0] || '{"error":"no answer"}')
  if (answer.error) throw new Error(answer.error)
  return { node, ...answer }
}

/** Starts the program and waits for nothing. */
export function spawnEmbeddedProcess(dataDir: string, { module, ...account }: ProcessOptions = {}): ChildProcess {
  const program = fileURLToPath(import.meta.url)
  return spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', program, dataDir, ...(module ? [module] : [])],
    {
      cwd: '/',
      stdio: ['ignore', 'pipe', 'inherit'],
      ...account,
    },
  )
}

/** SIGKILL; resolves when the process is gone. */
export async function kill9(node: ChildProcess): Promise<void> {
  const gone = once(node, 'exit')
  node.kill('SIGKILL')
  await gone
}

/** A process that has nothing to do with Postgres. */
export function spawnBystander(): ChildProcess {
  return spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' })
}

/** Linux: the parent's process id (proc(5): the second field after the name in brackets). */
export async function parentOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/stat`, 'utf8')
  return Number(status.slice(status.lastIndexOf(')') + 2).split(' ')[1])
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , dataDir = '', module = '../../src/runtime/embedded.ts'] = process.argv
  const { startEmbeddedPostgres } = (await import(module)) as typeof import('../../src/runtime/embedded.ts')
  const ignore = () => {}
  try {
    const { url, port } = await startEmbeddedPostgres({
      dataDir,
      unsafeFast: true,
      log: { debug: ignore, info: ignore, warn: ignore, error: ignore },
    })
    console.log(JSON.stringify({ url, port }))
  } catch (error) {
    console.log(JSON.stringify({ error: error instanceof Error ? error.message : String(error) }))
    process.exitCode = 1
  }
}
