/**
 * The floor: a bare saga with the service's rows and commits, grouped as the service groups them, and nothing else: no
 * judgement, no repeats, no refusals, no validation. What the service costs above this is what its promises cost.
 */
import { randomUUID } from 'node:crypto'
import Fastify from 'fastify'
import pg from 'pg'
import { newId } from '../../src/domain/ids.ts'
import { groupLimits } from '../../src/flows/saga/grouping.ts'
import { createBatcher } from '../../src/runtime/batcher.ts'
import { type Cart, type Charged, charge, paidBody, type Sold } from '../baseline/order.ts'

const tenantId = 'ten_demo'
const unitPrice = 1000
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10 })

// Locks are taken in the same order by everybody: products by SKU, then customers.
const claimSql = `
  WITH item AS (
    SELECT * FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::uuid[])
      AS i(key, order_id, sku, customer_id, email, token)
  ), locked AS (
    SELECT sku FROM products WHERE tenant_id = $1 AND sku = ANY ($4) ORDER BY sku FOR NO KEY UPDATE
  ), taken AS (
    UPDATE products p SET available = p.available - d.quantity, updated_at = now()
    FROM (SELECT sku, count(*) AS quantity FROM item GROUP BY sku) d
    WHERE (SELECT count(*) FROM locked) > 0 AND p.tenant_id = $1 AND p.sku = ANY ($4) AND d.sku = p.sku
  ), attempt AS (
    INSERT INTO attempts (tenant_id, key, kind, object_id, state, lease_token, lease_expires_at, digest, digest_tags, digest_secret_id)
    SELECT $1, key, 'checkout', order_id, 'running', token, now() + interval '30 s', '\\x00', '{}', 'one' FROM item
  ), customer AS (
    INSERT INTO customers (tenant_id, customer_id, email, name)
    SELECT DISTINCT ON (email) $1, customer_id, email, 'Shopper' FROM item WHERE (SELECT count(*) FROM locked) > 0 ORDER BY email
    ON CONFLICT (tenant_id, email) DO NOTHING
  ), moved AS (
    INSERT INTO stock_movements (tenant_id, order_id, line, kind, sku, quantity)
    SELECT $1, order_id, 1, 'reserve', sku, 1 FROM item
  )
  INSERT INTO orders (tenant_id, order_id, attempt_key, kind, status, currency, total, capture, lines, customer_id,
    payment_method, provider_account, livemode, api_version, parameter_version, last_send_before, next_ask_at, expires_at)
  SELECT $1, order_id, key, 'checkout', 'pending', 'EUR', ${unitPrice}, 'automatic',
    jsonb_build_array(jsonb_build_object('sku', sku, 'name', 'Product', 'quantity', 1, 'unit_price', ${unitPrice}, 'amount', ${unitPrice})),
    customer_id, 'pm_card_visa', 'acct_benchmark', false, 'benchmark', 1, now() + interval '30 s',
    now() + interval '30 s', now() + interval '1 hour'
  FROM item`

const settleSql = `
  WITH item AS (
    SELECT * FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[])
      AS i(order_id, key, intent_id, charge_id, request_id, transfer_id, body)
  ), settled AS (
    UPDATE orders o SET status = 'paid', intent_id = i.intent_id, charge_id = i.charge_id, payment_status = 'succeeded',
      captured = o.total, updated_at = now()
    FROM item i WHERE o.tenant_id = $1 AND o.order_id = ANY ($2) AND i.order_id = o.order_id
  ), answered AS (
    UPDATE attempts a SET state = 'settled', response_status = 201, response_body = i.body, settled_at = now(),
      lease_token = NULL, lease_expires_at = NULL
    FROM item i WHERE a.tenant_id = $1 AND a.key = ANY ($3) AND i.key = a.key
  ), called AS (
    INSERT INTO provider_calls (tenant_id, order_id, operation, request_id, outcome, http_status, duration_ms, replayed, started_at)
    SELECT $1, order_id, 'payment.create', request_id, 'succeeded', 200, 0, false, now() FROM item
  ), told AS (
    INSERT INTO order_transitions (tenant_id, order_id, from_status, to_status, cause, actor)
    SELECT $1, order_id, 'pending', 'paid', 'answer', request_id FROM item
  ), booked AS (
    INSERT INTO ledger_transfers (tenant_id, transfer_id, kind, business_id, debit_account, credit_account, amount, currency, order_id)
    SELECT $1, transfer_id, 'capture', order_id, 'provider_balance', 'sales', ${unitPrice}, 'EUR', order_id FROM item
  )
  INSERT INTO jobs (tenant_id, topic, business_id, payload)
  SELECT $1, 'order_news', order_id || ':paid', jsonb_build_object('order_id', order_id, 'status', 'paid') FROM item`

type Paid = Sold & { charged: Charged; body: string }

const claim = createBatcher<Sold, null>({
  ...grouping(),
  run: async (_lane, items) => {
    const column = (of: (item: Sold) => string) => items.map(of)
    await pool.query({
      name: 'claim',
      text: claimSql,
      values: [
        tenantId,
        column(({ key }) => key),
        column(({ orderId }) => orderId),
        column(({ cart }) => cart.items[0]?.sku ?? ''),
        column(({ customerId }) => customerId),
        column(({ cart }) => cart.customer.email),
        column(() => randomUUID()),
      ],
    })
    return items.map(() => null)
  },
})

const settle = createBatcher<Paid, null>({
  ...grouping(),
  run: async (_lane, items) => {
    const column = (of: (item: Paid) => string) => items.map(of)
    await pool.query({
      name: 'settle',
      text: settleSql,
      values: [
        tenantId,
        column(({ orderId }) => orderId),
        column(({ key }) => key),
        column(({ charged }) => charged.intentId),
        column(({ charged }) => charged.chargeId),
        column(({ charged }) => charged.requestId),
        column(() => newId('tra')),
        column(({ body }) => body),
      ],
    })
    return items.map(() => null)
  },
})

function grouping() {
  return { ...groupLimits, laneOf: () => '', identitiesOf: () => [], failsAll: () => true }
}

const app = Fastify()
app.post<{ Body: Cart }>('/v1/checkouts', async (request, reply) => {
  const cart = request.body
  const line = { sku: cart.items[0]?.sku ?? '', name: 'Product', quantity: 1, unit_price: unitPrice, amount: unitPrice }
  const sold: Sold = {
    key: String(request.headers['idempotency-key']),
    cart,
    orderId: newId('ord'),
    customerId: `cus_${cart.customer.email}`,
    total: unitPrice,
    lines: [line],
    createdAt: new Date().toISOString(),
  }
  await claim(sold)
  const charged = charge()
  const body = paidBody(sold, charged)
  await settle({ ...sold, charged, body })
  return reply.code(201).header('content-type', 'application/json; charset=utf-8').send(body)
})

const url = await app.listen({ port: 0, host: '127.0.0.1' })
process.send?.({ url })
process.once('SIGTERM', () => void app.close().then(() => pool.end().then(() => process.exit(0))))
process.on('disconnect', () => process.exit(1))
