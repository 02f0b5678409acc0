/** Every request is a part of the trace that its `traceparent` names, or begins one; so is all that is done for it. */
import { parseTraceparent, type Span, type Tracing, within } from '../runtime/tracing.ts'
import type { App } from './app-type.ts'
import { keyHashOf } from './key-hash.ts'
import { orderNamedBy, orderOf, tenantOf } from './order-named.ts'

/** To be called before other hooks of the app, which then are a part of it too. */
export function traceRequests(app: App, tracing: Tracing): void {
  app.decorateRequest('span', null)
  app.decorateRequest('orderId', null)
  app.decorateRequest('tenantId', null)

  app.addHook('onRequest', (request, _reply, done) => {
    const route = request.routeOptions.url
    // Health checks and files would drown what matters.
    if (route?.startsWith('/v1/') !== true) return done()
    const parent = parseTraceparent(request.headers.traceparent)
    request.span = tracing.begin('server', `${request.method} ${route}`, {}, parent)
    within(request.span.context, done)
  })
  // The body's end is an event of the connection, and what follows it belongs to none.
  app.addHook('preValidation', (request, _reply, done) => within(request.span?.context, done))
  // Answers that are strings already say themselves whose they are.
  app.addHook('preSerialization', (request, _reply, answer, done) => {
    request.orderId ??= orderNamedBy(answer)
    done(null, answer)
  })
  app.addHook('onResponse', (request, reply, done) => {
    // Names as in https://opentelemetry.io/docs/specs/semconv/http/http-spans/ where there are some.
    request.span?.end(
      () => ({
        'http.request.method': request.method,
        'http.route': request.routeOptions.url,
        'http.response.status_code': reply.statusCode,
        'error.type': request.problemCode,
        'checkout.request_id': request.id,
        'checkout.tenant_id': tenantOf(request),
        'checkout.attempt': keyHashOf(request),
        'checkout.order_id': orderOf(request),
        'checkout.replayed': reply.hasHeader('idempotent-replayed'),
      }),
      reply.statusCode >= 500,
    )
    within(request.span?.context, done)
  })
}

declare module 'fastify' {
  interface FastifyRequest {
    span: Span | null
    /** The order that its answer is about, where there is one. */
    orderId: string | null
    /** The tenant that a request without an API key names. */
    tenantId: string | null
  }
}
