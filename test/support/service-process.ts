/**
 * The service as a process of its own, to be killed, frozen, or stopped at a named step: what another machine, a crash
 * or a stalled process does to the others on the same database.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { Client, keys } from './client.ts'
import { until } from './until.ts'

/** What happens at a checkpoint (see `src/runtime/checkpoint.ts`): once, unless `every`; after `skip` passes. */
export type Reaction = { skip?: number; every?: true } & (
  | { do: 'kill' }
  /** Stays there until `resume`. */
  | { do: 'pause' }
  | { do: 'throw' }
  | { do: 'delay'; ms: number }
)
export type Reactions = Record<string, Reaction>

export type Command = { arm: Reactions; id: number } | { resume: string }
export type Message =
  | { listening: string; operations: string }
  | { failed: string }
  | { paused: string }
  /** Delayed there. */
  | { reached: string }
  /** The process dies now. */
  | { killed: string }
  | { armed: number }

const died = new Set<string>()

/** Every point at which a process of this test file has died by SIGKILL, whether it paused there or was armed to die. */
export function deaths(): ReadonlySet<string> {
  return died
}

export interface ServiceProcess {
  pid: number
  url: string
  /** Where METRICS_PORT listens; '' without it. */
  operationsUrl: string
  /** Its API with a storefront key. */
  shop: Client
  /** Lines of its log (LOG_LEVEL in the settings), as it wrote them. */
  log: string[]
  /** Further reactions; resolves when they are in force. */
  arm(reactions: Reactions): Promise<void>
  /** Resolves when it has paused or delayed at the point as often as this, counted since the start. */
  reached(point: string, times?: number): Promise<void>
  /** Lets whatever has paused at the point go on. */
  resume(point: string): void
  /** SIGSTOP: it holds its sockets and connections and does nothing. */
  freeze(): void
  /** SIGCONT. */
  thaw(): void
  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void>
  /** Resolves when it is gone, however it ended. */
  gone: Promise<void>
  /** SIGTERM; resolves when it has drained, with its exit code. */
  stop(): Promise<number | null>
}

/** Starts it with the settings as its environment (`scene.env()`) and resolves when it listens; throws what it could not do. */
export async function startServiceProcess(
  settings: Record<string, string>,
  reactions: Reactions = {},
): Promise<ServiceProcess> {
  const child = fork(join(import.meta.dirname, 'service-entry.ts'), [], {
    env: { PATH: process.env.PATH, ...settings, CHECKPOINTS: JSON.stringify(reactions) },
    execArgv: ['--disable-warning=ExperimentalWarning'],
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  const log = linesOf(child)
  const reachedPoints: string[] = []
  /** Where something has paused that was never resumed. */
  const heldPoints = new Set<string>()
  const armed: number[] = []
  const gone = once(child, 'exit').then(() => {
    if (child.signalCode === 'SIGKILL') for (const point of heldPoints) died.add(point)
  })
  const { listening: url, operations: operationsUrl } = await new Promise<{
    listening: string
    operations: string
  }>((resolve, reject) => {
    child.on('message', (message: Message) => {
      if ('listening' in message) resolve(message)
      else if ('failed' in message) reject(new Error(message.failed))
      else if ('reached' in message) reachedPoints.push(message.reached)
      else if ('killed' in message) died.add(message.killed)
      else if ('paused' in message) {
        reachedPoints.push(message.paused)
        heldPoints.add(message.paused)
      } else armed.push(message.armed)
    })
    void gone.then(() => reject(new Error('the service process ended before it listened')))
  })
  let commands = 0
  return {
    pid: child.pid as number,
    url,
    operationsUrl,
    shop: new Client(url, keys.storefront),
    log,
    async arm(more) {
      const id = ++commands
      child.send({ arm: more, id } satisfies Command)
      await until(() => armed.includes(id), { what: 'the reactions to be in force' })
    },
    async reached(point, times = 1) {
      await until(() => reachedPoints.filter((each) => each === point).length >= times, {
        what: `the service to reach ${point} ${times} times`,
      })
    },
    resume(point) {
      heldPoints.delete(point)
      child.send({ resume: point } satisfies Command)
    },
    freeze: () => void child.kill('SIGSTOP'),
    thaw: () => void child.kill('SIGCONT'),
    async kill() {
      child.kill('SIGKILL')
      await gone
    },
    gone,
    async stop() {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM')
      await gone
      return child.exitCode
    },
  }
}

function linesOf(child: ChildProcess): string[] {
  const lines: string[] = []
  let rest = ''
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    const parts = (rest + text).split('\n')
    rest = parts.pop() ?? ''
    lines.push(...parts)
  })
  return lines
}
