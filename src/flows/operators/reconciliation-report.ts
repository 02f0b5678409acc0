/**
 * Compares a period of the provider's books with ours, for a person. What differs is listed, and flagged on its order.
 *
 *   window    as much of the period as has few enough orders to remember
 *   theirs    every payment made in it that names the tenant, a page at a time: what do our books have of it?
 *   ours      every order made in it whose money was not among those: does the provider have its payment?
 *   keep      findings, flags and how far it has come                          one transaction a window
 *
 * Both sets of books go on while they are compared, so what differs is read once more before it counts. What dies in
 * between goes on with the next window.
 */
import type { Deps } from '../../deps.ts'
import { isOpen } from '../../domain/order.ts'
import { Problem } from '../../domain/problem.ts'
import { comparePayment, oursOf } from '../../domain/reconciliation.ts'
import { type ProviderPayment, type ProviderTarget, ProviderUnavailable } from '../../provider/port.ts'
import { checkpoint } from '../../runtime/checkpoint.ts'
import { transaction } from '../../runtime/database.ts'
import { enqueueJobs } from '../../store/jobs.ts'
import { type Operator, recordAudit } from '../../store/operator-audit.ts'
import {
  type BooksOfOrder,
  booksInWindow,
  countOrders,
  createReport,
  endReport,
  endWindow,
  type Report,
  type ReportFinding,
  readBooks,
  readReport,
} from '../../store/reports.ts'
import { connectedAccountOf } from '../../store/tenants.ts'
import { type JobEnd, JobFailure, type JobRun } from '../jobs/job-run.ts'
import { ask } from '../saga/provider-calls.ts'
import { configuredTarget } from '../saga/provider-target.ts'

/** Orders whose ids are remembered at once. */
const ordersInWindowMax = 2000
const windowMaxMs = 24 * 3_600_000
const windowMinMs = 1000
/** Every day costs a call at least, which all tenants' background work shares. */
export const periodMaxDays = 366
/** Compared with one read of our books. */
const pageSize = 200

interface Period {
  from: Date
  to: Date
}

/** Keeps that a report is wanted; a job makes it. `to` is now at the latest. */
export function requestReport(deps: Deps, by: Operator, period: Period): Promise<Report> {
  return transaction(deps.db, async (tx) => {
    const report = await createReport(tx, by.tenantId, upToNow(period))
    const id = report.report_id
    await enqueueJobs(tx, by.tenantId, [{ topic: 'reconciliation_report', business_id: id, payload: {} }])
    await recordAudit(tx, by, { action: 'request_report', target: { type: 'report', id }, outcome: 'requested' })
    return report
  })
}

/** Makes a report here and now. Throws `ProviderUnavailable` where the provider stops answering; the report then says so. */
export async function makeReport(
  deps: Deps,
  by: Operator,
  period: Period,
  onProgress: (report: Report) => void,
): Promise<Report> {
  const report = await transaction(deps.db, async (tx) => {
    const report = await createReport(tx, by.tenantId, upToNow(period))
    const target = { type: 'report' as const, id: report.report_id }
    await recordAudit(tx, by, { action: 'make_report', target, outcome: 'requested' })
    return report
  })
  try {
    return await new Reporting(deps, report).run(() => false, onProgress)
  } catch (error) {
    await endReport(deps.db, report, { state: 'failed', reason: reasonOf(error) })
    throw error
  }
}

/** Job `reconciliation_report`; its business id is the report. */
export async function runReport(deps: Deps, { job, deadline, finish }: JobRun): Promise<JobEnd> {
  const report = await readReport(deps.db, job.tenantId, job.businessId)
  if (report === null || report.state !== 'running') return 'done'
  try {
    const now = await new Reporting(deps, report).run(
      () => performance.now() >= deadline.atMs,
      () => {},
    )
    if (now.state === 'running') return { later: 'goes_on', inMs: 0 }
  } catch (error) {
    if (reasonOf(error) === 'not_reached') throw new JobFailure('not_reached')
    throw error
  }
  await transaction(deps.db, finish)
  return 'finished'
}

function reasonOf(error: unknown): string {
  const away =
    error instanceof ProviderUnavailable || (error instanceof Problem && error.code === 'provider_unavailable')
  return away ? 'not_reached' : 'unexpected_error'
}

function upToNow({ from, to }: Period): Period {
  const period = { from, to: new Date(Math.min(to.getTime(), Date.now())) }
  if (!(period.from < period.to)) {
    throw new Problem('invalid_request', { detail: 'from: must be before `to`, and before now.' })
  }
  if (period.to.getTime() - period.from.getTime() > periodMaxDays * windowMaxMs) {
    throw new Problem('invalid_request', { detail: `from: a report covers ${periodMaxDays} days at most.` })
  }
  return period
}

class Reporting {
  readonly #deps: Deps
  readonly #limits: { timeoutMs: number; turn(): Promise<void> }
  #report: Report

  constructor(deps: Deps, report: Report) {
    this.#deps = deps
    this.#report = report
    this.#limits = { timeoutMs: deps.config.providerTimeoutMs, turn: () => deps.gate.turn() }
  }

  /** Goes on until everything is compared, or `isEnough` after a window. */
  async run(isEnough: () => boolean, onProgress: (report: Report) => void): Promise<Report> {
    const { db } = this.#deps
    const { tenant_id, report_id, period_to } = this.#report
    const target = await configuredTarget(this.#deps, await connectedAccountOf(db, tenant_id))
    while (this.#report.compared_to < period_to) {
      const window = await this.#nextWindow()
      const compared = await new Window(this.#deps, tenant_id, target, window, this.#limits).compare()
      await checkpoint('report.window_compared')
      await endWindow(db, this.#report, { ...window, ...compared })
      await checkpoint('report.window_kept')
      this.#report = (await readReport(db, tenant_id, report_id)) ?? this.#report
      onProgress(this.#report)
      if (this.#report.state !== 'running' || (isEnough() && this.#report.compared_to < period_to)) return this.#report
    }
    await endReport(db, this.#report, { state: 'done', reason: null })
    return (await readReport(db, tenant_id, report_id)) ?? this.#report
  }

  async #nextWindow(): Promise<Period> {
    const { tenant_id, compared_to: from, period_to } = this.#report
    for (let lengthMs = windowMaxMs; ; lengthMs /= 4) {
      const to = new Date(Math.min(nextSecond(from.getTime() + lengthMs), period_to.getTime()))
      if (lengthMs <= windowMinMs) return { from, to }
      const orders = await countOrders(this.#deps.db, tenant_id, { from, to }, ordersInWindowMax + 1)
      if (orders <= ordersInWindowMax) return { from, to }
    }
  }
}

class Window {
  readonly #deps: Deps
  readonly #tenantId: string
  readonly #target: ProviderTarget
  readonly #window: Period
  readonly #limits: { timeoutMs: number; turn(): Promise<void> }
  /** Orders whose own payment the provider has listed. */
  readonly #seen = new Set<string>()
  readonly #findings: ReportFinding[] = []
  #matched = 0

  constructor(
    deps: Deps,
    tenantId: string,
    target: ProviderTarget,
    window: Period,
    limits: { timeoutMs: number; turn(): Promise<void> },
  ) {
    this.#deps = deps
    this.#tenantId = tenantId
    this.#target = target
    this.#window = window
    this.#limits = limits
  }

  async compare(): Promise<{ matched: number; findings: ReportFinding[] }> {
    await this.#theirs()
    await this.#ours()
    return { matched: this.#matched, findings: this.#findings }
  }

  async #theirs(): Promise<void> {
    const { from, to } = this.#window
    let page: ProviderPayment[] = []
    for await (const payment of this.#deps.provider.listPayments(this.#target, this.#window, this.#limits)) {
      // A list by time reaches a little further than asked for, and the provider counts whole seconds.
      const isInside = nextSecond(payment.createdAt.getTime() + 1) > from.getTime() && payment.createdAt < to
      if (!isInside || payment.metadata.tenant !== this.#tenantId) continue
      page.push(payment)
      if (page.length < pageSize) continue
      await this.#comparePage(page)
      page = []
    }
    await this.#comparePage(page)
  }

  async #comparePage(payments: readonly ProviderPayment[]): Promise<void> {
    const named = payments.flatMap(({ metadata }) => metadata.order ?? [])
    const books = await readBooks(this.#deps.db, this.#tenantId, [...new Set(named)])
    for (const payment of payments) {
      const found = books.get(payment.metadata.order ?? '')
      if (found?.order.intent_id === payment.intentId) this.#seen.add(found.order.order_id)
      if (comparePayment(payment, found?.order ?? null, found?.transfers ?? []).kind === 'matched') this.#matched += 1
      else await this.#compareAgain(payment.intentId, payment.metadata.order ?? null)
    }
  }

  async #ours(): Promise<void> {
    let after = ''
    for (;;) {
      const books = await booksInWindow(this.#deps.db, this.#tenantId, this.#window, { after, limit: pageSize })
      for (const { order, transfers } of books.values()) {
        after = order.order_id
        const intentId = order.intent_id ?? ''
        if (this.#seen.has(order.order_id) || !this.#isComparable(order)) continue
        // Without money here, the provider's list alone tells.
        if (oursOf(order, transfers, intentId, order.currency) !== 0) {
          await this.#compareAgain(intentId, order.order_id)
        }
      }
      if (books.size < pageSize) return
    }
  }

  /** Claimed for the account and mode that are asked now: others have their own books. */
  #isComparable(order: BooksOfOrder['order']): boolean {
    return order.provider_account === this.#target.account && order.livemode === this.#target.livemode
  }

  /** Reads both books once more: between two readings everything moves on. */
  async #compareAgain(intentId: string, orderId: string | null): Promise<void> {
    const deadline = { atMs: performance.now() + this.#limits.timeoutMs, background: true }
    const { outcome } = await ask(this.#deps, deadline, (limits) =>
      this.#deps.provider.retrieve(this.#target, intentId, limits),
    )
    const found =
      orderId === null ? undefined : (await readBooks(this.#deps.db, this.#tenantId, [orderId])).get(orderId)
    const about = { subject: intentId, order_id: found?.order.order_id ?? null, intent_id: intentId }
    if (outcome.kind === 'absent') {
      const { order, transfers } = found ?? { order: null, transfers: [] }
      const ours = order === null ? 0 : oursOf(order, transfers, intentId, order.currency)
      if (ours === 0) return
      const currency = order?.currency ?? null
      this.#findings.push({ ...about, kind: 'missing_there', ours, theirs: null, currency })
      return
    }
    if (!('payment' in outcome) || outcome.payment === null) {
      throw new ProviderUnavailable(`a payment could not be read: ${outcome.kind}`)
    }
    const { payment } = outcome
    const { kind, ours, theirs } = comparePayment(payment, found?.order ?? null, found?.transfers ?? [])
    // Whoever charges it this moment will book it.
    if (kind === 'matched' || (found !== undefined && this.#isUnderWay(found.order))) this.#matched += 1
    else this.#findings.push({ ...about, kind, ours, theirs, currency: payment.currency })
  }

  #isUnderWay({ status, created_at }: BooksOfOrder['order']): boolean {
    return isOpen(status) && created_at.getTime() > Date.now() - this.#deps.config.leaseMs
  }
}

/** Windows meet at whole seconds, as the provider counts them, so that each payment is in one. */
function nextSecond(ms: number): number {
  return Math.ceil(ms / 1000) * 1000
}
