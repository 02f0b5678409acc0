/** The inbox as an operator sees it: events about the tenant, and those of its account that name no tenant. */
import { Type } from 'typebox'
import type { Deps } from '../../deps.ts'
import { Problem } from '../../domain/problem.ts'
import { replayEvent } from '../../flows/notifications/events.ts'
import { audited } from '../../flows/operators/operator.ts'
import { eventCursor, listEvents, readEvent, type StoredEvent } from '../../store/inbox.ts'
import type { KeyOwner } from '../../store/tenants.ts'
import type { App } from '../app-type.ts'
import { callerOf } from '../auth.ts'
import * as contract from '../contract/admin.ts'
import { bodyOptional, closed, EmptyBody, IdParams } from '../input.ts'
import { listPage, pageFrom, pageProperties } from '../paging.ts'
import { type Admission, FilterFlag, FilterText, operatorOf } from './operator.ts'

const EventQuery = closed({
  ...pageProperties,
  state: Type.Optional(
    Type.Union((['waiting', 'done', 'ignored', 'foreign', 'mismatched'] as const).map((state) => Type.Literal(state))),
  ),
  type: Type.Optional(FilterText),
  order_id: Type.Optional(FilterText),
  unnamed: Type.Optional(FilterFlag),
})

export function adminEventRoutes(app: App, deps: Deps, preParsing: Admission): void {
  app.get(
    '/v1/admin/events',
    { preParsing, schema: { ...contract.listEvents, querystring: EventQuery } },
    async (request) => {
      const { state, type, order_id: orderId, unnamed } = request.query
      const { tenantId, connectedAccount } = callerOf(request)
      const page = pageFrom(request.query)
      const events = await listEvents(deps.db, page, {
        ...(state === undefined ? {} : { state }),
        ...(type === undefined ? {} : { type }),
        ...(orderId === undefined ? {} : { order: { tenantId, orderId } }),
        ...(unnamed === 'true' ? { unnamedOf: { account: connectedAccount } } : { tenantId }),
      })
      return listPage(events, page, eventView, eventCursor)
    },
  )

  app.get(
    '/v1/admin/events/:id',
    { preParsing, schema: { ...contract.readEvent, params: IdParams } },
    async (request) => {
      return eventView(await visibleEvent(deps, callerOf(request), request.params.id))
    },
  )

  app.post(
    '/v1/admin/events/:id/replay',
    {
      preParsing,
      preValidation: bodyOptional,
      schema: { ...contract.replayEvent, params: IdParams, body: EmptyBody },
    },
    async (request) => {
      const event = await visibleEvent(deps, callerOf(request), request.params.id)
      const id = event.event_id
      const orderId = event.order_id === null ? {} : { orderId: event.order_id }
      const replayed = await audited(
        deps,
        operatorOf(request),
        { action: 'replay', target: { type: 'provider_event', id, ...orderId } },
        () => replayEvent(deps, id),
        ({ state }) => state,
      )
      return eventView(replayed)
    },
  )
}

async function visibleEvent(deps: Deps, caller: KeyOwner, eventId: string): Promise<StoredEvent> {
  const event = await readEvent(deps.db, deps.notifications.provider, eventId)
  const isVisible =
    event !== null &&
    (event.tenant_id === null ? event.account === caller.connectedAccount : event.tenant_id === caller.tenantId)
  if (!isVisible) throw new Problem('not_found')
  return event
}

function eventView(stored: StoredEvent) {
  const { event_id, tenant_id: _tenant, object, created_at, received_at, handled_at, ...event } = stored
  return {
    id: event_id,
    object: 'provider_event' as const,
    about: object,
    ...event,
    created_at: created_at.toISOString(),
    received_at: received_at.toISOString(),
    handled_at: handled_at?.toISOString() ?? null,
  }
}
