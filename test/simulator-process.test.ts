/** The simulator beside the service: its files have one keeper. */
import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createLog } from '../src/runtime/log.ts'
import { startSimulatorProcess } from '../src/simulator-process.ts'
import { freePort } from './support/free-port.ts'
import { temporaryFolder } from './support/temporary-folder.ts'

it('one that runs on the same files is used, whatever port is wanted: two would write over each other', async () => {
  const dataDir = await temporaryFolder('simulator-process')
  const options = {
    dataDir,
    webhookUrl: 'http://127.0.0.1:1/none',
    webhookSecret: 'whsec_test',
    log: createLog('silent'),
  }
  const first = await startSimulatorProcess({ ...options, port: 0 })
  const second = await startSimulatorProcess({ ...options, port: await freePort() })
  expect(second.url).toBe(first.url)
  await second.stop()
  expect((await fetch(`${first.url}/_sim/payment_intents`)).status).toBe(200)
  await first.stop()
  expect(existsSync(join(dataDir, 'simulator-url'))).toBe(false)
  const third = await startSimulatorProcess({ ...options, port: await freePort() })
  expect(third.url).not.toBe(first.url)
  await third.stop()
  await rm(dataDir, { recursive: true })
})
