/** The service as its own process for a benchmark, charging at a provider that answers at once. */
import { startService } from '../../src/service.ts'
import { instantProvider } from './instant-provider.ts'

const service = await startService(process.env, { provider: instantProvider(Number(process.env.PROVIDER_DELAY_MS ?? 0)) })
process.send?.({ url: service.url })
process.on('message', (message) => {
  if (message === 'cpu') process.send?.({ cpu: process.cpuUsage() })
  if (message === 'stop') void service.stop().then(() => process.exit(0))
})
