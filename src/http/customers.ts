/** A person's data. */
import type { Deps } from '../deps.ts'
import { erasePersonalData } from '../flows/operators/erasure.ts'
import { operatorOf } from './admin/operator.ts'
import type { App } from './app-type.ts'
import { admit, type KeyRing } from './auth.ts'
import * as contract from './contract/customers.ts'
import { IdParams } from './input.ts'

export function customerRoutes(app: App, deps: Deps, ring: KeyRing): void {
  app.delete(
    '/v1/customers/:id/personal-data',
    {
      preParsing: admit(ring, 'backend'),
      schema: { ...contract.erasePersonalData, params: IdParams },
    },
    async (request, reply) => {
      const { id } = request.params
      const { status, openOrders } = await erasePersonalData(deps, operatorOf(request), id)
      if (status === 'waiting') reply.code(202)
      return { object: 'erasure' as const, customer_id: id, status, open_orders: openOrders }
    },
  )
}
