import { randomBytes } from 'node:crypto'
import { inject } from 'vitest'
import { administer } from './administer.ts'
import { databaseUrl } from './database-url.ts'

export type TestDatabase = {
  url: string
  /** Removes it, ending its connections; KEEP_TEST_DATABASES=1 keeps it for a look at it. */
  drop(): Promise<void>
}

/** A fresh database with all migrations applied and no rows but theirs. */
export async function createTestDatabase(): Promise<TestDatabase> {
  return await create(inject('templateDatabase'))
}

/** A fresh database without any migration. */
export async function createEmptyDatabase(): Promise<TestDatabase> {
  return await create('template0')
}

async function create(template: string): Promise<TestDatabase> {
  const adminUrl = inject('adminUrl')
  const name = `test_${randomBytes(6).toString('hex')}`
  // Copying files needs a checkpoint, which is cheap on a server that does not wait for its disk.
  await administer(adminUrl, `create database ${name} template ${template} strategy file_copy`)
  return {
    url: databaseUrl(adminUrl, name),
    async drop() {
      if (process.env.KEEP_TEST_DATABASES) console.log(`kept the database ${name}`)
      else await administer(adminUrl, `drop database ${name} with (force)`)
    },
  }
}
