/** `reconcile report` */
import { makeReport, periodMaxDays } from '../flows/operators/reconciliation-report.ts'
import { newRunId } from '../runtime/run-id.ts'
import { listFindings, type Report, type ReportFinding } from '../store/reports.ts'
import { type Command, type Context, operatorFor, tenantOption, textOf, UsageError } from './command.ts'
import { table } from './table.ts'
import { needTenant } from './tenants.ts'

const pageSize = 1000
/** Of a long list people read the beginning; `--json` and the API give all. */
const shownMax = 200
const somethingDiffers = 3

export const reconcileReport: Command = {
  name: 'reconcile report',
  about: "compare a period of the provider's books with ours",
  options: {
    tenant: tenantOption,
    from: { type: 'string', value: 'TIME', about: 'RFC 3339 or a date, in UTC, e.g. 2026-11-01', required: true },
    to: {
      type: 'string',
      value: 'TIME',
      about: 'likewise; the period ends before it, and now at the latest',
      required: true,
    },
  },
  notes: [
    'What differs is kept with the report and flagged on its order.',
    `Exit code: 0 where all agrees, ${somethingDiffers} where something differs, 1 where it could not be made, 2 for a wrong command line.`,
  ],
  async run(context) {
    const tenantId = textOf(context, 'tenant')
    const period = { from: timeOf(context, 'from'), to: timeOf(context, 'to') }
    if (period.from >= period.to || period.from >= new Date())
      throw new UsageError('--from must be before --to, and before now')
    if (Math.min(period.to.getTime(), Date.now()) - period.from.getTime() > periodMaxDays * 24 * 3_600_000)
      throw new UsageError(`a report covers ${periodMaxDays} days at most`)
    const deps = await context.deps()
    await needTenant(deps.db, tenantId)
    const by = operatorFor(context, tenantId, newRunId())
    const report = await makeReport(deps, by, period, (so) => context.out.progress(fractionOf(so), tellOf(so)))
    const findings: ReportFinding[] = []
    for (let after: string | null = null; ; ) {
      const page: ReportFinding[] = await listFindings(deps.db, tenantId, report.report_id, { limit: pageSize, after })
      findings.push(...page.slice(0, pageSize))
      after = page[pageSize - 1]?.subject ?? null
      const enough = context.values.json !== true && findings.length >= shownMax
      if (page.length <= pageSize || after === null || enough) break
    }
    const shown = findings.map(({ kind, order_id, intent_id, ours, theirs, currency }) => ({
      kind,
      order_id,
      reference: intent_id,
      ours,
      theirs,
      currency,
    }))
    const differs = report.missing_here + report.missing_there + report.amount_differs
    context.out.result({ ...summaryOf(report), findings: shown }, [
      tellOf(report),
      ...(differs === 0 ? [] : table(shown.slice(0, shownMax))),
      ...(differs > shownMax
        ? [`and ${differs - shownMax} more: --json, or /v1/admin/reports/${report.report_id}/findings`]
        : []),
    ])
    return differs === 0 ? 0 : somethingDiffers
  },
}

function timeOf(context: Context, name: string): Date {
  const text = textOf(context, name)
  const time = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/.test(text)
    ? new Date(text)
    : new Date(Number.NaN)
  if (Number.isNaN(time.getTime()))
    throw new UsageError(`--${name}: a date or an RFC 3339 time, e.g. 2026-11-01T00:00:00Z`)
  return time
}

function summaryOf(report: Report) {
  const { report_id, state, matched, missing_here, missing_there, amount_differs } = report
  return {
    id: report_id,
    state,
    from: report.period_from.toISOString(),
    to: report.period_to.toISOString(),
    matched,
    missing_here,
    missing_there,
    amount_differs,
  }
}

function tellOf({ matched, missing_here, missing_there, amount_differs }: Report): string {
  return `${matched} matched, ${missing_here} missing here, ${missing_there} missing there, ${amount_differs} differ in amount`
}

function fractionOf({ period_from, period_to, compared_to }: Report): number {
  return (compared_to.getTime() - period_from.getTime()) / (period_to.getTime() - period_from.getTime())
}
