/** Finds refunds in doubt or on their way that are due to be asked about, and drives each on. */
import type { Deps } from '../deps.ts'
import type { Refund } from '../domain/refund.ts'
import { driveRefund } from '../flows/refunds/refund-recovery.ts'
import { deadlineFor } from '../flows/saga/provider-calls.ts'
import { claimDueRefunds } from '../store/refunds.ts'
import { traced } from './traced.ts'

/** Asked about at once; the gate bounds how fast the provider is called. */
const atOnce = 8

/** Resolves with the number of refunds that it found. */
export async function settleRefunds(deps: Deps): Promise<number> {
  const due = await claimDueRefunds(deps.db, { firstMs: deps.config.reconcileAfterMs, atMost: atOnce })
  await Promise.all(due.map((refund) => settle(deps, refund)))
  return due.length
}

async function settle(deps: Deps, refund: Refund): Promise<void> {
  try {
    const deadline = { ...deadlineFor(deps, performance.now()), background: true }
    await traced(deps, 'settle refund', refund, () => driveRefund(deps, refund, deadline))
  } catch (error) {
    // The next ask is claimed already; one refund's fault must not stop the others.
    const { tenant_id, refund_id } = refund
    deps.log.error({ err: error, tenant_id, refund_id }, 'driving a refund on failed')
  }
}
