/** Goes on with endings of holds that are in doubt, and asks about holds that have run out. */
import type { Deps } from '../deps.ts'
import type { Order } from '../domain/order.ts'
import { driveEnding, type HoldDrive, lookAtHold } from '../flows/holds/hold-driving.ts'
import { deadlineFor } from '../flows/saga/provider-calls.ts'
import { newRunId } from '../runtime/run-id.ts'
import { claimDueEndings, claimLapsedHolds, type HoldEnding } from '../store/holds.ts'
import { readOrder } from '../store/orders.ts'
import { traced } from './traced.ts'

/** Asked about at once; the gate bounds how fast the provider is called. */
const atOnce = 8

/** Resolves with the number of holds that it found. */
export async function endHolds(deps: Deps): Promise<number> {
  const limits = { firstMs: deps.config.reconcileAfterMs, atMost: atOnce }
  const endings = await claimDueEndings(deps.db, limits)
  const lapsed = await claimLapsedHolds(deps.db, limits)
  await Promise.all([
    ...endings.map((ending) => attempt(deps, ending, () => goOn(deps, ending))),
    ...lapsed.map((order) => attempt(deps, order, () => lookAtHold(deps, order, driveBy(deps, 'expiry')))),
  ])
  return endings.length + lapsed.length
}

async function goOn(deps: Deps, ending: HoldEnding): Promise<void> {
  const order = await readOrder(deps.db, ending.tenant_id, ending.order_id)
  if (order !== null) await driveEnding(deps, order, ending, driveBy(deps, 'recovery'))
}

function driveBy(deps: Deps, cause: HoldDrive['cause']): HoldDrive {
  return { cause, actor: newRunId(), deadline: { ...deadlineFor(deps, performance.now()), background: true } }
}

async function attempt(
  deps: Deps,
  { tenant_id, order_id }: Pick<Order, 'tenant_id' | 'order_id'>,
  work: () => Promise<unknown>,
): Promise<void> {
  try {
    await traced(deps, 'end hold', { tenant_id, order_id }, work)
  } catch (error) {
    // The next ask is claimed already; one hold's fault must not stop the others.
    deps.log.error({ err: error, tenant_id, order_id }, 'ending a hold failed')
  }
}
