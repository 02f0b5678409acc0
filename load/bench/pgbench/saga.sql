-- One group of checkouts: two statements, two commits, the service's rows. `group` is the group's size.
-- chr(58) is a colon, which pgbench would take for a variable's.
\set id random(1, 9000000000000000)
\set sku random(1, 100)
\set shopper random(1, 5000)
WITH item AS (
  SELECT 'pgb-' || :id || '-' || n AS key, 'ord_' || :id || '_' || n AS order_id, 'bench_' || ((:sku + n) % 100 + 1) AS sku,
    'cus_' || (:shopper + n) AS customer_id, 'shopper-' || (:shopper + n) || '@example.com' AS email
  FROM generate_series(1, :group) n
), locked AS (
  SELECT sku FROM products WHERE tenant_id = 'ten_demo' AND sku = ANY (ARRAY(SELECT sku FROM item)) ORDER BY sku FOR NO KEY UPDATE
), taken AS (
  UPDATE products p SET available = p.available - d.quantity, updated_at = now()
  FROM (SELECT sku, count(*) AS quantity FROM item GROUP BY sku) d
  WHERE (SELECT count(*) FROM locked) > 0 AND p.tenant_id = 'ten_demo' AND p.sku = ANY (ARRAY(SELECT sku FROM item)) AND d.sku = p.sku
), attempt AS (
  INSERT INTO attempts (tenant_id, key, kind, object_id, state, lease_token, lease_expires_at, digest, digest_tags, digest_secret_id)
  SELECT 'ten_demo', key, 'checkout', order_id, 'running', gen_random_uuid(), now() + interval '30 s', '\x00', '{}', 'one' FROM item
), customer AS (
  INSERT INTO customers (tenant_id, customer_id, email, name)
  SELECT DISTINCT ON (email) 'ten_demo', customer_id, email, 'Shopper' FROM item WHERE (SELECT count(*) FROM locked) > 0 ORDER BY email
  ON CONFLICT DO NOTHING
), moved AS (
  INSERT INTO stock_movements (tenant_id, order_id, line, kind, sku, quantity)
  SELECT 'ten_demo', order_id, 1, 'reserve', sku, 1 FROM item
)
INSERT INTO orders (tenant_id, order_id, attempt_key, kind, status, currency, total, capture, lines, customer_id,
  payment_method, provider_account, livemode, api_version, parameter_version, last_send_before, next_ask_at, expires_at)
SELECT 'ten_demo', order_id, key, 'checkout', 'pending', 'EUR', 1000, 'automatic',
  jsonb_build_array(jsonb_build_object('sku', sku, 'name', 'Product', 'quantity', 1, 'unit_price', 1000, 'amount', 1000)),
  customer_id, 'pm_card_visa', 'acct_benchmark', false, 'benchmark', 1, now() + interval '30 s',
  now() + interval '30 s', now() + interval '1 hour'
FROM item;
WITH item AS (
  SELECT 'pgb-' || :id || '-' || n AS key, 'ord_' || :id || '_' || n AS order_id FROM generate_series(1, :group) n
), settled AS (
  UPDATE orders o SET status = 'paid', intent_id = 'pi_' || o.order_id, charge_id = 'ch_' || o.order_id,
    payment_status = 'succeeded', captured = o.total, updated_at = now()
  WHERE o.tenant_id = 'ten_demo' AND o.order_id = ANY (ARRAY(SELECT order_id FROM item))
), answered AS (
  UPDATE attempts a SET state = 'settled', response_status = 201, response_body = repeat('x', 600), settled_at = now(),
    lease_token = NULL, lease_expires_at = NULL
  WHERE a.tenant_id = 'ten_demo' AND a.key = ANY (ARRAY(SELECT key FROM item))
), called AS (
  INSERT INTO provider_calls (tenant_id, order_id, operation, request_id, outcome, http_status, duration_ms, replayed, started_at)
  SELECT 'ten_demo', order_id, 'payment.create', 'req_' || order_id, 'succeeded', 200, 0, false, now() FROM item
), told AS (
  INSERT INTO order_transitions (tenant_id, order_id, from_status, to_status, cause, actor)
  SELECT 'ten_demo', order_id, 'pending', 'paid', 'answer', 'req_' || order_id FROM item
), booked AS (
  INSERT INTO ledger_transfers (tenant_id, transfer_id, kind, business_id, debit_account, credit_account, amount, currency, order_id)
  SELECT 'ten_demo', 'tra_' || order_id, 'capture', order_id, 'provider_balance', 'sales', 1000, 'EUR', order_id FROM item
)
INSERT INTO jobs (tenant_id, topic, business_id, payload)
SELECT 'ten_demo', 'order_news', order_id || chr(58) || 'paid', jsonb_build_object('order_id', order_id, 'status', 'paid') FROM item;
