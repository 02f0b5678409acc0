/** The program of `service-process.ts`: the service as `main.ts` starts it, with reactions at its checkpoints. */
import { armCheckpoints } from '../../src/runtime/checkpoint.ts'
import { startService } from '../../src/service.ts'
import type { Command, Message, Reactions } from './service-process.ts'

const reactions = new Map(Object.entries(JSON.parse(process.env.CHECKPOINTS ?? '{}') as Reactions))
const paused = new Map<string, (() => void)[]>()

armCheckpoints((point) => {
  const reaction = reactions.get(point)
  if (reaction === undefined) return
  const skip = reaction.skip ?? 0
  if (skip > 0) {
    reactions.set(point, { ...reaction, skip: skip - 1 })
    return
  }
  if (reaction.every !== true) reactions.delete(point)
  switch (reaction.do) {
    case 'kill':
      process.send?.({ killed: point } satisfies Message, () => process.kill(process.pid, 'SIGKILL'))
      return new Promise(() => {})
    case 'delay':
      say({ reached: point })
      return new Promise((resolve) => setTimeout(resolve, reaction.ms))
    case 'pause':
      return new Promise((resolve) => {
        paused.set(point, [...(paused.get(point) ?? []), resolve])
        say({ paused: point })
      })
    case 'throw':
      throw new Error(`thrown at ${point} by a test`)
  }
})

process.on('message', (command: Command) => {
  if ('arm' in command) {
    for (const [point, reaction] of Object.entries(command.arm)) reactions.set(point, reaction)
    say({ armed: command.id })
    return
  }
  for (const resume of paused.get(command.resume) ?? []) resume()
  paused.delete(command.resume)
})
// Nobody is left to end this process.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'))

try {
  const service = await startService(process.env)
  let stopping = false
  process.on('SIGTERM', () => {
    if (stopping) return
    stopping = true
    void service.stop().then(() => process.exit(0))
  })
  say({ listening: service.url ?? '', operations: service.operationsUrl ?? '' })
} catch (error) {
  say({ failed: error instanceof Error ? error.message : String(error) })
  process.exitCode = 1
  process.disconnect()
}

function say(message: Message): void {
  process.send?.(message)
}
