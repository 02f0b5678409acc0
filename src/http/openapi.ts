/** The contract, for machines and those who write clients. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { App } from './app-type.ts'
import * as contract from './contract/service.ts'

const file = join(import.meta.dirname, '../../openapi.yaml')

export function contractRoutes(app: App): void {
  app.get('/openapi.yaml', { schema: { ...contract.contract } }, async (_request, reply) => {
    // https://www.rfc-editor.org/rfc/rfc9512
    return reply.header('content-type', 'application/yaml').send(await readFile(file, 'utf8'))
  })
}
