/** Whose a request is and which order it is about, for its log line and span. */
import type { FastifyRequest } from 'fastify'
import { isId } from '../domain/ids.ts'
import { orderIdOf } from '../domain/run.ts'

/** The order that a request is about or has made: what its answer is about, or else what its path or query names. */
export function orderOf(request: FastifyRequest): string | undefined {
  if (request.orderId !== null) return request.orderId
  const { id } = (request.params ?? {}) as { id?: unknown }
  const { order_id } = (request.query ?? {}) as { order_id?: unknown }
  return orderIn(id) ?? orderIn(order_id)
}

/** Whose request it is: by its API key, or as a notification says. */
export function tenantOf(request: FastifyRequest): string | undefined {
  return request.caller?.tenantId ?? request.tenantId ?? undefined
}

/** The order that an answer names: an order or a run itself, or what belongs to one. Null for lists and for all else. */
export function orderNamedBy(answer: unknown): string | null {
  if (typeof answer !== 'object' || answer === null) return null
  const { id, order_id, run_id, order, payload } = answer as Record<string, unknown>
  const named = orderIn(order_id) ?? orderIn(id) ?? orderIn(run_id)
  return named ?? (order === undefined ? null : orderNamedBy(order)) ?? orderNamedBy(payload)
}

/** Ids that begin with an order's, and those of runs; a caller may have put anything else there. */
function orderIn(text: unknown): string | undefined {
  if (typeof text !== 'string') return undefined
  // An email's is that of its order and a kind.
  const [first = ''] = text.split(':', 1)
  const id = first.startsWith('run_') ? orderIdOf(first) : first
  return isId('ord', id) ? id : undefined
}
