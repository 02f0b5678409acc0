/** The operator's part of the API: everything is of the key's own tenant, and every button is kept in the audit log. */
import type { Deps } from '../../deps.ts'
import type { App } from '../app-type.ts'
import { admit, type KeyRing } from '../auth.ts'
import type { Tally } from '../tally.ts'
import { auditRoutes } from './audit.ts'
import { adminEventRoutes } from './events.ts'
import { figureRoutes } from './figures.ts'
import { adminJobRoutes } from './jobs.ts'
import { adminNewsRoutes } from './news.ts'
import { adminOrderRoutes } from './orders.ts'
import { reportRoutes } from './reports.ts'

export function adminRoutes(app: App, deps: Deps, ring: KeyRing, tally: Tally): void {
  const operator = admit(ring, 'admin')
  for (const routes of [
    adminOrderRoutes,
    adminEventRoutes,
    adminJobRoutes,
    adminNewsRoutes,
    reportRoutes,
    auditRoutes,
  ]) {
    routes(app, deps, operator)
  }
  figureRoutes(app, deps, operator, tally)
}
