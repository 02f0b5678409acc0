import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject } from 'vitest'
import { databaseUrl } from './database-url.ts'

export type TestDatabase = {
  url: string
  /** Removes it, ending its connections; KEEP_TEST_DATABASES=1 keeps it for a look at it. */
  drop(): Promise<void>
}

/** A fresh database with all migrations applied and no rows but theirs. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const adminUrl = inject('adminUrl')
  const name = `test_${randomBytes(6).toString('hex')}`
  await administer(adminUrl, `create database ${name} template ${inject('templateDatabase')} strategy file_copy`)
  return {
    url: databaseUrl(adminUrl, name),
    async drop() {
      if (process.env.KEEP_TEST_DATABASES) console.log(`kept the database ${name}`)
      else await administer(adminUrl, `drop database ${name} with (force)`)
    },
  }
}

async function administer(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}
