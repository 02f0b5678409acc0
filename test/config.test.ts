import { describe, expect, it } from 'vitest'
import { loadConfig } from '../src/config.ts'

const stripe = { STRIPE_SECRET_KEY: 'sk_test_1', STRIPE_WEBHOOK_SECRET: 'whsec_1' }
const restricted = { ...stripe, STRIPE_SECRET_KEY: 'rk_test_1' }

describe('settings of Stripe', () => {
  it('take a live key for a database of yours alone', () => {
    const live = { ...stripe, STRIPE_SECRET_KEY: 'sk_live_1', DATABASE_URL: 'postgres://x', DIGEST_SECRET: 'x' }
    expect(loadConfig(live).config).toMatchObject({ demo: false, stripe: { secretKey: 'sk_live_1' } })
  })

  it('name the account of a restricted key, and warn where it is missing', () => {
    const { config, warnings } = loadConfig({ ...restricted, STRIPE_ACCOUNT: 'acct_1Shop' })
    expect([config.stripe?.account, warnings]).toEqual(['acct_1Shop', []])
    expect(loadConfig(restricted).warnings).toEqual([expect.stringContaining('STRIPE_ACCOUNT is not set')])
    expect(loadConfig(stripe).warnings).toEqual([])
  })

  it.each([
    [{ ...stripe, STRIPE_ACCOUNT: 'acct_1Shop' }, /STRIPE_ACCOUNT is for restricted keys/],
    [{ ...restricted, STRIPE_ACCOUNT: 'Shop' }, /STRIPE_ACCOUNT must be an id/],
    [{ ...stripe, STRIPE_SECRET_KEY: 'pk_test_1' }, /STRIPE_SECRET_KEY must be a secret or restricted key/],
    [{ STRIPE_SECRET_KEY: 'sk_test_1' }, /STRIPE_WEBHOOK_SECRET is required/],
    [{ ...stripe, STRIPE_SECRET_KEY: 'sk_live_1', STRIPE_API_BASE: 'http://x' }, /STRIPE_API_BASE must be https/],
    [{ ...stripe, STRIPE_SECRET_KEY: 'sk_live_1' }, /everybody knows the keys of the demo/],
    [
      {
        ...stripe,
        STRIPE_SECRET_KEY: 'rk_live_1',
        DATABASE_URL: 'postgres://x',
        DIGEST_SECRET: 'x',
        SEED_DEMO: 'true',
      },
      /everybody knows the keys of the demo/,
    ],
    [{ ...stripe, STRIPE_SECRET_KEY_FILE: '/nowhere' }, /both set/],
    [{ STRIPE_SECRET_KEY_FILE: '/nowhere/at-all' }, /cannot be read: ENOENT/],
  ])('refuse %j', (env, says) => {
    expect(() => loadConfig(env)).toThrow(says)
    // What is wrong is told without the secret.
    expect(() => loadConfig(env)).not.toThrow(/sk_(test|live)_1|whsec_1/)
  })
})

describe('settings of those who watch', () => {
  it('are off unless they are set', () => {
    expect(loadConfig({}).config).toMatchObject({ metricsPort: undefined, tracing: undefined })
    expect(loadConfig({ METRICS_PORT: '9464' }).config.metricsPort).toBe(9464)
  })

  it("are OpenTelemetry's own", () => {
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: 'https://collector.example:4318',
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Basic%20YTpi,x-tenant=a=b',
      OTEL_TRACES_SAMPLER_ARG: '0.25',
    }
    expect(loadConfig(env).config.tracing).toEqual({
      endpoint: 'https://collector.example:4318',
      headers: { authorization: 'Basic YTpi', 'x-tenant': 'a=b' },
      serviceName: 'checkout',
      ratio: 0.25,
    })
  })

  it.each([
    [{ METRICS_PORT: '70000' }, /METRICS_PORT must be a whole number/],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' }, /OTEL_EXPORTER_OTLP_ENDPOINT must start with http/],
    [{ OTEL_EXPORTER_OTLP_HEADERS: 'token' }, /OTEL_EXPORTER_OTLP_HEADERS must be name=value/],
    [{ OTEL_EXPORTER_OTLP_HEADERS: 'a=%zz' }, /percent-encoded/],
    [{ OTEL_TRACES_SAMPLER_ARG: '2' }, /OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1/],
  ])('refuse %j', (env, says) => {
    expect(() => loadConfig(env)).toThrow(says)
  })
})
