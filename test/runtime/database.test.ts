import { expect, test } from 'vitest'
import { createPool } from '../../src/runtime/database.ts'
import { createTestDatabase } from '../support/database.ts'

test('a test database answers', async () => {
  const database = await createTestDatabase()
  const pool = createPool(database.url, { max: 2, applicationName: 'test' })
  expect((await pool.query('select 1::int8 as one')).rows).toEqual([{ one: 1 }])
  await pool.end()
  await database.drop()
})
