/** The simulator as a process of its own, with its books in memory. */
import { startSimulator } from '../../src/simulator/server.ts'

const { WEBHOOK_URL, STRIPE_WEBHOOK_SECRET = '' } = process.env
const simulator = await startSimulator({
  port: 0,
  webhookSecret: STRIPE_WEBHOOK_SECRET,
  ...(WEBHOOK_URL === undefined ? {} : { webhookUrl: WEBHOOK_URL }),
})
process.send?.({ url: simulator.url })
process.once('SIGTERM', () => void simulator.close().then(() => process.exit(0)))
process.on('disconnect', () => process.exit(1))
