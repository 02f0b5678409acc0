import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { currency, currencyCodes } from '../../src/domain/currencies.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

let database: TestDatabase
let client: pg.Client
beforeAll(async () => {
  database = await createTestDatabase()
  client = new pg.Client({ connectionString: database.url })
  await client.connect()
})
afterAll(async () => {
  await client.end()
  await database.drop()
})

describe('the currencies in the database', () => {
  it('are those in the code, with the same limits and steps', async () => {
    const { rows } = await client.query<{ code: string; minimum: string; maximum: string; step: string }>(
      'SELECT code, minimum, maximum, step FROM currencies ORDER BY code',
    )
    const inDatabase = rows.map((row) => ({
      code: row.code,
      minimum: Number(row.minimum),
      maximum: Number(row.maximum),
      step: Number(row.step),
    }))
    const inCode = currencyCodes().map((code) => {
      const { minimum, maximum, step } = currency(code) as NonNullable<ReturnType<typeof currency>>
      return { code, minimum, maximum, step }
    })
    expect(inDatabase).toEqual(inCode)
  })
})
