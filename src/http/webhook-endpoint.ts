/** Where a tenant wants its events, and what became of them. */
import { randomBytes } from 'node:crypto'
import { Type } from 'typebox'
import type { Deps } from '../deps.ts'
import { Problem } from '../domain/problem.ts'
import { refusalOf } from '../runtime/post-outside.ts'
import { deleteEndpoint, type Endpoint, listDeliveries, putEndpoint, readEndpoint } from '../store/merchant-events.ts'
import type { App } from './app-type.ts'
import { admit, callerOf, type KeyRing } from './auth.ts'
import * as contract from './contract/notifications.ts'
import { closed } from './input.ts'
import { listPage, PageQuery, pageFrom } from './paging.ts'
import { invalidRequest } from './problems.ts'

/** How long the secret before the present one signs too: time to change over without losing an event. */
const overlapMs = 24 * 3_600_000

const EndpointBody = closed({
  url: Type.String({
    minLength: 1,
    maxLength: 2000,
    description: 'https, on a public address; redirects are not followed',
  }),
})

export function webhookEndpointRoutes(app: App, deps: Deps, ring: KeyRing): void {
  const backend = admit(ring, 'backend')
  const path = '/v1/webhook-endpoint'

  app.put(path, { preParsing: backend, schema: { ...contract.putEndpoint, body: EndpointBody } }, async (request) => {
    const { url } = request.body
    const refused = refusalOf(url, deps.config.merchantWebhookAllowPrivate)
    if (refused !== null) throw invalidRequest(`body/url: ${refusals[refused]}`)
    // The form that Standard Webhooks gives a secret: 24 to 64 random bytes.
    const secret = `whsec_${randomBytes(32).toString('base64')}`
    const endpoint = await putEndpoint(deps.db, callerOf(request).tenantId, { url, secret, overlapMs })
    return { ...endpointView(endpoint), secret }
  })

  app.get(path, { preParsing: backend, schema: { ...contract.readEndpoint } }, async (request) => {
    const endpoint = await readEndpoint(deps.db, callerOf(request).tenantId)
    if (endpoint === null) throw new Problem('not_found')
    return endpointView(endpoint)
  })

  app.delete(path, { preParsing: backend, schema: { ...contract.deleteEndpoint } }, async (request, reply) => {
    if (!(await deleteEndpoint(deps.db, callerOf(request).tenantId))) throw new Problem('not_found')
    return reply.code(204).send()
  })

  app.get(
    `${path}/deliveries`,
    { preParsing: backend, schema: { ...contract.listDeliveries, querystring: PageQuery } },
    async (request) => {
      const page = pageFrom(request.query)
      const deliveries = await listDeliveries(deps.db, callerOf(request).tenantId, page)
      return listPage(deliveries, page, deliveryView, (delivery) => delivery.delivery_id)
    },
  )
}

const refusals = {
  url_invalid: 'must be an https URL without credentials or fragment.',
  address_not_public: 'must lead to a public address.',
}

function endpointView(endpoint: Endpoint) {
  return {
    object: 'webhook_endpoint' as const,
    url: endpoint.url,
    status: endpoint.disabled_at === null ? ('enabled' as const) : ('disabled' as const),
    disabled_reason: endpoint.disabled_reason,
    disabled_at: endpoint.disabled_at?.toISOString() ?? null,
    last_success_at: endpoint.last_success_at?.toISOString() ?? null,
    created_at: endpoint.created_at.toISOString(),
    updated_at: endpoint.updated_at.toISOString(),
  }
}

export function deliveryView(delivery: Awaited<ReturnType<typeof listDeliveries>>[number]) {
  const { delivery_id, event_id, type, order_id, attempt, delivered, http_status, error, duration_ms } = delivery
  return {
    id: delivery_id,
    object: 'webhook_delivery' as const,
    event_id,
    type,
    order_id,
    attempt,
    delivered,
    http_status,
    error,
    duration_ms,
    created_at: delivery.created_at.toISOString(),
  }
}
