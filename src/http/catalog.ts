/** The catalog: prices and stock live here. */
import { Type } from 'typebox'
import type { Deps } from '../deps.ts'
import { currency } from '../domain/currencies.ts'
import { Problem } from '../domain/problem.ts'
import { refuseOffStep } from '../flows/saga/refusals.ts'
import { listProducts, type Product, putProduct, readProduct } from '../store/catalog.ts'
import type { App } from './app-type.ts'
import { admit, callerOf, type KeyRing } from './auth.ts'
import * as contract from './contract/catalog.ts'
import { Amount, Currency, closed, noQueryOnPost, Sku } from './input.ts'
import { listPage, PageQuery, pageFrom } from './paging.ts'

const ProductBody = closed({
  name: Type.String({ minLength: 1, maxLength: 200 }),
  unit_price: Amount,
  currency: Currency,
  available: Amount,
})

export function catalogRoutes(app: App, deps: Deps, ring: KeyRing): void {
  const readers = admit(ring, 'storefront', 'backend', 'admin')

  app.get(
    '/v1/products',
    { preParsing: readers, schema: { ...contract.listProducts, querystring: PageQuery } },
    async (request) => {
      const page = pageFrom(request.query)
      const products = await listProducts(deps.db, callerOf(request).tenantId, page)
      return listPage(products, page, productView, (product) => product.sku)
    },
  )

  app.get(
    '/v1/products/:sku',
    { preParsing: readers, schema: { ...contract.readProduct, params: Type.Object({ sku: Type.String() }) } },
    async (request) => {
      const product = await readProduct(deps.db, callerOf(request).tenantId, request.params.sku)
      if (product === null) throw new Problem('not_found')
      return productView(product)
    },
  )

  app.put(
    '/v1/products/:sku',
    {
      preParsing: admit(ring, 'backend'),
      preValidation: noQueryOnPost,
      schema: { ...contract.putProduct, params: Type.Object({ sku: Sku }), body: ProductBody },
    },
    async (request) => {
      if (currency(request.body.currency) === undefined) {
        throw new Problem('currency_mismatch', { detail: `${request.body.currency} cannot be charged.` })
      }
      refuseOffStep(request.body.currency, request.body.unit_price, 'sold')
      const product = { tenant_id: callerOf(request).tenantId, sku: request.params.sku, ...request.body }
      return productView(await putProduct(deps.db, product))
    },
  )
}

function productView({ sku, name, unit_price, currency, available }: Product) {
  return { object: 'product' as const, sku, name, unit_price, currency, available }
}
