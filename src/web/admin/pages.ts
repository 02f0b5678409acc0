/** Which page an address asks for. */
import { el } from '../common/dom.ts'
import { auditPage } from './pages/audit.ts'
import { deliveriesPage } from './pages/deliveries.ts'
import { emailsPage } from './pages/emails.ts'
import { eventPage } from './pages/event.ts'
import { eventsPage } from './pages/events.ts'
import { jobsPage } from './pages/jobs.ts'
import { orderPage } from './pages/order.ts'
import { ordersPage } from './pages/orders.ts'
import { reportPage } from './pages/report.ts'
import { reportsPage } from './pages/reports.ts'
import { searchPage } from './pages/search.ts'
import { startPage } from './pages/start.ts'
import { link } from './parts.ts'
import type { Page, Route } from './view.ts'

const lists: Record<string, Page> = {
  orders: ordersPage,
  search: searchPage,
  events: eventsPage,
  jobs: jobsPage,
  emails: emailsPage,
  deliveries: deliveriesPage,
  reports: reportsPage,
  audit: auditPage,
}
const singles: Record<string, Page> = { orders: orderPage, events: eventPage, reports: reportPage }

const nowhere: Page = async () => ({
  title: 'There is no such page',
  content: [el('p', {}, link('#/', 'What needs a person'))],
})

export function pageFor({ path: [name, id, ...more] }: Route): Page {
  if (more.length > 0) return nowhere
  if (name === undefined) return startPage
  const from = id === undefined ? lists : singles
  return Object.hasOwn(from, name) ? (from[name] as Page) : nowhere
}
