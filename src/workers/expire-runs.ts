/** Ends runs that nobody has finalized in time, and goes on with ends that died half-way. */
import type { Deps } from '../deps.ts'
import { endRun } from '../flows/holds/run-end.ts'
import { newRunId } from '../runtime/run-id.ts'
import { claimDueRuns } from '../store/runs.ts'
import { traced } from './traced.ts'

/** Ended at once; the gate bounds how fast the provider is called. */
const atOnce = 8

/** Resolves with the number of runs that it found. */
export async function expireRuns(deps: Deps): Promise<number> {
  const due = await claimDueRuns(deps.pool, { firstMs: deps.config.reconcileAfterMs, atMost: atOnce })
  await Promise.all(due.map(({ tenantId, orderId }) => end(deps, tenantId, orderId)))
  return due.length
}

async function end(deps: Deps, tenantId: string, orderId: string): Promise<void> {
  try {
    await traced(deps, 'expire run', { tenant_id: tenantId, order_id: orderId }, () =>
      endRun(deps, tenantId, orderId, { closing: 'expiry', actor: newRunId(), background: true }),
    )
  } catch (error) {
    // The next look is claimed already; one run's fault must not stop the others.
    deps.log.error({ err: error, tenant_id: tenantId, order_id: orderId }, 'the end of a run failed')
  }
}
