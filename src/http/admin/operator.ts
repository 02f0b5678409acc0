/** Who acts, as the audit log keeps it. */
import type { FastifyRequest, preParsingHookHandler } from 'fastify'
import { Type } from 'typebox'
import type { Operator } from '../../flows/operators/operator.ts'
import { callerOf } from '../auth.ts'

/** Admits those who may act. */
export type Admission = preParsingHookHandler

export function operatorOf(request: FastifyRequest): Operator {
  const { tenantId, label, keyId } = callerOf(request)
  return { tenantId, actor: label, keyId, requestId: request.id }
}

/** Why a person does it, in their own words. */
export const Reason = Type.String({ minLength: 1, maxLength: 500, pattern: '\\S' })

/** For filters: ids, keys and words of ours. */
export const FilterText = Type.String({ minLength: 1, maxLength: 300 })

export const FilterFlag = Type.Union([Type.Literal('true'), Type.Literal('false')])
