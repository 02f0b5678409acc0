/** A new version migrates while processes of the one before are at work: what they have under way goes through. */
import { randomUUID } from 'node:crypto'
import { cp, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { expect, it } from 'vitest'
import { migrate } from '../../src/runtime/migrate.ts'
import { createEmptyDatabase } from '../support/database.ts'
import { quiet } from '../support/quiet.ts'
import { until } from '../support/until.ts'

const migrations = join(import.meta.dirname, '../../migrations')

it('a claim and a settle that wait while the claim and the settle are replaced', async () => {
  const database = await createEmptyDatabase()
  const before = await mkdtemp(join(tmpdir(), 'migrations-'))
  const sessions: pg.Client[] = []
  const session = async () => {
    const client = new pg.Client(database.url)
    await client.connect()
    sessions.push(client)
    return client
  }
  try {
    for (const name of await readdir(migrations))
      if (name < '0018') await cp(join(migrations, name), join(before, name))
    await migrate(database.url, before, quiet)
    const [holder, ...workers] = [await session(), await session(), await session(), await session()] as const
    const [warm, cold, claiming] = workers
    await holder.query(`INSERT INTO products (tenant_id, sku, name, unit_price, currency, available)
                        VALUES ('ten_demo', 'mug', 'Mug', 1000, 'EUR', 10)`)
    for (const n of [1, 2, 3]) expect(await claim(holder, n)).toEqual(['claimed'])
    // Its plans are made.
    expect(await settle(warm, 3)).toEqual([true])
    await holder.query('BEGIN')
    await holder.query("SELECT FROM orders WHERE order_id IN ('ord_1', 'ord_2') FOR UPDATE")
    await holder.query('SELECT FROM products FOR UPDATE')
    const underWay = Promise.all([settle(warm, 1), settle(cold, 2), claim(claiming, 4)])
    await until(async () => (await waiting(holder)) === 3, { what: 'all three wait' })
    expect(await migrate(database.url, migrations, quiet)).toContain('0018_claim_and_settle.sql')
    await holder.query('COMMIT')
    expect(await underWay).toEqual([[true], [true], ['claimed']])
    // And the same sessions go on with the new ones.
    expect([await claim(warm, 5), await settle(warm, 5), await settle(cold, 4)]).toEqual([['claimed'], [true], [true]])
    const { rows } = await holder.query('SELECT status, intent_id FROM orders')
    expect(rows).toEqual(Array(5).fill({ status: 'paid', intent_id: 'pi_1' }))
  } finally {
    await Promise.all(sessions.map((client) => client.end()))
    await rm(before, { recursive: true })
    await database.drop()
  }
})

async function waiting(client: pg.Client): Promise<number> {
  const { rows } = await client.query(
    "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
  )
  return rows.length
}

async function claim(client: pg.Client, n: number): Promise<string[]> {
  const item = {
    key: `key-${n}`,
    kind: 'checkout',
    order_id: `ord_${n}`,
    customer_id: `cus_${n}`,
    token: randomUUID(),
    email: 'ada@example.com',
    items: [{ sku: 'mug', quantity: 1 }],
    skus: ['mug'],
    quantities: [1],
    capture: 'automatic',
    payment_method: 'pm_card_visa',
    digest: '',
    digest_tags: {},
    digest_secret_id: 'secret',
    account: 'acct_test',
    livemode: false,
    api_version: 'test',
    parameter_version: 1,
  }
  const { rows } = await client.query('SELECT outcome FROM claim_checkouts($1, $2, $3, $4)', [
    'ten_demo',
    JSON.stringify([item]),
    30_000,
    60_000,
  ])
  return rows.map(({ outcome }) => outcome)
}

async function settle(client: pg.Client, n: number): Promise<boolean[]> {
  const item = {
    order_id: `ord_${n}`,
    key: `key-${n}`,
    from: ['pending'],
    to: 'paid',
    guarded: false,
    at: new Date(),
    facts: { intent_id: 'pi_1', captured: 1000 },
    attempt_state: 'settled',
    response_status: 201,
    response_body: '{}',
    cause: 'answer',
    ends_unpaid: false,
  }
  const none = '[]'
  const { rows } = await client.query('SELECT applied FROM settle_orders($1, $2, $3, $4, $5)', [
    'ten_demo',
    JSON.stringify([item]),
    none,
    none,
    none,
  ])
  return rows.map(({ applied }) => applied)
}
