/** One checkout's trace, from the client's request to the job that a worker ran for it in another process. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseTraceparent } from '../../src/runtime/tracing.ts'
import { cart } from '../support/client.ts'
import { type CollectedSpan, type Collector, startCollector } from '../support/collector.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { type ServiceProcess, startServiceProcess } from '../support/service-process.ts'
import { until } from '../support/until.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const callersSpan = 'b7ad6b7169203331'
const traceparent = `00-${traceId}-${callersSpan}-01`

describe('with a collector', () => {
  let collector: Collector
  let scene: Scene
  let worker: ServiceProcess
  let spans: CollectedSpan[]
  const key = newKey()
  let orderId: string
  let unrelatedOrderId: string
  beforeAll(async () => {
    collector = await startCollector()
    const tracing = {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20collector-token',
    }
    scene = await startScene({ settings: tracing })
    // A notification that is faster than the answer would settle in its place, in a trace of its own.
    await scene.books.webhooks({ drop: 1 })
    worker = await startServiceProcess(scene.env({ ROLES: 'worker', ...tracing }))
    const first = await scene.shop.checkout(key, cart(), { traceparent })
    expect(first.status).toBe(201)
    orderId = first.json.id
    unrelatedOrderId = (await scene.shop.checkout(newKey())).json.id
    await until(
      async () => {
        const jobs = await scene.db.selectFrom('jobs').select('state').where('topic', '=', 'order_news').execute()
        return jobs.length === 2 && jobs.every(({ state }) => state === 'done')
      },
      { what: 'the worker to spread the news of both orders' },
    )
    // What has been recorded is sent before either ends.
    expect(await worker.stop()).toBe(0)
    await scene.service.stop()
    spans = collector.spans()
  })
  afterAll(async () => {
    await scene.stop()
    await collector.close()
  })

  const ofTrace = () => spans.filter((span) => span.traceId === traceId)
  const named = (name: string) => {
    const found = ofTrace().filter((span) => span.name === name)
    expect(found, name).toHaveLength(1)
    return found[0] as CollectedSpan
  }

  it('the request is a span below the span of its caller', () => {
    const request = named('POST /v1/checkouts')
    expect(request).toMatchObject({ parentSpanId: callersSpan, kind: 2, failed: false })
    expect(request.attributes).toMatchObject({
      'http.request.method': 'POST',
      'http.route': '/v1/checkouts',
      'http.response.status_code': 201,
      'checkout.tenant_id': 'ten_demo',
      'checkout.order_id': orderId,
      'checkout.replayed': false,
    })
    expect(request.attributes['checkout.attempt']).toMatch(/^[\w-]{8,}$/)
    expect(request.attributes['checkout.request_id']).toMatch(/^req_/)
  })

  it('claim, charge and settle follow each other below the request', () => {
    const request = named('POST /v1/checkouts')
    const steps = [named('claim'), named('provider payment.create'), named('settle')]
    for (const step of steps) expect(step.parentSpanId, step.name).toBe(request.spanId)
    for (const [index, step] of steps.entries()) {
      // The provider's span has its times from the call's own record, in whole milliseconds.
      expect(step.endMs, step.name).toBeGreaterThanOrEqual(step.startMs)
      const next = steps[index + 1]
      if (next !== undefined) expect(next.startMs, next.name).toBeGreaterThanOrEqual(step.startMs - 1)
    }
    expect(steps[0]?.attributes).toMatchObject({ 'checkout.claim': 'claimed', 'checkout.order_id': orderId })
    expect(steps[2]?.attributes).toMatchObject({ 'checkout.settled_to': 'paid', 'checkout.applied': true })
  })

  it("the provider's span names the provider's request", async () => {
    const { request_id } = await scene.db
      .selectFrom('provider_calls')
      .select('request_id')
      .where('order_id', '=', orderId)
      .executeTakeFirstOrThrow()
    expect(request_id).toMatch(/^req_/)
    expect(named('provider payment.create')).toMatchObject({
      kind: 3,
      attributes: {
        'provider.request_id': request_id,
        'provider.outcome': 'succeeded',
        'http.response.status_code': 200,
      },
    })
  })

  it('the job that a worker ran in another process is below the request that left it', () => {
    const job = named('job order_news')
    expect(job).toMatchObject({ kind: 5, parentSpanId: named('POST /v1/checkouts').spanId, failed: false })
    expect(job.attributes).toMatchObject({ 'job.topic': 'order_news', 'job.id': `${orderId}:paid` })
  })

  it('a request without a trace begins one of its own, which its job belongs to', () => {
    const about = spans.filter((span) => JSON.stringify(span.attributes).includes(unrelatedOrderId))
    expect(new Set(about.map((span) => span.traceId)).size).toBe(1)
    expect(about[0]?.traceId).not.toBe(traceId)
    expect(about.map((span) => span.name)).toEqual(expect.arrayContaining(['POST /v1/checkouts', 'job order_news']))
  })

  it('no span holds a person, a key or a secret', () => {
    const sent = collector.raw().join('\n')
    expect(sent).toContain('Bearer collector-token')
    const bodies = collector.raw().map((each) => each.slice(each.indexOf('\n')))
    for (const secret of [key, '@example.com', 'pk_test', 'sk_test', 'whsec', 'pm_card', 'client_secret', 'token']) {
      expect(bodies.join('\n')).not.toContain(secret)
    }
  })
})

describe('without a collector', () => {
  it("the caller's trace is in the log lines of its request and of the job that follows from it", async () => {
    const scene = await startScene()
    const service = await startServiceProcess(scene.env({ ROLES: 'api,worker', LOG_LEVEL: 'info' }))
    try {
      const shop = scene.shop.at(service.url)
      const lines = () => service.log.map((line) => JSON.parse(line) as Record<string, unknown>)
      expect((await shop.checkout(newKey(), cart(), { traceparent })).status).toBe(201)
      expect((await shop.checkout(newKey())).status).toBe(201)
      await until(() => lines().filter(({ msg }) => msg === 'request').length === 2, { what: 'both lines' })
      const traces = lines()
        .filter(({ msg }) => msg === 'request')
        .map(({ trace_id }) => trace_id)
      expect(traces).toEqual([traceId, undefined])
      const jobs = await scene.db.selectFrom('jobs').select('payload').where('topic', '=', 'order_news').execute()
      expect(jobs.map(({ payload }) => (payload as { traceparent?: string }).traceparent).sort()).toEqual([
        traceparent,
        undefined,
      ])
    } finally {
      await service.stop()
      await scene.stop()
    }
  })

  it('nothing of OpenTelemetry is loaded', async () => {
    const scene = await startScene()
    // But its interface, which prom-client looks at.
    const refusing = `import { registerHooks } from 'node:module'
      registerHooks({ resolve(specifier, context, next) {
        if (/^@opentelemetry\\/(?!api$)/.test(specifier)) throw new Error('loaded ' + specifier)
        return next(specifier, context)
      } })`
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(refusing)}`
    try {
      const service = await startServiceProcess(scene.env({ ROLES: 'api,worker', NODE_OPTIONS }))
      expect((await scene.shop.at(service.url).checkout(newKey(), cart(), { traceparent })).status).toBe(201)
      await service.stop()
      const traced = scene.env({ NODE_OPTIONS, OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' })
      await expect(startServiceProcess(traced)).rejects.toThrow('loaded @opentelemetry/')
    } finally {
      await scene.stop()
    }
  })

  it('a collector that is away costs nobody an answer, and is told once', async () => {
    const scene = await startScene()
    const service = await startServiceProcess(
      scene.env({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9', LOG_LEVEL: 'warn' }),
    )
    try {
      expect((await scene.shop.at(service.url).checkout(newKey())).status).toBe(201)
      expect(await service.stop()).toBe(0)
      expect(service.log.filter((line) => line.includes('spans could not be sent'))).toHaveLength(1)
    } finally {
      await scene.stop()
    }
  })
})

describe('traceparent', () => {
  it.each([
    ['sampled', traceparent, { traceId, spanId: callersSpan, sampled: true, remote: true }],
    ['not sampled', `00-${traceId}-${callersSpan}-00`, { traceId, spanId: callersSpan, sampled: false, remote: true }],
    ['a later version with more', `01-${traceId}-${callersSpan}-01-x`, expect.objectContaining({ traceId })],
    ['version 00 with more', `${traceparent}-x`, undefined],
    ['version ff', `ff-${traceId}-${callersSpan}-01`, undefined],
    ['a trace id of zeros', `00-${'0'.repeat(32)}-${callersSpan}-01`, undefined],
    ['a span id of zeros', `00-${traceId}-${'0'.repeat(16)}-01`, undefined],
    ['upper case', traceparent.toUpperCase(), undefined],
    ['a line break', `${traceparent}\n`, undefined],
    ['several headers', [traceparent], undefined],
    ['nothing', undefined, undefined],
  ])('%s', (_what, text, context) => {
    expect(parseTraceparent(text)).toEqual(context)
  })
})
