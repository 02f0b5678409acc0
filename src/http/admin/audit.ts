/** Who did what. */
import { Type } from 'typebox'
import type { Deps } from '../../deps.ts'
import { type AuditEntry, listAudit } from '../../store/operator-audit.ts'
import type { App } from '../app-type.ts'
import { callerOf } from '../auth.ts'
import * as contract from '../contract/admin.ts'
import { closed } from '../input.ts'
import { listPage, pageFrom, pageProperties } from '../paging.ts'
import { type Admission, FilterText } from './operator.ts'

const AuditQuery = closed({
  ...pageProperties,
  action: Type.Optional(FilterText),
  order_id: Type.Optional(FilterText),
  target: Type.Optional(FilterText),
})

export function auditRoutes(app: App, deps: Deps, preParsing: Admission): void {
  app.get(
    '/v1/admin/audit',
    { preParsing, schema: { ...contract.listAudit, querystring: AuditQuery } },
    async (request) => {
      const { action, order_id: orderId, target: targetId } = request.query
      const page = pageFrom(request.query)
      const entries = await listAudit(deps.db, callerOf(request).tenantId, page, {
        ...(action === undefined ? {} : { action }),
        ...(orderId === undefined ? {} : { orderId }),
        ...(targetId === undefined ? {} : { targetId }),
      })
      return listPage(entries, page, auditView, (entry) => entry.entry_id)
    },
  )
}

export function auditView(entry: AuditEntry) {
  const { entry_id, actor, key_id, request_id, action, target_type, target_id, order_id, reason, outcome } = entry
  return {
    id: entry_id,
    object: 'audit_entry' as const,
    actor,
    key_id,
    request_id,
    action,
    target: { type: target_type, id: target_id },
    order_id,
    reason,
    outcome,
    created_at: entry.created_at.toISOString(),
    ended_at: entry.ended_at?.toISOString() ?? null,
  }
}
