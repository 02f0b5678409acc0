/** Every setting, its unit, its default and why, in one place. Read once at start; a setting that makes no sense stops it. */
import { readFileSync } from 'node:fs'
import ipaddr from 'ipaddr.js'
import type { TracingOptions } from './runtime/tracing.ts'

type Kind = 'text' | 'number' | 'integer' | 'port' | 'boolean' | 'list'

interface Setting {
  kind: Kind
  default?: string
  /** A file may hold it: `NAME_FILE` names the file. */
  secret?: true
  min?: number
  max?: number
}

// Numbers may be fractions unless they count things.
const settings = {
  /** Port of the API; 0 takes a free one. */
  PORT: { kind: 'port', default: '3000' },
  HOST: { kind: 'text', default: '127.0.0.1' },
  /** `postgres://…`; without it, an embedded Postgres is started in DATA_DIR. */
  DATABASE_URL: { kind: 'text', secret: true },
  /** Where the embedded Postgres, the simulator and a generated digest secret keep their files. */
  DATA_DIR: { kind: 'text', default: '.data' },
  /** Connections of this process. Groups of claims and settles need few: more connections only queue in Postgres. */
  DATABASE_POOL_SIZE: { kind: 'integer', default: '10', min: 2 },
  /** What this process does: `api`, `worker` or both. */
  ROLES: { kind: 'list', default: 'api,worker' },
  /** Put the demo tenants and catalog into a database of yours. Always on with the embedded one. */
  SEED_DEMO: { kind: 'boolean', default: 'false' },
  /** Keys the digests of requests. Several, newest first, comma-separated; old ones are needed until retention ends. */
  DIGEST_SECRET: { kind: 'list', secret: true },
  /** Without it, the service charges at its own simulator. */
  STRIPE_SECRET_KEY: { kind: 'text', secret: true },
  /** Several, comma-separated, while one is being rotated. */
  STRIPE_WEBHOOK_SECRET: { kind: 'list', secret: true },
  /** Where Stripe's API is, without `/v1`; without a secret key, where a simulator runs that is to be used. */
  STRIPE_API_BASE: { kind: 'text' },
  /** The account (acct_…) of a restricted key, which Stripe does not let ask whose it is. Orders are bound to it. */
  STRIPE_ACCOUNT: { kind: 'text' },
  SIM_PORT: { kind: 'port', default: '12111' },
  /** Longest time for one call to the provider, ms. Stripe's slow answers come within a few seconds. */
  PROVIDER_TIMEOUT_MS: { kind: 'number', default: '8000', min: 1 },
  /** For all calls of one request, ms. */
  CHECKOUT_BUDGET_MS: { kind: 'number', default: '15000', min: 1 },
  /** How long a repeat waits for the first request's answer, ms: longer than the budget, so that it gets one. */
  IDEMPOTENCY_WAIT_MS: { kind: 'number', default: '18000', min: 0 },
  /** How long an attempt belongs to the process that works on it, s. A crashed one's is taken over after this. */
  IDEMPOTENCY_LEASE_SECONDS: { kind: 'number', default: '30', min: 0.001 },
  /** How long a settled answer can be replayed, h. 72 outlasts a weekend. */
  IDEMPOTENCY_RETENTION_HOURS: { kind: 'number', default: '72', min: 0 },
  /** How long records of calls to the provider and reports are kept, d. 400 lets a month be compared with the same one of
   * the year before; what the law wants kept is in orders and ledger, which are never swept. */
  RECORDS_RETENTION_DAYS: { kind: 'number', default: '400', min: 0 },
  /** How long a settled answer may be given again from memory, s, at most 60 and never past its retention; 0: each repeat reads. */
  REPLAY_CACHE_SECONDS: { kind: 'number', default: '60', min: 0, max: 60 },
  /** Attempts under way in this process; the surplus gets 503 at once. As many as there are connections to the provider:
   * one more could only wait for one, with stock in its hands. */
  ATTEMPTS_AT_ONCE: { kind: 'integer', default: '512', min: 1 },
  /** Of these, one tenant's: the rest is left to others. */
  ATTEMPTS_AT_ONCE_PER_TENANT: { kind: 'integer', default: '384', min: 1 },
  /** And those of one client address with a storefront's key; 0: as many as come. Behind a proxy, set TRUST_PROXY too. */
  ATTEMPTS_AT_ONCE_PER_ADDRESS: { kind: 'integer', default: '0' },
  /** Proxies whose X-Forwarded-For is believed: addresses, networks or `loopback`, `linklocal`, `uniquelocal`. */
  TRUST_PROXY: { kind: 'list' },
  /** How long after the claim recovery may send a charge again, s. Later, a customer who has left would be charged. */
  RECOVERY_SEND_WINDOW_SECONDS: { kind: 'number', default: '300', min: 0 },
  /** How long an order waits for its customer or an unreached provider, min. */
  ORDER_EXPIRY_MINUTES: { kind: 'number', default: '60', min: 0 },
  /** How long a metered run holds money without being finalized, h. */
  RUN_EXPIRY_HOURS: { kind: 'number', default: '24', min: 0 },
  /** Pause of a worker that found nothing to do, ms. */
  WORKER_POLL_MS: { kind: 'number', default: '200', min: 1 },
  /** Pause between recovery's looks, ms. */
  RECOVERY_INTERVAL_MS: { kind: 'number', default: '1000', min: 1 },
  /** First pause before the provider is asked about an open order, ms; doubles from there to 15 min. */
  RECONCILE_AFTER_MS: { kind: 'number', default: '2000', min: 1 },
  /** Pause between sweeps of what is past its retention, ms. */
  SWEEP_INTERVAL_MS: { kind: 'number', default: '60000', min: 1 },
  /** `smtp://` or `smtps://` with the login in it. Without it no mail is sent; that it was due is kept. */
  SMTP_URL: { kind: 'text', secret: true },
  /** The sender of mails, e.g. `Shop <orders@shop.example>`. */
  MAIL_FROM: { kind: 'text' },
  /** Let merchants' endpoints be in private networks and without TLS: for development alone. */
  MERCHANT_WEBHOOK_ALLOW_PRIVATE: { kind: 'boolean', default: 'false' },
  LOG_LEVEL: { kind: 'text', default: 'info' },
  /** Where `/metrics`, `/healthz` and `/readyz` are served besides the API; the only door of a process that is a worker
   * alone. 0 takes a free one. */
  METRICS_PORT: { kind: 'port' },
  /** Of a collector that takes OTLP over HTTP. Without it no spans are made. The names of these four are OpenTelemetry's
   * (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/). */
  OTEL_EXPORTER_OTLP_ENDPOINT: { kind: 'text' },
  /** `name=value,…`, values percent-encoded: how the collector knows us. */
  OTEL_EXPORTER_OTLP_HEADERS: { kind: 'list', secret: true },
  OTEL_SERVICE_NAME: { kind: 'text', default: 'checkout' },
  /** The part of all traces that is recorded, 0 to 1. */
  OTEL_TRACES_SAMPLER_ARG: { kind: 'number', default: '1', min: 0 },
} as const satisfies Record<string, Setting>

type SettingName = keyof typeof settings

export interface Config {
  port: number
  /** Nobody asked for this port: where it is taken, another one will do. */
  portMayMove: boolean
  host: string
  databaseUrl: string | undefined
  dataDir: string
  databasePoolSize: number
  roles: { api: boolean; worker: boolean }
  /** The demo tenants with their well-known keys exist. */
  demo: boolean
  /** Newest first; empty where one has to be made. */
  digestSecrets: string[]
  stripe:
    | { secretKey: string; webhookSecrets: string[]; apiBase: string | undefined; account: string | undefined }
    | undefined
  /** Charged at without a secret key: one that runs at `url`, or else one that is started. */
  simulator: { url: string | undefined; port: number; webhookSecrets: string[] }
  providerTimeoutMs: number
  checkoutBudgetMs: number
  idempotencyWaitMs: number
  leaseMs: number
  retentionMs: number
  replayCacheMs: number
  attemptsAtOnce: { all: number; perTenant: number; perAddress: number }
  trustedProxies: string[]
  recordsRetentionMs: number
  recoverySendWindowMs: number
  orderExpiryMs: number
  runExpiryMs: number
  workerPollMs: number
  recoveryIntervalMs: number
  reconcileAfterMs: number
  sweepIntervalMs: number
  /** Undefined: no mail is sent. */
  mail: { smtpUrl: string; from: string } | undefined
  merchantWebhookAllowPrivate: boolean
  logLevel: string
  /** Undefined: only the API's own port serves metrics. */
  metricsPort: number | undefined
  /** Undefined: no spans are made. */
  tracing: TracingOptions | undefined
}

/** One or more settings make no sense; the message names each and what it should be. */
export class ConfigError extends Error {
  override name = 'ConfigError'
}

/** Reads the settings. Throws `ConfigError`. `warnings` are for the log: allowed, but hardly meant. */
export function loadConfig(env: Readonly<Record<string, string | undefined>>): { config: Config; warnings: string[] } {
  const faults: string[] = []
  const warnings: string[] = []

  function raw(name: SettingName): string | undefined {
    const setting: Setting = settings[name]
    const file = setting.secret ? env[`${name}_FILE`] : undefined
    if (file !== undefined && file !== '') {
      if (env[name] !== undefined && env[name] !== '') faults.push(`${name} and ${name}_FILE are both set; set one`)
      try {
        return readFileSync(file, 'utf8').trim()
      } catch (error) {
        faults.push(`${name}_FILE cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'unknown error'}`)
        return undefined
      }
    }
    const value = env[name]
    return value === undefined || value === '' ? setting.default : value
  }

  function number(name: SettingName): number {
    const setting: Setting = settings[name]
    const text = raw(name) ?? ''
    const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN
    const whole = setting.kind === 'integer' || setting.kind === 'port'
    const max = setting.max ?? (setting.kind === 'port' ? 65_535 : Number.MAX_SAFE_INTEGER)
    if (!(value >= (setting.min ?? 0) && value <= max) || (whole && !Number.isInteger(value))) {
      faults.push(`${name} must be a ${whole ? 'whole ' : ''}number from ${setting.min ?? 0} to ${max}, not "${text}"`)
      return 0
    }
    return value
  }

  function list(name: SettingName): string[] {
    return (raw(name) ?? '')
      .split(',')
      .map((part) => part.trim())
      .filter((part) => part !== '')
  }

  function boolean(name: SettingName): boolean {
    const text = raw(name)
    if (text !== 'true' && text !== 'false') faults.push(`${name} must be true or false, not "${text}"`)
    return text === 'true'
  }

  const databaseUrl = raw('DATABASE_URL')
  if (databaseUrl !== undefined && !/^postgres(ql)?:\/\//.test(databaseUrl)) {
    faults.push('DATABASE_URL must start with postgres://')
  } else if (databaseUrl !== undefined && !URL.canParse(databaseUrl)) {
    faults.push(
      'DATABASE_URL is no URL: it is postgres://USER:PASSWORD@HOST:PORT/DATABASE, with / ? # @ in a password percent-encoded',
    )
  }
  const roles = list('ROLES')
  if (roles.length === 0 || roles.some((role) => role !== 'api' && role !== 'worker')) {
    faults.push('ROLES must be api, worker or api,worker')
  }

  const secretKey = raw('STRIPE_SECRET_KEY')
  const webhookSecrets = list('STRIPE_WEBHOOK_SECRET')
  const apiBase = raw('STRIPE_API_BASE')?.replace(/\/+$/, '')
  if (secretKey !== undefined && !/^(sk|rk)_(test|live)_/.test(secretKey)) {
    faults.push('STRIPE_SECRET_KEY must be a secret or restricted key (sk_…, rk_…)')
  }
  if (secretKey !== undefined && webhookSecrets.length === 0) {
    faults.push('STRIPE_WEBHOOK_SECRET is required with STRIPE_SECRET_KEY: without it no notification can be trusted')
  }
  if (apiBase !== undefined && !/^https?:\/\/[^/]+$/.test(apiBase)) {
    faults.push('STRIPE_API_BASE must be http(s)://host[:port] without a path')
  }
  if (secretKey?.includes('_live_') && apiBase?.startsWith('http:')) {
    faults.push('STRIPE_API_BASE must be https:// with a live key')
  }

  const demo = databaseUrl === undefined || boolean('SEED_DEMO')
  if (demo && secretKey?.includes('_live_')) {
    faults.push(
      'a live STRIPE_SECRET_KEY needs a DATABASE_URL and no SEED_DEMO: everybody knows the keys of the demo, and could refund with them',
    )
  }

  const account = raw('STRIPE_ACCOUNT')
  const isRestricted = secretKey?.startsWith('rk_') === true
  if (account !== undefined && !/^acct_[A-Za-z0-9]+$/.test(account))
    faults.push('STRIPE_ACCOUNT must be an id (acct_…)')
  if (account !== undefined && !isRestricted) {
    faults.push('STRIPE_ACCOUNT is for restricted keys (rk_…) alone: other keys are asked which account is theirs')
  }
  if (isRestricted && account === undefined) {
    warnings.push(
      'STRIPE_ACCOUNT is not set: unless this restricted key may read its account, nothing can be charged with it',
    )
  }

  const digestSecrets = list('DIGEST_SECRET')
  if (databaseUrl !== undefined && digestSecrets.length === 0) {
    faults.push('DIGEST_SECRET is required with DATABASE_URL: all processes on one database must share it')
  }

  const trustedProxies = list('TRUST_PROXY')
  if (!trustedProxies.every(isProxy)) {
    faults.push('TRUST_PROXY must be addresses, networks (10.0.0.0/8), loopback, linklocal or uniquelocal')
  }
  const perAddress = number('ATTEMPTS_AT_ONCE_PER_ADDRESS')
  if (perAddress > 0 && trustedProxies.length === 0) {
    warnings.push(
      'ATTEMPTS_AT_ONCE_PER_ADDRESS is set but not TRUST_PROXY: behind a proxy, all clients are one address',
    )
  }

  const smtpUrl = raw('SMTP_URL')
  const mailFrom = raw('MAIL_FROM')
  if (smtpUrl !== undefined && !/^smtps?:\/\/[^/]+/.test(smtpUrl)) {
    faults.push('SMTP_URL must start with smtp:// or smtps://')
  }
  if (smtpUrl !== undefined && !/[^@\s]@[^@\s]+$/.test(mailFrom ?? '')) {
    faults.push('MAIL_FROM must be or end with an email address when SMTP_URL is set, e.g. Shop <orders@shop.example>')
  }

  const collector = raw('OTEL_EXPORTER_OTLP_ENDPOINT')
  if (collector !== undefined && !/^https?:\/\/[^/]/.test(collector)) {
    faults.push('OTEL_EXPORTER_OTLP_ENDPOINT must start with http:// or https://')
  }
  const collectorHeaders = list('OTEL_EXPORTER_OTLP_HEADERS').map((pair) => pair.split(/=(.*)/s, 2))
  if (collectorHeaders.some(([name, value]) => !/^[\w-]+$/.test(name ?? '') || !decodes(value))) {
    faults.push('OTEL_EXPORTER_OTLP_HEADERS must be name=value,… with values percent-encoded')
  }
  const ratio = number('OTEL_TRACES_SAMPLER_ARG')
  if (ratio > 1) faults.push('OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1')

  const config: Config = {
    port: number('PORT'),
    portMayMove: env.PORT === undefined || env.PORT === '',
    host: raw('HOST') ?? '',
    databaseUrl,
    dataDir: raw('DATA_DIR') ?? '',
    databasePoolSize: number('DATABASE_POOL_SIZE'),
    roles: { api: roles.includes('api'), worker: roles.includes('worker') },
    demo,
    digestSecrets,
    stripe: secretKey === undefined ? undefined : { secretKey, webhookSecrets, apiBase, account },
    simulator: {
      url: apiBase,
      port: number('SIM_PORT'),
      webhookSecrets: webhookSecrets.length === 0 ? ['whsec_test_demo'] : webhookSecrets,
    },
    providerTimeoutMs: number('PROVIDER_TIMEOUT_MS'),
    checkoutBudgetMs: number('CHECKOUT_BUDGET_MS'),
    idempotencyWaitMs: number('IDEMPOTENCY_WAIT_MS'),
    leaseMs: number('IDEMPOTENCY_LEASE_SECONDS') * 1000,
    retentionMs: number('IDEMPOTENCY_RETENTION_HOURS') * 3_600_000,
    replayCacheMs: number('REPLAY_CACHE_SECONDS') * 1000,
    attemptsAtOnce: {
      all: number('ATTEMPTS_AT_ONCE'),
      perTenant: number('ATTEMPTS_AT_ONCE_PER_TENANT'),
      perAddress,
    },
    trustedProxies,
    recordsRetentionMs: number('RECORDS_RETENTION_DAYS') * 86_400_000,
    recoverySendWindowMs: number('RECOVERY_SEND_WINDOW_SECONDS') * 1000,
    orderExpiryMs: number('ORDER_EXPIRY_MINUTES') * 60_000,
    runExpiryMs: number('RUN_EXPIRY_HOURS') * 3_600_000,
    workerPollMs: number('WORKER_POLL_MS'),
    recoveryIntervalMs: number('RECOVERY_INTERVAL_MS'),
    reconcileAfterMs: number('RECONCILE_AFTER_MS'),
    sweepIntervalMs: number('SWEEP_INTERVAL_MS'),
    mail: smtpUrl === undefined ? undefined : { smtpUrl, from: mailFrom ?? '' },
    merchantWebhookAllowPrivate: boolean('MERCHANT_WEBHOOK_ALLOW_PRIVATE'),
    logLevel: raw('LOG_LEVEL') ?? 'info',
    metricsPort: raw('METRICS_PORT') === undefined ? undefined : number('METRICS_PORT'),
    tracing:
      collector === undefined || faults.length > 0
        ? undefined
        : {
            endpoint: collector,
            headers: Object.fromEntries(
              collectorHeaders.map(([name, value]) => [name, decodeURIComponent(value ?? '')]),
            ),
            serviceName: raw('OTEL_SERVICE_NAME') ?? 'checkout',
            ratio,
          },
  }

  if (config.leaseMs <= config.checkoutBudgetMs) {
    faults.push(
      `IDEMPOTENCY_LEASE_SECONDS (${config.leaseMs / 1000} s) must be longer than CHECKOUT_BUDGET_MS ` +
        `(${config.checkoutBudgetMs} ms): otherwise an attempt is taken over while its first owner still works on it`,
    )
  }
  if (config.idempotencyWaitMs < config.checkoutBudgetMs) {
    warnings.push(
      'IDEMPOTENCY_WAIT_MS is shorter than CHECKOUT_BUDGET_MS: repeats may be told "in progress" instead of the answer',
    )
  }
  // https://docs.stripe.com/payments/place-a-hold-on-a-payment-method: under 5 days for a Visa card without its holder.
  if (config.runExpiryMs > 96 * 3_600_000) {
    warnings.push(
      'RUN_EXPIRY_HOURS is longer than some cards hold money (under 5 days): such a run could capture nothing',
    )
  }
  if (databaseUrl !== undefined && secretKey === undefined) {
    warnings.push('STRIPE_SECRET_KEY is not set: charges go to the simulator and no money moves')
  }
  if (config.recoverySendWindowMs > 23 * 3_600_000) {
    faults.push('RECOVERY_SEND_WINDOW_SECONDS must be below 23 h: the provider forgets idempotency keys after 24 h')
  }
  if (faults.length > 0) throw new ConfigError(`The settings cannot be used:\n- ${faults.join('\n- ')}`)
  return { config, warnings }
}

function decodes(value: string | undefined): boolean {
  try {
    return value !== undefined && decodeURIComponent(value) !== ''
  } catch {
    return false
  }
}

function isProxy(text: string): boolean {
  return ['loopback', 'linklocal', 'uniquelocal'].includes(text) || ipaddr.isValid(text) || ipaddr.isValidCIDR(text)
}
