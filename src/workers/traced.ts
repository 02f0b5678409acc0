import type { Deps } from '../deps.ts'
import { spanning } from '../runtime/tracing.ts'

/** What a worker finds has no request that it belongs to: a trace of its own, found by the order. */
export function traced<Result>(
  { tracing }: Deps,
  name: string,
  { tenant_id, order_id }: { tenant_id: string; order_id: string },
  work: () => Promise<Result>,
): Promise<Result> {
  const span = tracing.begin('internal', name, { 'checkout.tenant_id': tenant_id, 'checkout.order_id': order_id })
  return spanning(span, work)
}
