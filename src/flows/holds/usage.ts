/** Usage of a metered run: one line per run and meter, whoever repeats it. */
import type { Deps } from '../../deps.ts'
import { roundHalfUp } from '../../domain/money.ts'
import { isOpen } from '../../domain/order.ts'
import { Problem } from '../../domain/problem.ts'
import { orderIdOf, runStatus } from '../../domain/run.ts'
import { checkpoint } from '../../runtime/checkpoint.ts'
import { type Meter, readMeter } from '../../store/meters.ts'
import { addUsage, type RecordedUsage, type Run, readRun, readUsage } from '../../store/runs.ts'

/** A run's usage never comes to more than this, minor units: beyond any charge, and exact in any sum with others. */
const usedMax = 999_999_999_999

interface UsageRequest {
  tenantId: string
  runId: string
  meterType: string
  quantity: number
}

export interface UsageAnswer {
  run: Run
  line: RecordedUsage
  /** It had been recorded before. */
  replayed: boolean
}

/**
 * Records the line, or finds it recorded. Throws a `Problem`: `not_found`, `usage_conflict` (recorded with another
 * quantity), `run_closed`, `order_state_conflict` (the hold is not placed yet), `unknown_meter`, `currency_mismatch`, or
 * `amount_not_chargeable` where it would come to more than can be counted.
 */
export async function recordUsage(deps: Deps, request: UsageRequest): Promise<UsageAnswer> {
  const { tenantId, meterType, quantity } = request
  const orderId = orderIdOf(request.runId)
  const run = await readRun(deps.db, tenantId, orderId)
  if (run === null) throw new Problem('not_found')
  // What is known stays known, also when the run has ended or the meter has changed.
  const known = await readUsage(deps.db, tenantId, orderId, meterType)
  if (known !== null) return again(run, known, quantity)
  refuseUnlessActive(run)

  const meter = await meterFor(deps, run, meterType)
  const amount = priced(quantity, meter)
  await checkpoint('usage.priced')
  const line = { meter_type: meterType, quantity, amount, price: meter.price, per: meter.per }
  const added = await addUsage(deps.db, tenantId, orderId, line, usedMax)
  await checkpoint('usage.recorded')
  switch (added.kind) {
    case 'recorded':
      return { run, line: added.line, replayed: false }
    case 'known':
      return again(run, added.line, quantity)
    case 'refused':
      throw new Problem('run_closed', { detail: 'The run ended while the usage was being recorded.' })
    case 'too_much':
      throw tooMuch()
  }
}

function again(run: Run, line: RecordedUsage, quantity: number): UsageAnswer {
  if (line.quantity === quantity) return { run, line, replayed: true }
  throw new Problem('usage_conflict', {
    detail: `${line.meter_type} was recorded with ${line.quantity}, not ${quantity}.`,
    members: { meter_type: line.meter_type, recorded_quantity: line.quantity },
  })
}

function refuseUnlessActive({ order, closedBy }: Run): void {
  const status = runStatus(order, closedBy)
  if (status === 'active') return
  if (isOpen(order.status) && closedBy === null) {
    throw new Problem('order_state_conflict', {
      detail: 'The hold is not placed yet; the payment provider has not given its word.',
      members: { run_status: status },
      retryAfterSeconds: 1,
    })
  }
  throw new Problem('run_closed', { detail: `The run is ${status}.`, members: { run_status: status } })
}

async function meterFor(deps: Deps, { order }: Run, meterType: string): Promise<Meter> {
  const meter = await readMeter(deps.db, order.tenant_id, meterType)
  if (meter === null) throw new Problem('unknown_meter', { detail: `${meterType} has no price yet.` })
  if (meter.currency !== order.currency) {
    throw new Problem('currency_mismatch', {
      detail: `${meterType} is priced in ${meter.currency}, the run holds ${order.currency}.`,
      members: { currency: meter.currency },
    })
  }
  return meter
}

function priced(quantity: number, { price, per }: Meter): number {
  try {
    return roundHalfUp(quantity, price, per)
  } catch (error) {
    if (error instanceof RangeError) throw tooMuch()
    throw error
  }
}

function tooMuch(): Problem {
  return new Problem('amount_not_chargeable', {
    detail: `The usage of a run cannot come to more than ${usedMax} minor units.`,
    members: { maximum: usedMax },
  })
}
