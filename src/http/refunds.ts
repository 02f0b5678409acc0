/** Money going back. */
import { Type } from 'typebox'
import type { Deps } from '../deps.ts'
import { Problem } from '../domain/problem.ts'
import { refundView } from '../domain/refund.ts'
import { type RefundBody, refundOrder } from '../flows/refunds/refund.ts'
import { readRefund } from '../store/refunds.ts'
import type { App } from './app-type.ts'
import { attemptOf, sendAnswer } from './attempt.ts'
import { admit, callerOf, type KeyRing } from './auth.ts'
import * as contract from './contract/refunds.ts'
import { bodyOptional, closed, IdParams } from './input.ts'

const RefundRequestBody = closed({
  amount: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 999_999_999_999,
      description: 'minor units of the currency; what is left to refund where it is not given',
    }),
  ),
  reason: Type.Optional(Type.String({ minLength: 1, maxLength: 500 })),
})

export function refundRoutes(app: App, deps: Deps, ring: KeyRing): void {
  const backend = admit(ring, 'backend')

  app.post(
    '/v1/orders/:id/refunds',
    {
      preParsing: backend,
      preValidation: bodyOptional,
      schema: { ...contract.createRefund, params: IdParams, body: Type.Optional(RefundRequestBody) },
    },
    async (request, reply) => {
      const { id: orderId } = request.params
      const answer = await refundOrder(deps, {
        ...attemptOf(request, `/v1/orders/${orderId}/refunds`),
        orderId,
        body: request.body as RefundBody,
      })
      return sendAnswer(reply, answer, (id) => `/v1/refunds/${id}`)
    },
  )

  app.get(
    '/v1/refunds/:id',
    { preParsing: backend, schema: { ...contract.readRefund, params: IdParams } },
    async (request) => {
      const refund = await readRefund(deps.db, callerOf(request).tenantId, request.params.id)
      // One that surely was never sent has not happened, and nobody was told its id.
      if (refund === null || refund.status === 'unsent') throw new Problem('not_found')
      return refundView(refund)
    },
  )
}
