/** Starts the service from the environment; the only file that acts on import. */
import { messageOf } from './cli/faults.ts'
import { type Service, startService } from './service.ts'
import { welcome } from './welcome.ts'

try {
  const service = await startService(process.env)
  if (service.url !== undefined && service.config.demo) console.log(welcome(service.url))
  stopOnSignals(service)
} catch (error) {
  // A fault of ours: whoever reports it needs all of it.
  console.error(messageOf(error) ?? error)
  process.exitCode = 1
}

function stopOnSignals(service: Service): void {
  let stopping = false
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (stopping) return
      stopping = true
      service.deps.log.info({ signal }, 'draining')
      service.stop().then(
        () => service.deps.log.info('stopped'),
        (error: unknown) => {
          service.deps.log.error({ err: error }, 'could not stop cleanly')
          process.exitCode = 1
        },
      )
    })
  }
}
