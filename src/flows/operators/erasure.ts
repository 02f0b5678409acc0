/**
 * A person wants to be forgotten.
 *
 *   keep the wish       with its line in the audit log                one transaction
 *   erase the orders    those that have ended, in small batches       a transaction each
 *   erase the person    once none of their orders is open
 *
 * Open money needs its data: an order that is still open follows when it has settled, which a worker looks for. Doing it
 * again changes nothing more.
 */
import type { Deps } from '../../deps.ts'
import { Problem } from '../../domain/problem.ts'
import { checkpoint } from '../../runtime/checkpoint.ts'
import { transaction } from '../../runtime/database.ts'
import { claimDueErasures, eraseCustomer, eraseOrders, requestErasure } from '../../store/erasures.ts'
import { type Operator, recordAudit } from '../../store/operator-audit.ts'

/** Locks of a batch are held for a moment only. */
const batch = 100
/** Of the orders that are still open, this many are named. */
const openMax = 20

interface ErasureResult {
  status: 'completed' | 'waiting'
  /** Orders that are still open. */
  openOrders: string[]
}

/** Throws `not_found` where the tenant has no such customer. */
export async function erasePersonalData(deps: Deps, by: Operator, customerId: string): Promise<ErasureResult> {
  const { tenantId } = by
  const wish = await transaction(deps.db, async (tx) => {
    const wish = await requestErasure(tx, tenantId, customerId)
    if (wish === null) return null
    const target = { type: 'customer' as const, id: customerId }
    await recordAudit(tx, by, { action: 'erase_personal_data', target, outcome: 'requested' })
    return wish
  })
  if (wish === null) throw new Problem('not_found')
  await checkpoint('erasure.requested')
  return erase(deps, tenantId, customerId)
}

/** Carries out wishes that are due; resolves with how many it looked at. */
export async function eraseDue(deps: Deps, atMost: number): Promise<number> {
  const due = await claimDueErasures(deps.pool, { firstMs: 60_000, atMost })
  for (const { tenantId, customerId } of due) await erase(deps, tenantId, customerId)
  return due.length
}

async function erase(deps: Deps, tenantId: string, customerId: string): Promise<ErasureResult> {
  for (let after: string | null = ''; after !== null; ) {
    const { last } = await eraseOrders(deps.db, tenantId, customerId, { after, limit: batch })
    after = last
    await checkpoint('erasure.batch_erased')
  }
  const { open } = await eraseCustomer(deps.db, tenantId, customerId, openMax)
  await checkpoint('erasure.person_erased')
  return { status: open.length === 0 ? 'completed' : 'waiting', openOrders: open }
}
