import { afterAll, beforeAll, describe } from 'vitest'
import { createStripeProvider } from '../../src/provider/stripe.ts'
import { type Simulator, startSimulator } from '../../src/simulator/server.ts'
import { contract, type Setting, settingOf } from './contract.ts'

describe('against the simulator', () => {
  let simulator: Simulator
  let setting: Setting
  beforeAll(async () => {
    simulator = await startSimulator({ port: 0, webhookSecret: 'whsec_test' })
    setting = await settingOf(createStripeProvider({ secretKey: 'sk_test_simulator', apiBase: simulator.url }))
  })
  afterAll(async () => {
    setting.provider.close()
    await simulator.close()
  })

  contract(() => setting)
})

const secretKey = process.env.STRIPE_TEST_SECRET_KEY ?? ''
describe.skipIf(secretKey === '')('against Stripe in test mode', () => {
  let setting: Setting
  beforeAll(async () => {
    if (!secretKey.includes('_test_')) throw new Error('STRIPE_TEST_SECRET_KEY is no key of test mode')
    setting = await settingOf(createStripeProvider({ secretKey, apiBase: 'https://api.stripe.com' }))
  })
  afterAll(() => setting?.provider.close())

  contract(() => setting)
})
