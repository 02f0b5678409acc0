/** The claim's moments in which another session can come between: each is held open here for half a second. */
import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { createPool, type DatabasePool } from '../../src/runtime/database.ts'
import { type ClaimItem, claimAttempts } from '../../src/store/attempts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { newKey } from '../support/scene.ts'
import { until } from '../support/until.ts'

let database: TestDatabase
let pool: DatabasePool
/** Its functions are slow. */
let slowed: DatabasePool
beforeAll(async () => {
  database = await createTestDatabase()
  pool = createPool(database.url, { max: 2, applicationName: 'test' })
  slowed = createPool(`${database.url}?options=${encodeURIComponent('-c search_path=slow,public')}`, {
    max: 1,
    applicationName: 'test',
  })
  await pool.query(`
    CREATE SCHEMA slow;
    INSERT INTO products (tenant_id, sku, name, unit_price, currency, available)
    VALUES ('ten_demo', 'last', 'The last', 1000, 'EUR', 0), ('ten_demo', 'gone', 'Sold out', 1000, 'EUR', 0)`)
})
afterEach(() => pool.query('DROP SCHEMA slow CASCADE; CREATE SCHEMA slow'))
afterAll(async () => {
  await slowed.end()
  await pool.end()
  await database.drop()
})

const limits = { leaseMs: 30_000, expiryMs: 60_000 }

function wanted(key: string, sku: string, more: Partial<ClaimItem> = {}): ClaimItem {
  return {
    tenantId: 'ten_demo',
    key,
    kind: 'checkout',
    orderId: `ord_${randomUUID()}`,
    customerId: `cus_${randomUUID()}`,
    leaseToken: randomUUID(),
    email: 'ada@example.com',
    items: [{ sku, quantity: 1 }],
    capture: 'automatic',
    paymentMethod: 'pm_card_visa',
    digest: { secretId: 'secret', digest: Buffer.alloc(32).toString('base64'), tags: {} },
    target: { account: 'acct_test', connectedAccount: null, livemode: false, apiVersion: 'test' },
    parameterVersion: 1,
    ...more,
  }
}

it.each([
  [
    'between the keys and the stock',
    `CREATE FUNCTION slow.items_without(p_items claim_item[], p_keys text[]) RETURNS claim_item[] LANGUAGE plpgsql AS $$
     BEGIN PERFORM pg_sleep(0.5); RETURN public.items_without(p_items, p_keys); END $$`,
  ],
  [
    'between two reads of the keys',
    `CREATE FUNCTION slow.read_attempts(p_tenant text, p_keys text[])
     RETURNS TABLE (item_key text, attempt jsonb, response_body text, order_row jsonb) LANGUAGE plpgsql AS $$
     BEGIN
       RETURN QUERY SELECT * FROM public.read_attempts(p_tenant, p_keys);
       PERFORM pg_sleep(0.5);
     END $$`,
  ],
])('a twin that takes the last unit %s is known, never a reason to refuse its own key', async (_when, slow) => {
  await pool.query(slow)
  await pool.query("UPDATE products SET available = 1 WHERE sku = 'last'")
  const [key, neighbour, known] = [newKey(), newKey(), newKey()]
  // One that is known already, and one that finds nothing for sale: both make the claim look twice.
  await pool.query("UPDATE products SET available = 1 WHERE sku = 'gone'")
  expect(await claimAttempts(pool, 'ten_demo', [wanted(known, 'gone')], limits)).toMatchObject([{ kind: 'claimed' }])
  const group = claimAttempts(
    slowed,
    'ten_demo',
    [wanted(key, 'last'), wanted(neighbour, 'gone'), wanted(known, 'gone')],
    limits,
  )
  await until(isAsleep, { what: 'the group is where it is slow' })
  expect(await claimAttempts(pool, 'ten_demo', [wanted(key, 'last')], limits)).toMatchObject([{ kind: 'claimed' }])
  expect(await group).toMatchObject([{ kind: 'known' }, { kind: 'refused', code: 'out_of_stock' }, { kind: 'known' }])
})

it('a database that takes no writes answers what is known and refuses nothing', async () => {
  await pool.query("UPDATE products SET available = 5 WHERE sku = 'last'")
  const known = newKey()
  await claimAttempts(pool, 'ten_demo', [wanted(known, 'last')], limits)
  const reader = createPool(`${database.url}?options=${encodeURIComponent('-c default_transaction_read_only=on')}`, {
    max: 1,
    applicationName: 'test',
  })
  try {
    expect(await claimAttempts(reader, 'ten_demo', [wanted(known, 'last')], limits)).toMatchObject([{ kind: 'known' }])
    for (const item of [
      wanted(newKey(), 'last', { expectedTotal: 1 }),
      wanted(newKey(), 'gone'),
      wanted(newKey(), 'nothing'),
    ]) {
      await expect(claimAttempts(reader, 'ten_demo', [item], limits)).rejects.toMatchObject({ code: '25006' })
    }
  } finally {
    await reader.end()
  }
})

async function isAsleep(): Promise<boolean> {
  const { rows } = await pool.query(
    "SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()",
  )
  return rows.length > 0
}
