/** A tenant's orders. */
import { Type } from 'typebox'
import type { Deps } from '../deps.ts'
import { orderView, shownStatuses } from '../domain/order-view.ts'
import { Problem } from '../domain/problem.ts'
import { listOrders, readOrder } from '../store/orders.ts'
import type { App } from './app-type.ts'
import { admit, callerOf, type KeyRing } from './auth.ts'
import * as contract from './contract/orders.ts'
import { closed, IdParams } from './input.ts'
import { listPage, pageFrom, pageProperties } from './paging.ts'

const OrderQuery = closed({
  ...pageProperties,
  status: Type.Optional(Type.Union(shownStatuses.map((status) => Type.Literal(status)))),
})

export function orderRoutes(app: App, deps: Deps, ring: KeyRing): void {
  const backend = admit(ring, 'backend')

  app.get(
    '/v1/orders',
    { preParsing: backend, schema: { ...contract.listOrders, querystring: OrderQuery } },
    async (request) => {
      const page = pageFrom(request.query)
      const orders = await listOrders(deps.db, callerOf(request).tenantId, page, request.query.status)
      return listPage(
        orders,
        page,
        (order) => orderView(order, { withMetadata: true }),
        (order) => order.order_id,
      )
    },
  )

  app.get(
    '/v1/orders/:id',
    { preParsing: backend, schema: { ...contract.readOrder, params: IdParams } },
    async (request) => {
      const order = await readOrder(deps.db, callerOf(request).tenantId, request.params.id)
      if (order === null) throw new Problem('not_found')
      return orderView(order, { withMetadata: true })
    },
  )
}
