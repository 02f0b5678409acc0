/** Where charges go: the configured account, mode and versions, recorded by each claim and compared before each later call. */
import type { Deps } from '../../deps.ts'
import type { Order } from '../../domain/order.ts'
import type { ProviderTarget } from '../../provider/port.ts'
import { ProviderUnavailable } from '../../provider/port.ts'
import { connectedAccountOf } from '../../store/tenants.ts'
import { providerUnavailable } from './settlement.ts'

/** What a new claim records. Throws a `Problem` while the provider has not told who we are: nothing is stored then. */
export async function configuredTarget(deps: Deps, connectedAccount: string | null): Promise<ProviderTarget> {
  try {
    const identity = await deps.provider.identity()
    return {
      connectedAccount,
      account: connectedAccount ?? identity.account,
      livemode: identity.livemode,
      apiVersion: deps.provider.versions.api,
    }
  } catch (error) {
    if (error instanceof ProviderUnavailable) throw providerUnavailable(deps.config.reconcileAfterMs)
    throw error
  }
}

/** Whether the account and mode that an order was claimed for are still the configured ones. Where they are not, asking
 * would be answered by somebody else's books. Null while the provider cannot tell who we are. */
export async function stillConfigured(deps: Deps, order: Order): Promise<boolean | null> {
  try {
    const identity = await deps.provider.identity()
    const connectedAccount = await connectedAccountOf(deps.db, order.tenant_id)
    return (
      order.connected_account === connectedAccount &&
      order.provider_account === (connectedAccount ?? identity.account) &&
      order.livemode === identity.livemode
    )
  } catch (error) {
    if (error instanceof ProviderUnavailable) return null
    throw error
  }
}
