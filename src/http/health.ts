/** For those who run it: alive, and ready for requests. */
import type { Deps } from '../deps.ts'
import type { Figure } from '../runtime/metrics.ts'
import { readFigures } from '../store/figures.ts'
import type { App } from './app-type.ts'
import * as contract from './contract/service.ts'

export function healthRoutes(app: App, deps: Deps, lifecycle: { draining: boolean }): void {
  // Alive says nothing of the database: restarting the process would not bring that back.
  app.get('/healthz', { schema: { ...contract.alive } }, async () => ({ status: 'ok' }))

  app.get('/readyz', { schema: { ...contract.ready } }, async (_request, reply) => {
    if (lifecycle.draining) return reply.code(503).send({ status: 'draining' })
    try {
      await deps.pool.query('SELECT 1')
      return { status: 'ready' }
    } catch {
      return reply.code(503).send({ status: 'database unavailable' })
    }
  })

  app.get('/metrics', { schema: { ...contract.metrics } }, async (_request, reply) => {
    return reply.header('content-type', deps.metrics.contentType).send(await deps.metrics.text(await figures()))
  })

  let reading: Promise<Figure[] | null> | undefined
  /** One reading at a time, shared by all who ask meanwhile: however many do, the database has one at work on it. */
  function figures(): Promise<Figure[] | null> {
    // What is counted here is shown even while the database is away: that is when it is needed most.
    reading ??= readFigures(deps.pool)
      .catch(() => null)
      .finally(() => {
        reading = undefined
      })
    return reading
  }
}
