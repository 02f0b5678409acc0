/** Metered runs: hold, usage, end. */
import { Type } from 'typebox'
import type { Deps } from '../deps.ts'
import { isOpen } from '../domain/order.ts'
import { Problem } from '../domain/problem.ts'
import { orderIdOf, runIdOf, runView } from '../domain/run.ts'
import { type RunBody, startRun } from '../flows/holds/run.ts'
import { finalizeRun } from '../flows/holds/run-end.ts'
import { recordUsage, type UsageAnswer } from '../flows/holds/usage.ts'
import { type Run, readRun } from '../store/runs.ts'
import type { App } from './app-type.ts'
import { attemptOf, needsRoom, retryAfter, sendAnswer } from './attempt.ts'
import { admit, callerOf, type KeyRing } from './auth.ts'
import * as contract from './contract/runs.ts'
import {
  Amount,
  bodyOptional,
  Currency,
  Customer,
  closed,
  EmptyBody,
  IdParams,
  MeterType,
  noQueryOnPost,
  PaymentMethod,
} from './input.ts'

const RunRequestBody = closed({
  customer: Customer,
  payment_method: PaymentMethod,
  currency: Currency,
  hold_amount: Amount,
})

const UsageBody = closed({
  meter_type: MeterType,
  quantity: Type.Integer({ minimum: 0, maximum: 1_000_000_000_000, description: 'units of the meter' }),
})

export function runRoutes(app: App, deps: Deps, ring: KeyRing): void {
  const backend = admit(ring, 'backend')

  app.post(
    '/v1/runs',
    {
      preParsing: [backend, needsRoom(deps)],
      preValidation: noQueryOnPost,
      schema: { ...contract.startRun, body: RunRequestBody },
      config: { tellsNewKeySafe: 'by_header' },
    },
    async (request, reply) => {
      const answer = await startRun(deps, { ...attemptOf(request, '/v1/runs'), body: request.body as RunBody })
      return sendAnswer(reply, answer, (orderId) => `/v1/runs/${runIdOf(orderId)}`)
    },
  )

  app.get(
    '/v1/runs/:id',
    { preParsing: backend, schema: { ...contract.readRun, params: IdParams } },
    async (request) => {
      const run = await readRun(deps.db, callerOf(request).tenantId, orderIdOf(request.params.id))
      if (run === null) throw new Problem('not_found')
      return runView(run.order, run)
    },
  )

  app.post(
    '/v1/runs/:id/usage',
    {
      preParsing: backend,
      preValidation: noQueryOnPost,
      schema: { ...contract.recordUsage, params: IdParams, body: UsageBody },
    },
    async (request, reply) => {
      const answer = await recordUsage(deps, {
        tenantId: callerOf(request).tenantId,
        runId: request.params.id,
        meterType: request.body.meter_type,
        quantity: request.body.quantity,
      })
      if (answer.replayed) reply.header('idempotent-replayed', 'true')
      else reply.code(201)
      return usageView(answer)
    },
  )

  app.post(
    '/v1/runs/:id/finalize',
    {
      preParsing: backend,
      preValidation: bodyOptional,
      schema: { ...contract.finalizeRun, params: IdParams, body: EmptyBody },
    },
    async (request, reply) => {
      const run = await finalizeRun(deps, {
        tenantId: callerOf(request).tenantId,
        runId: request.params.id,
        requestId: request.id,
      })
      if (!hasEnded(run)) reply.code(202).header('retry-after', retryAfter(deps.config.reconcileAfterMs))
      return runView(run.order, run)
    },
  )
}

function hasEnded({ order }: Run): boolean {
  return !isOpen(order.status) && order.status !== 'authorized'
}

/** As it was first recorded: a repeat shows the same. */
function usageView({ run: { order }, line }: UsageAnswer) {
  return {
    object: 'usage' as const,
    run_id: runIdOf(order.order_id),
    meter_type: line.meter_type,
    quantity: line.quantity,
    amount: line.amount,
    currency: order.currency,
    used_amount: line.used_after,
    over_hold: line.used_after > order.total,
    created_at: line.created_at.toISOString(),
  }
}
