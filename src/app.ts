/** The HTTP app: plugins, error mapping and the list of routes. Never listens. */
import { randomUUID } from 'node:crypto'
import cors, { type FastifyCorsOptions } from '@fastify/cors'
import { type TypeBoxTypeProvider, TypeBoxValidatorCompiler } from '@fastify/type-provider-typebox'
import Fastify, { type FastifyBaseLogger, LogController } from 'fastify'
import type { Deps } from './deps.ts'
import { Problem } from './domain/problem.ts'
import { adminRoutes } from './http/admin/index.ts'
import type { App } from './http/app-type.ts'
import { KeyRing } from './http/auth.ts'
import { catalogRoutes } from './http/catalog.ts'
import { checkoutRoutes } from './http/checkouts.ts'
import { customerRoutes } from './http/customers.ts'
import { healthRoutes } from './http/health.ts'
import { holdRoutes } from './http/holds.ts'
import { takeJsonBodies } from './http/json-body.ts'
import { keyHashOf } from './http/key-hash.ts'
import { ledgerRoutes } from './http/ledger.ts'
import { meterRoutes } from './http/meters.ts'
import { withNewKeySafe } from './http/new-key-safe.ts'
import { contractRoutes } from './http/openapi.ts'
import { orderOf, tenantOf } from './http/order-named.ts'
import { orderRoutes } from './http/orders.ts'
import { pageRoutes } from './http/pages.ts'
import { parseQuery } from './http/paging.ts'
import { invalidRequest, problemFor, refuseMalformedHttp, sendProblem } from './http/problems.ts'
import { refundRoutes } from './http/refunds.ts'
import { RouteTable } from './http/route-table.ts'
import { runRoutes } from './http/runs.ts'
import { shopDemoRoutes } from './http/shop-demo.ts'
import { Tally } from './http/tally.ts'
import { traceRequests } from './http/traced.ts'
import { webhookEndpointRoutes } from './http/webhook-endpoint.ts'
import { webhookRoutes } from './http/webhooks.ts'
import { IdleConnections } from './runtime/idle-connections.ts'

/** Far above any honest cart; below what would cost to parse. */
const bodyLimitBytes = 64 * 1024
/** A request that has not wholly arrived after this is given up: no phone needs longer for 64 KiB, and without a limit one
 * that never ends would hold a connection, and the end of the process, for ever. */
const arrivalMs = 30_000

/** No cache between here and the caller, nor a browser's, keeps what is about an order or is told to one key alone; pages say
 * otherwise of themselves. https://cheatsheetseries.owasp.org/cheatsheets/REST_Security_Cheat_Sheet.html */
const onEveryAnswer = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }

/** Asked every few seconds by machines: the log would hold little else. */
const probes = new Set(['/healthz', '/readyz', '/metrics'])

/** `before` is given the app before it has any route. */
export function buildApp(
  deps: Deps,
  lifecycle: { draining: boolean } = { draining: false },
  before: (app: App) => void = () => {},
): App {
  const app = Fastify({
    loggerInstance: deps.log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
    bodyLimit: bodyLimitBytes,
    trustProxy: deps.config.trustedProxies,
    requestTimeout: arrivalMs,
    // Node gives a request the longer and its headers the shorter of the two times, whichever is set to which, and looks every
    // half minute unless told otherwise: https://nodejs.org/api/http.html#serverheaderstimeout
    http: { headersTimeout: arrivalMs, connectionsCheckingInterval: 5000 },
    genReqId: () => `req_${randomUUID()}`,
    // However long it is, a route says what is wrong with it; Node takes no more than 16 KiB of URL and headers.
    routerOptions: { maxParamLength: 16_384, ignoreTrailingSlash: false, querystringParser: parseQuery },
    forceCloseConnections: 'idle',
    // What still arrives on an open connection while draining is served; the connection ends with the answer.
    return503OnClosing: false,
    exposeHeadRoutes: true,
    // A path that cannot be decoded has no route, and bytes that are no HTTP have no request.
    frameworkErrors: (error, request, reply) => {
      reply.headers({ ...onEveryAnswer, 'x-request-id': request.id })
      const { code, options, message } = problemFor(error, request)
      const members = { ...options.members, ...unknownAttempt(request.url) }
      return sendProblem(reply, new Problem(code, { ...options, detail: message, members }))
    },
    clientErrorHandler: refuseMalformedHttp,
  })
    // As for a body, elsewhere too: nothing is coerced ("1.5" is no limit of 1).
    .setValidatorCompiler((route) => TypeBoxValidatorCompiler({ ...route, httpPart: 'body' }))
    // Schemas of answers describe what is sent and never shape it: a serializer made from them would drop or bend what they
    // forgot, and a replay must be byte for byte what was sent first. Strings, as on the hot path, are sent as they are.
    .setSerializerCompiler(() => JSON.stringify)
    .withTypeProvider<TypeBoxTypeProvider>() as App

  traceRequests(app, deps.tracing)
  app.decorateRequest('caller', null)
  app.decorateRequest('problemCode', null)
  app.decorateRequest('keyHash', null)
  app.decorateRequest('fingerprint', null)
  app.addHook('onRequest', (request, reply, done) => {
    reply.headers({ ...onEveryAnswer, 'x-request-id': request.id })
    // No id, cursor or filter has one, and Postgres takes none in a text.
    const hasNul = request.url.includes('%00')
    done(hasNul ? invalidRequest('The URL must not contain a NUL character.') : undefined)
  })
  // A connection that is kept open after its last answer would hold the drain up for the whole keep-alive time.
  app.addHook('onSend', (_request, reply, _payload, done) => {
    if (lifecycle.draining) reply.header('connection', 'close')
    done()
  })
  const idle = new IdleConnections(app.server)
  app.addHook('preClose', async () => idle.closeUntilClosed())
  const tally = new Tally()
  app.addHook('onResponse', (request, reply, done) => {
    tally.count(request, reply)
    deps.metrics.request(
      {
        method: request.method,
        route: request.routeOptions.url ?? 'none',
        status: reply.statusCode,
        code: request.problemCode ?? '',
        replayed: reply.hasHeader('idempotent-replayed'),
      },
      reply.elapsedTime,
    )
    const isProbe = reply.statusCode < 400 && probes.has(request.routeOptions.url ?? '')
    const level = isProbe ? 'debug' : 'info'
    if (deps.log.isLevelEnabled(level)) {
      request.log[level](
        {
          tenant_id: tenantOf(request),
          key_hash: keyHashOf(request),
          order_id: orderOf(request),
          method: request.method,
          route: request.routeOptions.url,
          status: reply.statusCode,
          duration_ms: Math.round(reply.elapsedTime),
        },
        'request',
      )
    }
    done()
  })
  takeJsonBodies(app)
  app.setErrorHandler(async (error: Error, request, reply) => {
    const problem = problemFor(error, request)
    const tells = request.routeOptions.config.tellsNewKeySafe !== undefined
    return sendProblem(reply, tells ? await withNewKeySafe(deps, request, problem) : problem)
  })
  const routes = new RouteTable()
  app.addHook('onRoute', (route) => routes.add(route.url, route.method))
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.split('?')[0] ?? ''
    const members = unknownAttempt(path)
    const allowed = routes.methodsOf(path)
    if (allowed.length === 0) {
      return sendProblem(reply, new Problem('not_found', { detail: 'There is no such path.', members }))
    }
    reply.header('allow', allowed.join(', '))
    return sendProblem(reply, new Problem('method_not_allowed', { detail: `Allowed: ${allowed.join(', ')}.`, members }))
  })

  before(app)
  // In a scope, so that what `before` registers is there when they come.
  app.register(async (scope) => addRoutes(scope as App, deps, lifecycle, tally))
  return app
}

function addRoutes(app: App, deps: Deps, lifecycle: { draining: boolean }, tally: Tally): void {
  const ring = new KeyRing(deps)
  healthRoutes(app, deps, lifecycle)
  contractRoutes(app)
  orderRoutes(app, deps, ring)
  holdRoutes(app, deps, ring)
  refundRoutes(app, deps, ring)
  ledgerRoutes(app, deps, ring)
  webhookEndpointRoutes(app, deps, ring)
  meterRoutes(app, deps, ring)
  runRoutes(app, deps, ring)
  customerRoutes(app, deps, ring)
  adminRoutes(app, deps, ring, tally)
  app.register(async (storefront) => {
    await storefront.register(cors, fromBrowsers)
    catalogRoutes(storefront as App, deps, ring)
    checkoutRoutes(storefront as App, deps, ring)
  })
  webhookRoutes(app, deps)
  pageRoutes(app, deps.config.demo)
  if (deps.config.demo) shopDemoRoutes(app, deps, ring)
}

/** Of a request to a checkout that no route has looked at, nothing is known: its key may have been used. */
function unknownAttempt(path: string): { new_key_safe?: false } {
  return path.startsWith('/v1/checkouts') ? { new_key_safe: false } : {}
}

/** A storefront's pages call from their own origin with its publishable key; nothing here hangs on cookies. */
const fromBrowsers: FastifyCorsOptions = {
  origin: '*',
  methods: ['GET', 'POST'],
  allowedHeaders: ['Authorization', 'Content-Type', 'Idempotency-Key', 'traceparent'],
  exposedHeaders: ['Idempotent-Replayed', 'Location', 'Retry-After', 'X-Request-Id'],
  maxAge: 86_400,
  // A plain OPTIONS is no preflight, but no error either; the plugin's own refusal would not be problem details.
  strictPreflight: false,
}
