/** One Postgres for the whole run, and in it the template that every test file's database is cloned from. */
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { TestProject } from 'vitest/node'
import { parse } from 'yaml'
import { startEmbeddedPostgres } from '../../src/runtime/embedded.ts'
import { migrate } from '../../src/runtime/migrate.ts'
import { administer } from './administer.ts'
import { databaseUrl } from './database-url.ts'
import { noPgBouncer, type PgBouncer, startPgBouncer } from './pgbouncer.ts'
import { quiet } from './quiet.ts'
import { temporaryFolder } from './temporary-folder.ts'

const MIGRATIONS = resolve(import.meta.dirname, '../../migrations')
const CONTRACT = resolve(import.meta.dirname, '../../openapi.yaml')

declare module 'vitest' {
  interface ProvidedContext {
    /** Connection string of a role that may create databases. */
    adminUrl: string
    /** Name of the migrated database to clone. */
    templateDatabase: string
    /** HOST:PORT of the PgBouncer that services go through; '' without TEST_PGBOUNCER. */
    poolerHost: string
  }
}

const wantsPgBouncer = process.env.TEST_PGBOUNCER !== undefined

export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  if (wantsPgBouncer && noPgBouncer) throw new Error(noPgBouncer)
  const server = process.env.TEST_DATABASE_URL
    ? { url: process.env.TEST_DATABASE_URL, stop: async () => {} }
    : await temporaryServer()
  const template = `template_${randomBytes(6).toString('hex')}`
  let pgbouncer: PgBouncer | undefined
  try {
    await administer(server.url, `create database ${template}`)
    if (existsSync(MIGRATIONS)) await migrate(databaseUrl(server.url, template), MIGRATIONS, quiet)
    // Cloning fails while anybody, autovacuum included, is connected to the template.
    await administer(server.url, `alter database ${template} with allow_connections false`)
    if (wantsPgBouncer) pgbouncer = await startPgBouncer(server.url)
  } catch (error) {
    await server.stop()
    throw error
  }
  project.provide('adminUrl', server.url)
  project.provide('poolerHost', pgbouncer?.host ?? '')
  project.provide('templateDatabase', template)
  project.provide('contract', JSON.stringify(parse(await readFile(CONTRACT, 'utf8'))))
  return async () => {
    if (pgbouncer) {
      console.log(`${await pgbouncer.transactions()} transactions of the services went through PgBouncer`)
      await pgbouncer.stop()
    }
    if (!process.env.KEEP_TEST_DATABASES) await administer(server.url, `drop database ${template} with (force)`)
    await server.stop()
  }
}

async function temporaryServer(): Promise<{ url: string; stop(): Promise<void> }> {
  const dataDir = await temporaryFolder('test-postgres')
  const server = await startEmbeddedPostgres({ dataDir, log: quiet, unsafeFast: true })
  return {
    url: server.url,
    async stop() {
      await server.stop()
      if (process.env.KEEP_TEST_DATABASES) console.log(`The test databases are kept: DATA_DIR=${dataDir}`)
      else await rm(dataDir, { recursive: true })
    },
  }
}
