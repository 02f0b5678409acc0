/**
 * Which orders an id of the provider's is about. Our books tell of refunds, disputes and money that no order waited for. Of
 * a payment that an order lives on, the provider tells, whose metadata names the order: an index of our own would cost
 * every checkout.
 */
import type { Deps } from '../../deps.ts'
import { Problem } from '../../domain/problem.ts'
import { ordersNaming } from '../../store/admin-orders.ts'
import { connectedAccountOf } from '../../store/tenants.ts'
import { ask, deadlineFor } from '../saga/provider-calls.ts'
import { configuredTarget } from '../saga/provider-target.ts'

/** Throws `provider_unavailable` where the provider has to be asked and does not answer. */
export async function ordersOfReference(deps: Deps, tenantId: string, reference: string): Promise<string[]> {
  const named = await ordersNaming(deps.db, tenantId, reference)
  // Ids of payments look like this; anything else leads nowhere.
  if (named.length > 0 || !/^\w{1,255}$/.test(reference)) return named
  const target = await configuredTarget(deps, await connectedAccountOf(deps.db, tenantId))
  const { outcome } = await ask(deps, deadlineFor(deps, performance.now()), (limits) =>
    deps.provider.retrieve(target, reference, limits),
  )
  if (outcome.kind === 'absent') return []
  if (!('payment' in outcome) || outcome.payment === null) {
    throw new Problem('provider_unavailable', {
      detail: 'The payment provider, which knows whose payment it is, gave no answer.',
      retryAfterSeconds: 2,
    })
  }
  const { tenant, order } = outcome.payment.metadata
  return tenant === tenantId && order !== undefined ? [order] : []
}
