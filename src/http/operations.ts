/** The door of those who run the service, on a port of its own: all that a process has which is a worker alone. */
import { type TypeBoxTypeProvider, TypeBoxValidatorCompiler } from '@fastify/type-provider-typebox'
import Fastify from 'fastify'
import type { Deps } from '../deps.ts'
import type { App } from './app-type.ts'
import { healthRoutes } from './health.ts'

/** `/healthz`, `/readyz` and `/metrics`; nothing that moves money. Never listens. */
export function buildOperationsApp(deps: Deps, lifecycle: { draining: boolean }): App {
  const app = Fastify({ forceCloseConnections: true, return503OnClosing: false })
    .setValidatorCompiler(TypeBoxValidatorCompiler)
    .setSerializerCompiler(() => JSON.stringify)
    .withTypeProvider<TypeBoxTypeProvider>() as App
  healthRoutes(app, deps, lifecycle)
  return app
}
