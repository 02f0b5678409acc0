/** Orders that need a person, the whole story of one, and what a person may do about it. */
import { Type } from 'typebox'
import type { Deps } from '../../deps.ts'
import { isOpen, type Order } from '../../domain/order.ts'
import { orderView } from '../../domain/order-view.ts'
import { Problem } from '../../domain/problem.ts'
import { ordersOfReference } from '../../flows/notifications/orders-of-reference.ts'
import { decideOrder, decisions } from '../../flows/operators/decision.ts'
import { reconcileNow } from '../../flows/operators/reconcile-now.ts'
import { findOrders, type OrderInList } from '../../store/admin-orders.ts'
import { listAudit } from '../../store/operator-audit.ts'
import { readStory } from '../../store/order-story.ts'
import { readOrder } from '../../store/orders.ts'
import type { App } from '../app-type.ts'
import { retryAfter } from '../attempt.ts'
import { callerOf } from '../auth.ts'
import * as contract from '../contract/admin-orders.ts'
import { bodyOptional, closed, EmptyBody, IdParams, noQueryOnPost } from '../input.ts'
import { listPage, pageFrom, pageProperties } from '../paging.ts'
import { auditView } from './audit.ts'
import { type Admission, FilterText, operatorOf, Reason } from './operator.ts'

const Status = Type.Union(
  (['pending', 'requires_action', 'needs_reconcile', 'authorized', 'paid', 'payment_failed', 'canceled'] as const).map(
    (status) => Type.Literal(status),
  ),
)

const Flagged = Type.Union(
  (['true', 'false', 'settled'] as const).map((word) => Type.Literal(word)),
  { description: '`true`: every order that needs a person; `settled`: those of them that are not open' },
)

const OrderQuery = closed({
  ...pageProperties,
  status: Type.Optional(Status),
  flagged: Type.Optional(Flagged),
  reason: Type.Optional(FilterText),
  key: Type.Optional(FilterText),
  reference: Type.Optional(FilterText),
  email: Type.Optional(FilterText),
})

const DecisionBody = closed({
  outcome: Type.Union(decisions.map((outcome) => Type.Literal(outcome))),
  reason: Reason,
})

export function adminOrderRoutes(app: App, deps: Deps, preParsing: Admission): void {
  app.get(
    '/v1/admin/orders',
    { preParsing, schema: { ...contract.listAdminOrders, querystring: OrderQuery } },
    async (request) => {
      const { status, flagged, reason, key, reference, email } = request.query
      const { tenantId } = callerOf(request)
      const page = pageFrom(request.query)
      const orders = await findOrders(deps.db, tenantId, page, {
        ...(status === undefined ? {} : { status }),
        ...(flagged === undefined || flagged === 'false' ? {} : { flagged }),
        ...(reason === undefined ? {} : { reason }),
        ...(key === undefined ? {} : { key }),
        ...(reference === undefined ? {} : { orderIds: await ordersOfReference(deps, tenantId, reference) }),
        ...(email === undefined ? {} : { email }),
      })
      return listPage(orders, page, listView, (order) => order.order_id)
    },
  )

  app.get(
    '/v1/admin/orders/:id',
    { preParsing, schema: { ...contract.readAdminOrder, params: IdParams } },
    async (request) => {
      const { tenantId } = callerOf(request)
      const order = await readOrder(deps.db, tenantId, request.params.id)
      if (order === null) throw new Problem('not_found')
      const [story, audit] = await Promise.all([
        readStory(deps.db, order),
        listAudit(deps.db, tenantId, { limit: 199, after: null }, { orderId: order.order_id }),
      ])
      return { ...view(order, { withMetadata: true }), ...storyView(story), audit: audit.map(auditView) }
    },
  )

  app.post(
    '/v1/admin/orders/:id/reconcile',
    {
      preParsing,
      preValidation: bodyOptional,
      schema: { ...contract.reconcileOrder, params: IdParams, body: EmptyBody },
    },
    async (request, reply) => {
      const order = await reconcileNow(deps, operatorOf(request), request.params.id)
      if (isOpen(order.status)) reply.code(202).header('retry-after', retryAfter(deps.config.reconcileAfterMs))
      return view(order)
    },
  )

  app.post(
    '/v1/admin/orders/:id/decide',
    {
      preParsing,
      preValidation: noQueryOnPost,
      schema: { ...contract.decideOrder, params: IdParams, body: DecisionBody },
    },
    async (request) => {
      const { outcome, reason } = request.body
      const decision = { orderId: request.params.id, outcome, reason }
      return view(await decideOrder(deps, operatorOf(request), decision))
    },
  )
}

function view(order: Order, options: { withMetadata?: boolean } = {}) {
  return {
    ...orderView(order, options),
    attempt_key: order.attempt_key,
    kind: order.kind,
    capture: order.capture,
    maybe_sent: order.maybe_sent,
    asks: order.asks,
    next_ask_at: isOpen(order.status) ? order.next_ask_at.toISOString() : null,
    expires_at: isOpen(order.status) ? order.expires_at.toISOString() : null,
    cancel_requested_at: order.cancel_requested_at?.toISOString() ?? null,
  }
}

function listView(order: OrderInList) {
  return {
    ...view(order),
    status_since: order.status_since.toISOString(),
    status_age_seconds: Math.max(0, Math.floor((Date.now() - order.status_since.getTime()) / 1000)),
  }
}

/** The rows as they are, without what only repeats whose they are or is not for show. */
function storyView(story: Awaited<ReturnType<typeof readStory>>) {
  return {
    customer: story.customer ?? null,
    attempt: story.attempt ?? null,
    provider_calls: story.calls,
    provider_events: story.events.map(({ tenant_id: _tenant, order_id: _order, ...event }) => event),
    transitions: story.transitions,
    ledger: story.ledger,
    stock_movements: story.stock,
    hold_ending: story.ending ?? null,
    run: story.run ?? null,
    refunds: story.refunds.map(({ tenant_id: _tenant, order_id: _order, ...refund }) => refund),
    disputes: story.disputes,
    jobs: story.jobs,
    emails: story.emails,
    merchant_events: story.merchantEvents,
    deliveries: story.deliveries,
  }
}
