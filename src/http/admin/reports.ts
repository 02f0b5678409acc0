/** The provider's books compared with ours. */
import { Type } from 'typebox'
import type { Deps } from '../../deps.ts'
import { Problem } from '../../domain/problem.ts'
import { requestReport } from '../../flows/operators/reconciliation-report.ts'
import { listFindings, listReports, type Report, type ReportFinding, readReport } from '../../store/reports.ts'
import type { App } from '../app-type.ts'
import { callerOf } from '../auth.ts'
import * as contract from '../contract/admin.ts'
import { closed, IdParams, noQueryOnPost } from '../input.ts'
import { listPage, PageQuery, pageFrom } from '../paging.ts'
import { type Admission, operatorOf } from './operator.ts'

const Moment = Type.String({ format: 'date-time', description: 'RFC 3339, e.g. 2026-11-01T00:00:00Z' })
const ReportBody = closed({ from: Moment, to: Moment })

export function reportRoutes(app: App, deps: Deps, preParsing: Admission): void {
  app.post(
    '/v1/admin/reports',
    { preParsing, preValidation: noQueryOnPost, schema: { ...contract.startReport, body: ReportBody } },
    async (request, reply) => {
      const { from, to } = request.body
      const report = await requestReport(deps, operatorOf(request), { from: new Date(from), to: new Date(to) })
      return reply.code(202).header('location', `/v1/admin/reports/${report.report_id}`).send(reportView(report))
    },
  )

  app.get(
    '/v1/admin/reports',
    { preParsing, schema: { ...contract.listReports, querystring: PageQuery } },
    async (request) => {
      const page = pageFrom(request.query)
      const reports = await listReports(deps.db, callerOf(request).tenantId, page)
      return listPage(reports, page, reportView, (report) => report.report_id)
    },
  )

  app.get(
    '/v1/admin/reports/:id',
    { preParsing, schema: { ...contract.readReport, params: IdParams } },
    async (request) => {
      const report = await readReport(deps.db, callerOf(request).tenantId, request.params.id)
      if (report === null) throw new Problem('not_found')
      return reportView(report)
    },
  )

  app.get(
    '/v1/admin/reports/:id/findings',
    { preParsing, schema: { ...contract.listFindings, params: IdParams, querystring: PageQuery } },
    async (request) => {
      const { tenantId } = callerOf(request)
      const { id } = request.params
      const page = pageFrom(request.query)
      if ((await readReport(deps.db, tenantId, id)) === null) throw new Problem('not_found')
      const findings = await listFindings(deps.db, tenantId, id, page)
      return listPage(findings, page, findingView, (finding) => finding.subject)
    },
  )
}

function reportView(report: Report) {
  return {
    id: report.report_id,
    object: 'report' as const,
    state: report.state,
    reason: report.reason,
    from: report.period_from.toISOString(),
    to: report.period_to.toISOString(),
    compared_to: report.compared_to.toISOString(),
    matched: report.matched,
    missing_here: report.missing_here,
    missing_there: report.missing_there,
    amount_differs: report.amount_differs,
    created_at: report.created_at.toISOString(),
    finished_at: report.finished_at?.toISOString() ?? null,
  }
}

function findingView({ kind, order_id, intent_id, ours, theirs, currency }: ReportFinding) {
  return { object: 'finding' as const, kind, order_id, reference: intent_id, ours, theirs, currency }
}
