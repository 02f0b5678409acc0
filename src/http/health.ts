/** For those who run it: alive, and ready for requests. */
import type { Deps } from '../deps.ts'
import type { App } from './app-type.ts'

export function healthRoutes(app: App, deps: Deps, lifecycle: { draining: boolean }): void {
  // Alive says nothing of the database: restarting the process would not bring that back.
  app.get('/healthz', async () => ({ status: 'ok' }))

  app.get('/readyz', async (_request, reply) => {
    if (lifecycle.draining) return reply.code(503).send({ status: 'draining' })
    try {
      await deps.pool.query('SELECT 1')
      return { status: 'ready' }
    } catch {
      return reply.code(503).send({ status: 'database unavailable' })
    }
  })
}
