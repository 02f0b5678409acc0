/** The schema distributes by tenant: read from the catalogs, and from the plans of what a checkout really runs. */
import { sql } from 'kysely'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createPool } from '../../src/runtime/database.ts'
import { administer } from '../support/administer.ts'
import { advisoryLocks } from '../support/advisory-locks.ts'
import { cart, type Reply } from '../support/client.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { finalize, hold, use } from '../support/runs.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { until } from '../support/until.ts'

/** Tables that are not a tenant's, each for a reason of its own. */
const globalTables = [
  // A key has to be found before its tenant is known.
  'api_keys',
  // The provider's limits, the same for everybody.
  'currencies',
  // Unique at the provider, and whose it is may not be known before the provider is asked.
  'provider_events',
  'schema_migrations',
]

let database: TestDatabase
let scene: Scene
const plans: Plan[] = []

interface Plan {
  'Node Type': string
  'Relation Name'?: string
  'Index Cond'?: string
  'Index Name'?: string
  'Recheck Cond'?: string
  'Join Filter'?: string
  Filter?: string
  Plans?: Plan[]
}

beforeAll(async () => {
  database = await createTestDatabase()
  const name = new URL(database.url).pathname.slice(1)
  // Every statement sends its plan along, those inside functions too.
  for (const setting of [
    "session_preload_libraries = 'auto_explain'",
    'auto_explain.log_min_duration = 0',
    'auto_explain.log_nested_statements = on',
    "auto_explain.log_format = 'json'",
    "auto_explain.log_level = 'notice'",
  ]) {
    await administer(database.url, `ALTER DATABASE ${name} SET ${setting}`)
  }
  scene = await startScene({
    databaseUrl: database.url,
    direct:
      'plans come as notices of sessions that are renewed at one moment; those of PgBouncer are not the service’s',
  })
  scene.service.deps.pool.on('connect', (client: pg.PoolClient) => {
    client.on('notice', ({ message }) => {
      const [, json] = /plan:\s*(\{.*\})\s*$/s.exec(message ?? '') ?? []
      if (json !== undefined) plans.push((JSON.parse(json) as { Plan: Plan }).Plan)
    })
  })
  await renewConnections()
})
afterAll(async () => {
  await scene.stop()
  await database.drop()
})

/** The service's connections so far end; those that follow send their plans, and make them anew. */
async function renewConnections(): Promise<void> {
  await sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()`.execute(scene.db)
  await until(async () => (await scene.shop.get('/readyz')).status === 200)
}

async function tables(): Promise<string[]> {
  const { rows } = await sql<{ relname: string }>`
    SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') ORDER BY 1`.execute(
    scene.db,
  )
  return rows.map(({ relname }) => relname)
}

describe('every table of tenant data', () => {
  it('has tenant_id first in its primary key and in every unique index', async () => {
    const { rows } = await sql<{ table_name: string; index_name: string; is_primary: boolean; first_column: string }>`
      SELECT t.relname AS table_name, i.relname AS index_name, x.indisprimary AS is_primary, a.attname AS first_column
      FROM pg_index x
      JOIN pg_class t ON t.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid
      LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = x.indkey[0]
      WHERE t.relnamespace = 'public'::regnamespace AND (x.indisunique OR x.indisexclusion)`.execute(scene.db)
    const others = rows.filter(({ first_column }) => first_column !== 'tenant_id')
    expect([...new Set(others.map(({ table_name }) => table_name))].sort()).toEqual(globalTables)
    const withKey = new Set(rows.filter((row) => row.is_primary).map(({ table_name }) => table_name))
    expect((await tables()).filter((table) => !withKey.has(table))).toEqual([])
    expect(withKey.size).toBeGreaterThan(20)
  })

  it('has a tenant in every row', async () => {
    const { rows } = await sql<{ table_name: string }>`
      SELECT table_name FROM information_schema.columns
      WHERE table_schema = 'public' AND column_name = 'tenant_id' AND is_nullable = 'NO'`.execute(scene.db)
    const with_tenant = new Set(rows.map(({ table_name }) => table_name))
    const without = (await tables()).filter((table) => !with_tenant.has(table))
    expect(without).toEqual(globalTables.filter((table) => table !== 'api_keys'))
  })

  it('refers to no other table by a key of its own', async () => {
    const { rows } = await sql<{ conname: string }>`
      SELECT conname FROM pg_constraint WHERE contype = 'f' AND connamespace = 'public'::regnamespace
        AND conrelid <> 'api_keys'::regclass`.execute(scene.db)
    expect(rows).toEqual([])
  })

  it('takes no identity from a sequence, which all tenants would share', async () => {
    const { rows } = await sql`SELECT relname FROM pg_class
      WHERE relkind = 'S' AND relnamespace = 'public'::regnamespace`.execute(scene.db)
    expect(rows).toEqual([])
  })
})

/** What a plan reads of tables of tenant data. */
function tenantReads(): Plan[] {
  return plans.flatMap(nodes).filter((node) => {
    const relation = node['Relation Name']
    return (
      relation !== undefined &&
      relation !== 'tenants' &&
      node['Node Type'] !== 'ModifyTable' &&
      !globalTables.includes(relation)
    )
  })
}

/** Whether what it reads may be of more than one tenant. */
function overTenants(node: Plan): boolean {
  const conditions = [node['Index Cond'], node['Recheck Cond'], node.Filter].join(' ')
  return !/\btenant_id = (?!ANY)/.test(conditions)
}

describe('every other call of a shop and its backend', () => {
  it('reads and changes rows of one named tenant alone', async () => {
    const { shop, backend } = scene
    const order = async (more: Record<string, unknown> = {}) => (await shop.checkout(newKey(), cart(more))).json
    plans.length = 0
    const ok = async (reply: Promise<Reply>) => {
      const { status, text, json } = await reply
      expect(status, text).toBeLessThan(300)
      return json
    }
    const keyed = (path: string, body: unknown) => ok(backend.post(path, body, { 'idempotency-key': newKey() }))
    const waiting = newKey()
    const threeDSecure = await ok(shop.checkout(waiting, cart({ payment_method: 'pm_card_threeDSecure2Required' })))
    await ok(shop.get(`/v1/checkouts/${waiting}`))
    await ok(shop.post(`/v1/checkouts/${waiting}/cancel`))
    await ok(backend.get(`/v1/orders/${threeDSecure.id}`))
    const paid = await order()
    const refund = await keyed(`/v1/orders/${paid.id}/refunds`, { amount: 100 })
    await ok(backend.get(`/v1/refunds/${refund.id}`))
    await ok(backend.post(`/v1/orders/${(await order({ capture: 'manual' })).id}/capture`, { amount: 700 }))
    await ok(backend.post(`/v1/orders/${(await order({ capture: 'manual' })).id}/cancel`))
    await ok(backend.put('/v1/meters/seconds', { price: 2, per: 1, currency: 'EUR' }))
    await ok(backend.get('/v1/meters'))
    const run = await keyed('/v1/runs', hold())
    await ok(use(backend, run.id, 'seconds', 5))
    await ok(finalize(backend, run.id))
    await ok(backend.get(`/v1/runs/${run.id}`))
    await ok(backend.put('/v1/products/cap', { name: 'Cap', unit_price: 500, currency: 'EUR', available: 3 }))
    for (const path of ['/products', '/products/cap', '/ledger/balances', `/ledger/transfers?order_id=${paid.id}`])
      await ok(backend.get(`/v1${path}`))
    for (const filter of ['', '?status=paid&limit=2', '?status=refunded']) await ok(backend.get(`/v1/orders${filter}`))
    await ok(backend.put('/v1/webhook-endpoint', { url: 'https://shop.example/events' }))
    await ok(backend.get('/v1/webhook-endpoint'))
    await ok(backend.delete('/v1/webhook-endpoint'))
    await ok(backend.delete(`/v1/customers/${paid.customer_id}/personal-data`))

    const read = new Set(tenantReads().map((node) => node['Relation Name']))
    const named = ['refunds', 'hold_endings', 'runs', 'usage_lines', 'meters', 'ledger_transfers', 'erasures']
    for (const table of [...named, 'webhook_endpoints', 'attempts', 'orders', 'products']) expect(read).toContain(table)
    expect(tenantReads().filter(overTenants)).toEqual([])
  })
})

describe('what a checkout runs', () => {
  it('reads and changes rows of one named tenant alone, by an index or a filter on it', async () => {
    plans.length = 0
    const cartId = newKey()
    const key = newKey()
    const whole = cart({
      cart_id: cartId,
      metadata: { a: 'b' },
      shipping_address: { line1: 'x', city: 'y', country: 'DE' },
    })
    expect((await scene.shop.checkout(key, whole)).status).toBe(201)
    expect((await scene.shop.checkout(key, whole)).replayed).toBe(true)
    expect((await scene.shop.checkout(newKey(), whole)).json.code).toBe('cart_already_paid')
    expect((await scene.shop.checkout(newKey(), cart({ payment_method: 'pm_card_chargeDeclined' }))).status).toBe(402)
    expect((await scene.shop.checkout(newKey(), cart({ items: [{ sku: 'none', quantity: 1 }] }))).status).toBe(422)
    expect((await scene.shop.checkout(newKey(), cart({ items: [{ sku: 'rare', quantity: 6 }] }))).status).toBe(409)
    const crowd = await Promise.all(Array.from({ length: 40 }, () => scene.shop.checkout(newKey())))
    expect(new Set(crowd.map(({ status }) => status))).toEqual(new Set([201]))

    const seen = new Set(tenantReads().map((node) => node['Relation Name']))
    for (const table of ['attempts', 'orders', 'carts', 'products', 'customers', 'stock_movements']) {
      expect(seen).toContain(table)
    }
    expect(tenantReads().filter(overTenants)).toEqual([])
  })

  it('goes to each row by its whole key, however many there are and whatever the statistics do not know yet', async () => {
    const { db } = scene
    const key = newKey()
    expect((await scene.shop.checkout(key, cart({ cart_id: newKey() }))).status).toBe(201)
    const wholeKeys: Record<string, string> = {
      orders: 'order_id',
      attempts: 'key',
      carts: 'cart_id',
      customers: 'email',
      products: 'sku',
      stock_movements: 'order_id',
    }
    for (const table of Object.keys(wholeKeys)) {
      await sql`ALTER TABLE ${sql.table(table)} SET (autovacuum_enabled = off)`.execute(db)
    }
    const many = sql`generate_series(1, 5000) AS n`
    await sql`INSERT INTO orders SELECT (jsonb_populate_record(o, jsonb_build_object('order_id', 'ord_' || n,
        'attempt_key', 'many-' || n, 'customer_id', 'cus_' || n, 'cart_id', 'cart-' || n))).*
      FROM orders o, ${many} WHERE o.attempt_key = ${key}`.execute(db)
    await sql`INSERT INTO attempts (tenant_id, key, kind, object_id, state)
      SELECT 'ten_demo', 'many-' || n, 'checkout', 'ord_' || n, 'settled' FROM ${many}`.execute(db)
    await sql`INSERT INTO carts (tenant_id, cart_id, order_id, attempt_key)
      SELECT 'ten_demo', 'cart-' || n, 'ord_' || n, 'many-' || n FROM ${many}`.execute(db)
    await sql`INSERT INTO customers (tenant_id, customer_id, email)
      SELECT 'ten_demo', 'cus_' || n, n || '@example.com' FROM ${many}`.execute(db)
    await sql`INSERT INTO products (tenant_id, sku, name, unit_price, currency, available)
      SELECT 'ten_demo', 'sku-' || n, 'x', 100, 'EUR', 1 FROM ${many}`.execute(db)
    await sql`INSERT INTO stock_movements (tenant_id, order_id, line, kind, sku, quantity)
      SELECT 'ten_demo', 'ord_' || n, 1, 'reserve', 'sku-' || n, 1 FROM ${many}`.execute(db)
    // How many rows there are is known by now, what is in them is not.
    for (const table of Object.keys(wholeKeys)) await administer(scene.databaseUrl, `VACUUM ${table}`)
    await renewConnections()

    plans.length = 0
    const again = newKey()
    for (const body of [
      cart({ cart_id: newKey() }),
      cart({ cart_id: newKey(), payment_method: 'pm_card_chargeDeclined' }),
    ]) {
      expect((await scene.shop.checkout(newKey(), body)).status).toBeLessThan(403)
    }
    await Promise.all(Array.from({ length: 20 }, () => scene.shop.checkout(newKey())))
    await scene.shop.checkout(again)
    expect((await scene.shop.checkout(again)).replayed).toBe(true)
    const reads = plans.flatMap(nodes).filter((node) => Object.hasOwn(wholeKeys, node['Relation Name'] ?? ''))
    const scans = reads.filter((node) => node['Node Type'] !== 'ModifyTable')
    expect(new Set(scans.map((node) => node['Relation Name'])).size).toBe(6)
    const walks = scans.filter((node) => {
      const column = wholeKeys[node['Relation Name'] ?? '']
      const condition = node['Index Cond'] ?? ''
      return !(condition.includes('tenant_id = ') && new RegExp(`\\b${column}\\b`).test(condition))
    })
    expect(walks).toEqual([])
    expect(scans.filter((node) => node['Index Name'] !== undefined && /_by_/.test(node['Index Name']))).toEqual([])
    // What a group brings is not walked for each of its rows.
    const joins = plans.flatMap(nodes).filter((node) => node['Node Type'] === 'Hash Join')
    expect(joins.length).toBeGreaterThan(2)
    expect(plans.flatMap(nodes).filter((node) => node['Join Filter'] !== undefined)).toEqual([])
    await sql`DELETE FROM orders WHERE attempt_key LIKE 'many-%'`.execute(db)
  })

  it('would be found out: a plan over all tenants is told apart', async () => {
    plans.length = 0
    await scene.service.deps.pool.query("SELECT * FROM orders WHERE order_id = 'ord_x'")
    const [plan] = plans.flatMap(nodes).filter((node) => node['Relation Name'] === 'orders')
    expect(plan && overTenants(plan)).toBe(true)
    plans.length = 0
    await scene.service.deps.pool.query("SELECT * FROM orders WHERE tenant_id IN ('a', 'b') AND order_id = 'ord_x'")
    expect(tenantReads().map(overTenants)).toEqual([true])
  })

  it('works where nothing of a session outlives a transaction', async () => {
    const { rows } = await sql<{ proname: string; source: string }>`
      SELECT proname, prosrc AS source FROM pg_proc WHERE pronamespace = 'public'::regnamespace`.execute(scene.db)
    expect(rows.length).toBeGreaterThan(5)
    const kept = /\b(pg_(try_)?advisory_lock|listen|notify|prepare|create\s+temp|set_config\([^)]*false)/i
    expect(rows.filter(({ source }) => kept.test(source)).map(({ proname }) => proname)).toEqual([])
    // A connection that is used for nothing else holds no advisory lock after a checkout either.
    const pool = createPool(database.url, { max: 1, applicationName: 'test' })
    const locks = await advisoryLocks(pool)
    await pool.end()
    expect(locks).toEqual([])
  })
})

function nodes(plan: Plan): Plan[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodes)]
}
