/**
 * The saga as one writes it in an afternoon: one statement after the other, in two transactions around the charge. The
 * same rows and the same commits as the service; no recovery, no waiting twins, no stock walk over many lines.
 */
import { createHmac, randomUUID } from 'node:crypto'
import type pg from 'pg'
import { newId } from '../../src/domain/ids.ts'
import { type Cart, charge, paidBody, type Sold } from './order.ts'

export const tenantId = 'ten_demo'

export async function checkout(pool: pg.Pool, key: string, cart: Cart): Promise<{ status: number; body: string }> {
  const claimed = await inTransaction(pool, (tx) => claim(tx, key, cart))
  if ('body' in claimed) return claimed
  const charged = charge()
  const body = paidBody(claimed, charged)
  await inTransaction(pool, (tx) => settle(tx, claimed, charged, body))
  return { status: 201, body }
}

async function claim(tx: pg.PoolClient, key: string, cart: Cart): Promise<Sold | { status: number; body: string }> {
  const orderId = newId('ord')
  const digest = createHmac('sha256', 'secret').update(JSON.stringify(cart)).digest()
  const inserted = await tx.query(
    `INSERT INTO attempts (tenant_id, key, kind, object_id, state, lease_token, lease_expires_at, digest, digest_tags, digest_secret_id)
     VALUES ($1, $2, 'checkout', $3, 'running', $4, now() + interval '30 s', $5, '{}', 'one')
     ON CONFLICT (tenant_id, key) DO NOTHING`,
    [tenantId, key, orderId, randomUUID(), digest],
  )
  if (inserted.rowCount === 0) return replay(tx, key)

  const lines: Sold['lines'] = []
  for (const { sku, quantity } of cart.items) {
    const { rows } = await tx.query<{ name: string; unit_price: string }>(
      'SELECT name, unit_price FROM products WHERE tenant_id = $1 AND sku = $2 AND available >= $3 FOR UPDATE',
      [tenantId, sku, quantity],
    )
    const [product] = rows
    if (product === undefined) throw new Error(`${sku} is sold out`)
    const unitPrice = Number(product.unit_price)
    lines.push({ sku, name: product.name, quantity, unit_price: unitPrice, amount: unitPrice * quantity })
    await tx.query(
      'UPDATE products SET available = available - $3, updated_at = now() WHERE tenant_id = $1 AND sku = $2',
      [tenantId, sku, quantity],
    )
  }
  await tx.query(
    `INSERT INTO customers (tenant_id, customer_id, email, name) VALUES ($1, $2, $3, $4)
     ON CONFLICT (tenant_id, email) DO NOTHING`,
    [tenantId, newId('cus'), cart.customer.email, cart.customer.name ?? null],
  )
  const customer = await tx.query<{ customer_id: string }>(
    'SELECT customer_id FROM customers WHERE tenant_id = $1 AND email = $2',
    [tenantId, cart.customer.email],
  )
  const customerId = customer.rows[0]?.customer_id ?? ''
  const total = lines.reduce((sum, line) => sum + line.amount, 0)
  const order = await tx.query<{ created_at: Date }>(
    `INSERT INTO orders (tenant_id, order_id, attempt_key, kind, status, currency, total, capture, lines, customer_id,
       payment_method, provider_account, livemode, api_version, parameter_version, last_send_before, next_ask_at, expires_at)
     VALUES ($1, $2, $3, 'checkout', 'pending', 'EUR', $4, 'automatic', $5, $6, $7, 'acct_benchmark', false, 'benchmark', 1,
       now() + interval '30 s', now() + interval '30 s', now() + interval '1 hour')
     RETURNING created_at`,
    [tenantId, orderId, key, total, JSON.stringify(lines), customerId, cart.payment_method],
  )
  for (const [at, { sku, quantity }] of lines.entries()) {
    await tx.query(
      `INSERT INTO stock_movements (tenant_id, order_id, line, kind, sku, quantity) VALUES ($1, $2, $3, 'reserve', $4, $5)`,
      [tenantId, orderId, at + 1, sku, quantity],
    )
  }
  return { key, cart, orderId, customerId, total, lines, createdAt: order.rows[0]?.created_at.toISOString() ?? '' }
}

async function replay(tx: pg.PoolClient, key: string): Promise<{ status: number; body: string }> {
  const { rows } = await tx.query<{ response_status: number | null; response_body: string | null }>(
    'SELECT response_status, response_body FROM attempts WHERE tenant_id = $1 AND key = $2',
    [tenantId, key],
  )
  const [attempt] = rows
  if (attempt?.response_status == null) return { status: 409, body: '{"code":"idempotency_key_in_progress"}' }
  return { status: attempt.response_status, body: attempt.response_body ?? '' }
}

async function settle(tx: pg.PoolClient, sold: Sold, charged: ReturnType<typeof charge>, body: string): Promise<void> {
  const { orderId, key, total } = sold
  await tx.query(
    `UPDATE orders SET status = 'paid', intent_id = $3, charge_id = $4, payment_status = 'succeeded', captured = total,
       updated_at = now()
     WHERE tenant_id = $1 AND order_id = $2 AND status = 'pending'`,
    [tenantId, orderId, charged.intentId, charged.chargeId],
  )
  await tx.query(
    `INSERT INTO order_transitions (tenant_id, order_id, from_status, to_status, cause, actor)
     VALUES ($1, $2, 'pending', 'paid', 'answer', $3)`,
    [tenantId, orderId, charged.requestId],
  )
  await tx.query(
    `INSERT INTO provider_calls (tenant_id, order_id, operation, request_id, outcome, http_status, duration_ms, replayed, started_at)
     VALUES ($1, $2, 'payment.create', $3, 'succeeded', 200, 0, false, now())`,
    [tenantId, orderId, charged.requestId],
  )
  await tx.query(
    `INSERT INTO ledger_transfers (tenant_id, transfer_id, kind, business_id, debit_account, credit_account, amount, currency, order_id)
     VALUES ($1, $2, 'capture', $3, 'provider_balance', 'sales', $4, 'EUR', $3)`,
    [tenantId, newId('tra'), orderId, total],
  )
  await tx.query(`INSERT INTO jobs (tenant_id, topic, business_id, payload) VALUES ($1, 'order_news', $2, $3)`, [
    tenantId,
    `${orderId}:paid`,
    JSON.stringify({ order_id: orderId, status: 'paid' }),
  ])
  await tx.query(
    `UPDATE attempts SET state = 'settled', response_status = 201, response_body = $3, settled_at = now(),
       lease_token = NULL, lease_expires_at = NULL
     WHERE tenant_id = $1 AND key = $2`,
    [tenantId, key, body],
  )
}

async function inTransaction<Result>(pool: pg.Pool, work: (tx: pg.PoolClient) => Promise<Result>): Promise<Result> {
  const tx = await pool.connect()
  try {
    await tx.query('BEGIN')
    const result = await work(tx)
    await tx.query('COMMIT')
    return result
  } catch (error) {
    await tx.query('ROLLBACK')
    throw error
  } finally {
    tx.release()
  }
}
