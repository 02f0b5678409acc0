/**
 * Where a test kills a process with SIGKILL and has another one take over: every named step of the service, by test file.
 * Each of the files ends with `expectKilledAtEachStep`, which fails where no process of it has died at one of its steps.
 */
import { readdir, readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { expect, it } from 'vitest'
import type { OrderStatus } from '../../src/domain/order.ts'
import type { RefundStatus } from '../../src/domain/refund.ts'
import { deaths } from '../support/service-process.ts'

const orderStatuses: Record<OrderStatus, true> = {
  pending: true,
  requires_action: true,
  needs_reconcile: true,
  authorized: true,
  paid: true,
  payment_failed: true,
  canceled: true,
}
const refundStatuses: Record<RefundStatus, true> = { pending: true, succeeded: true, failed: true, unsent: true }

/** Steps that are named after what follows, and by what each name goes on. */
const endings: Record<string, string[]> = {
  'settle.deciding_': Object.keys(orderStatuses),
  'settle.decided_': Object.keys(orderStatuses),
  'refund.deciding_': Object.keys(refundStatuses),
  'refund.decided_': Object.keys(refundStatuses),
}

const settled = Object.keys(orderStatuses).flatMap((status) => [
  `settle.deciding_${status}`,
  `settle.decided_${status}`,
])

/** By test file, below `test/`. */
export const killedAt: Record<string, readonly string[]> = {
  'chaos/crash.test.ts': [
    ...['checkout.claimed', 'checkout.charged', 'cancel.requested'],
    ...['recovery.taking_over', 'recovery.sending', 'recovery.sent', 'recovery.asked', 'recovery.closed'],
    ...settled,
  ],
  'chaos/money-back.test.ts': [
    ...['hold.decided', 'hold.ending', 'hold.asked', 'hold.left_in_doubt', 'hold.ended'],
    ...['settle.deciding_paid', 'settle.decided_paid', 'settle.deciding_canceled', 'settle.decided_canceled'],
    ...['refund.claimed', 'refund.sending', 'refund.sent', 'refund.asked'],
    ...['refund.deciding_pending', 'refund.decided_pending', 'refund.deciding_succeeded', 'refund.decided_succeeded'],
    ...['refund.deciding_failed', 'refund.decided_failed', 'refund.deciding_unsent', 'refund.decided_unsent'],
    ...['provider_refunds.listed', 'provider_refunds.adopted', 'events.accepted'],
  ],
  'chaos/money-back-news.test.ts': [
    ...[
      'disputes.listed',
      'dispute.applying',
      'dispute.applied',
      'provider_refunds.listed',
      'provider_refunds.adopted',
    ],
    ...['refund.deciding_succeeded', 'refund.decided_succeeded', 'refund.deciding_failed', 'refund.decided_failed'],
    ...['settle.deciding_paid', 'settle.decided_paid', 'late_money.unbooked', 'jobs.failed'],
  ],
  'chaos/operator.test.ts': [
    ...['operator.begun', 'decision.asked', 'decision.close_requested', 'decision.giving_back', 'operator.acted'],
    ...['settle.deciding_paid', 'settle.decided_paid', 'settle.deciding_canceled', 'settle.decided_canceled'],
    ...['recovery.asked', 'recovery.closed', 'events.replayed'],
  ],
  'chaos/housekeeping.test.ts': [
    ...['erasure.requested', 'erasure.batch_erased', 'erasure.person_erased', 'sweep.swept'],
    ...['report.window_compared', 'report.window_kept'],
  ],
  'chaos/payment-news.test.ts': [
    ...['jobs.taken', 'events.read', 'events.found', 'events.applied', 'events.ended', 'unexpected_money.recorded'],
    ...['settle.deciding_paid', 'settle.decided_paid', 'settle.decided_payment_failed'],
    ...['settle.decided_needs_reconcile', 'recovery.asked', 'recovery.closed'],
    ...['late_money.refunding', 'late_money.asked'],
  ],
  'flows/refund-crash.test.ts': ['refund.claimed', 'refund.sending', 'refund.sent', 'refund.asked'],
  'flows/run-crash.test.ts': [
    ...['checkout.claimed', 'checkout.charged', 'settle.deciding_authorized', 'settle.decided_authorized'],
    ...['usage.priced', 'usage.recorded', 'run.closed', 'run.hold_ended', 'run.finished'],
    ...['hold.decided', 'hold.ending', 'hold.asked', 'hold.ended'],
    ...['settle.deciding_paid', 'settle.decided_paid', 'settle.deciding_canceled', 'settle.decided_canceled'],
  ],
  'workers/crash.test.ts': [
    ...['jobs.taken', 'jobs.handled', 'order_news.read', 'order_news.written', 'order_news.spread'],
    ...['mail.claimed', 'mail.sent', 'mail.marked'],
    ...['merchant_events.delivering', 'merchant_events.delivered', 'merchant_events.recorded'],
    ...['closing.asked', 'late_money.refunding', 'late_money.asked'],
  ],
}

/** A test that fails where no process of the file has died at one of its steps. Its tests before must have run. */
export function expectKilledAtEachStep(filename: string): void {
  const file = relative(tests, filename)
  it('has killed a process at each of its steps', () => {
    const steps = killedAt[file] ?? []
    expect(steps).not.toEqual([])
    expect(steps.filter((step) => !deaths().has(step))).toEqual([])
  })
}

const tests = join(import.meta.dirname, '..')
const sources = join(import.meta.dirname, '../../src')

/** The names of all steps, as the source has them. Throws for one that no test could name. */
export async function everyStep(): Promise<string[]> {
  const steps: string[] = []
  for (const file of await readdir(sources, { recursive: true })) {
    if (!file.endsWith('.ts') || file === join('runtime', 'checkpoint.ts')) continue
    const text = await readFile(join(sources, file), 'utf8')
    for (const [call, , name, isOpenEnded] of text.matchAll(/\bcheckpoint\(\s*(?:(['`])([\w.]+)(\$\{)?)?/g)) {
      const named =
        name === undefined ? undefined : isOpenEnded === undefined ? [name] : endings[name]?.map((end) => name + end)
      if (named === undefined) throw new Error(`${file}: which steps does ${call} stand for?`)
      steps.push(...named)
    }
  }
  return [...new Set(steps)]
}

/** Files of the list that do not hold themselves to it. */
export async function filesWithoutCheck(): Promise<string[]> {
  const without: string[] = []
  for (const file of Object.keys(killedAt)) {
    const text = await readFile(join(tests, file), 'utf8')
    if (!/^expectKilledAtEachStep\(import\.meta\.filename\)$/m.test(text)) without.push(file)
  }
  return without
}
