/** The end of a hold: capture or cancel. */
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { Deps } from '../deps.ts'
import { orderView } from '../domain/order-view.ts'
import { Problem } from '../domain/problem.ts'
import { endHold, type HoldEnding } from '../flows/holds/hold.ts'
import { readOrder } from '../store/orders.ts'
import type { App } from './app-type.ts'
import { admit, callerOf, type KeyRing } from './auth.ts'
import * as contract from './contract/orders.ts'
import { Amount, bodyOptional, closed, EmptyBody, IdParams } from './input.ts'

const params = IdParams
const CaptureBody = Type.Optional(closed({ amount: Type.Optional(Amount) }))

export function holdRoutes(app: App, deps: Deps, ring: KeyRing): void {
  const preParsing = admit(ring, 'backend')
  const preValidation = bodyOptional

  async function end(request: FastifyRequest, orderId: string, ending: Pick<HoldEnding, 'action' | 'amount'>) {
    const { tenantId } = callerOf(request)
    const order = await readOrder(deps.db, tenantId, orderId)
    if (order?.kind === 'run') {
      throw new Problem('order_state_conflict', { detail: 'The order is a metered run: finalize the run.' })
    }
    const by = { cause: 'merchant' as const, actor: request.id, background: false }
    return endHold(deps, { tenantId, orderId, ...ending }, by)
  }

  app.post(
    '/v1/orders/:id/capture',
    { preParsing, preValidation, schema: { ...contract.captureHold, params, body: CaptureBody } },
    async (request, reply) => {
      const amount = request.body.amount
      const order = await end(request, request.params.id, {
        action: 'capture',
        ...(amount === undefined ? {} : { amount }),
      })
      if (order.status === 'authorized') askAgain(reply)
      return orderView(order)
    },
  )

  app.post(
    '/v1/orders/:id/cancel',
    { preParsing, preValidation, schema: { ...contract.cancelHold, params, body: EmptyBody } },
    async (request, reply) => {
      const order = await end(request, request.params.id, { action: 'cancel' })
      if (order.status === 'authorized') askAgain(reply)
      return orderView(order)
    },
  )

  /** In doubt: a worker goes on asking, and so does the same request again. */
  function askAgain(reply: { code(status: number): { header(name: string, value: string): unknown } }): void {
    reply.code(202).header('retry-after', String(Math.max(1, Math.ceil(deps.config.reconcileAfterMs / 1000))))
  }
}
