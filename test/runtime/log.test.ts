import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { describeError } from '../../src/runtime/log.ts'
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

async function failure(sql: string): Promise<unknown> {
  return client.query(sql).then(
    () => expect.unreachable(),
    (error: unknown) => error,
  )
}

describe('a logged error', () => {
  it('of a violated constraint names the constraint and not the row', async () => {
    const error = await failure(
      `INSERT INTO products (tenant_id, sku, name, unit_price, currency, available) VALUES ('t', 's', 'private words', -1, 'EUR', 0)`,
    )
    const logged = JSON.stringify(describeError(error))
    expect(logged).toContain('product_price_is_not_negative')
    expect(logged).not.toContain('private')
  })

  it('of malformed data does not repeat the data', async () => {
    const logged = JSON.stringify(describeError(await failure(`SELECT 'private words'::integer`)))
    expect(logged).toContain('22P02')
    expect(logged).not.toContain('private')
  })

  it('keeps type, message, stack and cause', () => {
    const logged = describeError(new TypeError('outer', { cause: new Error('inner') }))
    expect(logged).toMatchObject({ type: 'TypeError', message: 'outer', cause: { message: 'inner' } })
    expect(logged?.stack).toContain('log.test.ts')
  })
})
