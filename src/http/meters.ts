/** Meters: what usage costs. */
import { Type } from 'typebox'
import type { Deps } from '../deps.ts'
import { currency } from '../domain/currencies.ts'
import { Problem } from '../domain/problem.ts'
import { listMeters, type Meter, putMeter } from '../store/meters.ts'
import type { App } from './app-type.ts'
import { admit, callerOf, type KeyRing } from './auth.ts'
import * as contract from './contract/runs.ts'
import { Amount, Currency, closed, MeterType, noQueryOnPost } from './input.ts'
import { listPage, PageQuery, pageFrom } from './paging.ts'

const MeterBody = closed({
  price: Amount,
  per: Type.Integer({ minimum: 1, maximum: 1_000_000_000_000, description: 'so many units cost `price`' }),
  currency: Currency,
})

export function meterRoutes(app: App, deps: Deps, ring: KeyRing): void {
  const backend = admit(ring, 'backend')

  app.get(
    '/v1/meters',
    { preParsing: backend, schema: { ...contract.listMeters, querystring: PageQuery } },
    async (request) => {
      const page = pageFrom(request.query)
      const meters = await listMeters(deps.db, callerOf(request).tenantId, page)
      return listPage(meters, page, meterView, (meter) => meter.meter_type)
    },
  )

  app.put(
    '/v1/meters/:type',
    {
      preParsing: backend,
      preValidation: noQueryOnPost,
      schema: { ...contract.putMeter, params: Type.Object({ type: MeterType }), body: MeterBody },
    },
    async (request) => {
      if (currency(request.body.currency) === undefined) {
        throw new Problem('currency_mismatch', { detail: `${request.body.currency} cannot be charged.` })
      }
      const meter = { tenant_id: callerOf(request).tenantId, meter_type: request.params.type, ...request.body }
      return meterView(await putMeter(deps.db, meter))
    },
  )
}

function meterView({ meter_type, price, per, currency }: Meter) {
  return { object: 'meter' as const, type: meter_type, price, per, currency }
}
