/** The HTTP app: plugins, error mapping and the list of routes. Never listens. */
import { randomUUID } from 'node:crypto'
import { type TypeBoxTypeProvider, TypeBoxValidatorCompiler } from '@fastify/type-provider-typebox'
import Fastify, { type FastifyBaseLogger, LogController } from 'fastify'
import type { Deps } from './deps.ts'
import { Problem } from './domain/problem.ts'
import type { App } from './http/app-type.ts'
import { KeyRing } from './http/auth.ts'
import { catalogRoutes } from './http/catalog.ts'
import { checkoutRoutes } from './http/checkouts.ts'
import { healthRoutes } from './http/health.ts'
import { orderRoutes } from './http/orders.ts'
import { handleError, sendProblem } from './http/problems.ts'

/** Far above any honest cart; below what would cost to parse. */
const bodyLimitBytes = 64 * 1024

export function buildApp(deps: Deps, lifecycle: { draining: boolean } = { draining: false }): App {
  const app = Fastify({
    loggerInstance: deps.log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
    bodyLimit: bodyLimitBytes,
    genReqId: () => `req_${randomUUID()}`,
    // A key in a path may have 200 characters, each percent-encoded.
    routerOptions: { maxParamLength: 600, ignoreTrailingSlash: false },
    forceCloseConnections: 'idle',
    exposeHeadRoutes: false,
  })
    .setValidatorCompiler(TypeBoxValidatorCompiler)
    .withTypeProvider<TypeBoxTypeProvider>() as App

  app.decorateRequest('caller', null)
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id)
  })
  app.addHook('onResponse', async (request, reply) => {
    request.log.info(
      {
        tenant_id: request.caller?.tenantId,
        method: request.method,
        route: request.routeOptions.url,
        status: reply.statusCode,
        duration_ms: Math.round(reply.elapsedTime),
      },
      'request',
    )
  })
  app.setErrorHandler(handleError)
  app.setNotFoundHandler((request, reply) => {
    const allowed = methods.filter((method) => app.hasRoute({ method, url: request.url.split('?')[0] ?? '' }))
    if (allowed.length === 0) return sendProblem(reply, new Problem('not_found', { detail: 'There is no such path.' }))
    reply.header('allow', allowed.join(', '))
    return sendProblem(reply, new Problem('method_not_allowed', { detail: `Allowed: ${allowed.join(', ')}.` }))
  })

  const ring = new KeyRing(deps)
  healthRoutes(app, deps, lifecycle)
  catalogRoutes(app, deps, ring)
  checkoutRoutes(app, deps, ring)
  orderRoutes(app, deps, ring)
  return app
}

const methods = ['GET', 'POST', 'PUT', 'DELETE'] as const
