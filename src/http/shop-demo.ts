/** What the demo shop's page needs beside the API. All but its settings are there only while the simulator is charged. */
import { Type } from 'typebox'
import type { Deps } from '../deps.ts'
import { parseKeyInPath } from '../domain/idempotency-key.ts'
import { Problem } from '../domain/problem.ts'
import { putProduct, readProduct } from '../store/catalog.ts'
import { demoKeys, demoProducts } from '../store/demo.ts'
import type { App } from './app-type.ts'
import type { KeyRing } from './auth.ts'
import { Amount, closed, Sku } from './input.ts'

const BankBody = closed({
  payment: Type.String({ pattern: '^pi_[A-Za-z0-9_]{1,100}$' }),
  outcome: Type.Enum(['approve', 'refuse']),
})
const MishapBody = closed({
  mishap: Type.Union([Type.Enum(['answer_lost', 'unreachable', 'slow']), Type.Null()]),
})
const ShelfBody = closed({
  sku: Sku,
  unit_price: Type.Optional(Amount),
  available: Type.Optional(Amount),
  /** Plenty of it; what the demo seeds is as it was seeded, its price too. */
  refill: Type.Optional(Type.Boolean()),
})
const plenty = { available: 1000 }

const hide = true

/** Anybody may call these, as anybody has the demo's keys. */
export function shopDemoRoutes(app: App, deps: Deps, ring: KeyRing): void {
  const { standIn } = deps
  app.get('/shop/config.json', { schema: { hide } }, async (_request, reply) => {
    return reply
      .header('cache-control', 'no-store')
      .send({ publishable_key: demoKeys.storefront, stand_in: standIn !== undefined })
  })
  if (standIn === undefined) return

  app.post('/shop/bank', { schema: { hide, body: BankBody } }, async ({ body }, reply) => {
    if (await standIn.answerBank(body.payment, body.outcome)) return reply.code(204).send()
    throw new Problem('order_state_conflict', { detail: 'The bank asks nothing of this payment, or no longer.' })
  })
  app.post('/shop/mishap', { schema: { hide, body: MishapBody } }, async ({ body }, reply) => {
    await standIn.prepareMishap(body.mishap)
    return reply.code(204).send()
  })
  app.post('/shop/shelf', { schema: { hide, body: ShelfBody } }, async ({ body }) => {
    const product = await readProduct(deps.db, await demoTenant(ring), body.sku)
    if (product === null) throw new Problem('not_found')
    const filled = body.refill === true ? (demoProducts.find(({ sku }) => sku === body.sku) ?? plenty) : {}
    const { tenant_id, sku, name, currency, unit_price, available } = { ...product, ...filled, ...body }
    await putProduct(deps.db, { tenant_id, sku, name, currency, unit_price, available })
    return { unit_price, available }
  })
  const byKey = Type.Object({ key: Type.String() })
  app.get('/shop/payments/:key', { schema: { hide, params: byKey } }, async ({ params }) => {
    const parsed = parseKeyInPath(params.key)
    if (parsed.kind === 'invalid') throw new Problem('idempotency_key_invalid', { detail: parsed.reason })
    return { data: await standIn.paymentsFor(await demoTenant(ring), parsed.key) }
  })
}

async function demoTenant(ring: KeyRing): Promise<string> {
  const owner = await ring.owner(demoKeys.storefront)
  // Revoked, on a database of one's own.
  if (owner === null) throw new Problem('not_found')
  return owner.tenantId
}
