/** What the operator's start page shows: how much waits, for how long, and what has been going on. */
import { Type } from 'typebox'
import type { Deps } from '../../deps.ts'
import { readStarted, readWaiting } from '../../store/operator-figures.ts'
import { tenantName } from '../../store/tenants.ts'
import type { App } from '../app-type.ts'
import { callerOf } from '../auth.ts'
import * as contract from '../contract/admin-figures.ts'
import { closed } from '../input.ts'
import type { Tally } from '../tally.ts'
import type { Admission } from './operator.ts'

const FiguresQuery = closed({
  minutes: Type.Optional(
    Type.Union(
      ['1', '2', '30', '60'].map((minutes) => Type.Literal(minutes)),
      { default: '30', description: 'how many of the last minutes `started` goes back' },
    ),
  ),
})

export function figureRoutes(app: App, deps: Deps, preParsing: Admission, tally: Tally): void {
  app.get(
    '/v1/admin/figures',
    { preParsing, schema: { ...contract.readFigures, querystring: FiguresQuery } },
    async (request) => {
      const { tenantId, connectedAccount, label, keyId } = callerOf(request)
      const now = new Date()
      const [name, waiting, started] = await Promise.all([
        tenantName(deps.db, tenantId),
        readWaiting(deps.db, { provider: deps.notifications.provider, tenantId, account: connectedAccount }),
        readStarted(deps.db, tenantId, Number(request.query.minutes ?? '30'), now),
      ])
      return {
        object: 'figures' as const,
        at: now.toISOString(),
        tenant: { id: tenantId, name: name ?? tenantId },
        actor: label,
        key_id: keyId,
        waiting: {
          ...waiting,
          oldest_needs_reconcile_at: waiting.oldest_needs_reconcile_at?.toISOString() ?? null,
          oldest_due_at: waiting.oldest_due_at?.toISOString() ?? null,
        },
        started: started.map(({ at, orders }) => ({ at: at.toISOString(), orders })),
        process: { id: tally.id, since: tally.since.toISOString(), ...tally.of(tenantId) },
      }
    },
  )
}
