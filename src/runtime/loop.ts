/** Runs a worker's `runOnce` over and over: at once while it finds work, after a pause when it finds none. */
import type { Logger } from 'pino'

export interface Loop {
  /** Look now instead of after the pause. */
  nudge(): void
  /** Resolves when the run under way has ended; none follows. */
  stop(): Promise<void>
}

/** After a failure the pause doubles from `pauseMs` up to this. */
const failurePauseMaxMs = 10_000

export function startLoop(name: string, pauseMs: number, log: Logger, runOnce: () => Promise<number>): Loop {
  let stopping = false
  let wake: () => void = () => {}

  async function run(): Promise<void> {
    let failures = 0
    while (!stopping) {
      let found = 0
      try {
        found = await runOnce()
        failures = 0
      } catch (error) {
        failures += 1
        log.error({ err: error, worker: name, failures }, 'worker run failed')
      }
      if (found > 0 || stopping) continue
      const nextMs = failures === 0 ? pauseMs : Math.min(pauseMs * 2 ** failures, failurePauseMaxMs)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, nextMs)
        wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }

  const ended = run()
  return {
    nudge: () => wake(),
    stop() {
      stopping = true
      wake()
      return ended
    },
  }
}
