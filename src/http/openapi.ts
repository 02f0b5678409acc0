/** The contract, for machines and those who write clients. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { App } from './app-type.ts'
import * as contract from './contract/service.ts'

const root = join(import.meta.dirname, '../..')

export function contractRoutes(app: App): void {
  app.get('/openapi.yaml', { schema: { ...contract.contract } }, async (_request, reply) => {
    // https://www.rfc-editor.org/rfc/rfc9512
    return reply.header('content-type', 'application/yaml').send(await readFile(join(root, 'openapi.yaml'), 'utf8'))
  })

  app.get('/openapi.json', { schema: { ...contract.contractAsJson } }, async (_request, reply) => {
    return reply.type('application/json').send(await readFile(join(root, 'openapi.json'), 'utf8'))
  })
}
