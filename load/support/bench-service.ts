/** The service as a process of its own that ends with whoever started it. `PROVIDER=simulator` charges through the SDK,
 * otherwise at a provider that answers from within this process after `PROVIDER_DELAY_MS`. */
import { startService } from '../../src/service.ts'
import { instantProvider } from './instant-provider.ts'

const service = await startService(
  process.env,
  process.env.PROVIDER === 'simulator' ? {} : { provider: instantProvider(Number(process.env.PROVIDER_DELAY_MS ?? 0)) },
)
process.send?.({ url: service.url ?? null })

async function stop(): Promise<void> {
  await service.stop()
  process.exit(0)
}
process.once('SIGTERM', () => void stop())
process.on('disconnect', () => process.exit(1))
