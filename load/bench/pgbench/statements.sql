-- The saga as the baseline does it: one statement after the other, two commits.
-- chr(58) is a colon, which pgbench would take for a variable's.
\set id random(1, 9000000000000000)
\set sku random(1, 100)
\set shopper random(1, 5000)
BEGIN;
INSERT INTO attempts (tenant_id, key, kind, object_id, state, lease_token, lease_expires_at, digest, digest_tags, digest_secret_id)
  VALUES ('ten_demo', 'pgb-' || :id, 'checkout', 'ord_' || :id, 'running', gen_random_uuid(), now() + interval '30 s', '\x00', '{}', 'one')
  ON CONFLICT DO NOTHING;
SELECT name, unit_price FROM products WHERE tenant_id = 'ten_demo' AND sku = 'bench_' || :sku AND available >= 1 FOR UPDATE;
UPDATE products SET available = available - 1, updated_at = now() WHERE tenant_id = 'ten_demo' AND sku = 'bench_' || :sku;
INSERT INTO customers (tenant_id, customer_id, email, name)
  VALUES ('ten_demo', 'cus_' || :shopper, 'shopper-' || :shopper || '@example.com', 'Shopper') ON CONFLICT DO NOTHING;
SELECT customer_id FROM customers WHERE tenant_id = 'ten_demo' AND email = 'shopper-' || :shopper || '@example.com';
INSERT INTO orders (tenant_id, order_id, attempt_key, kind, status, currency, total, capture, lines, customer_id,
    payment_method, provider_account, livemode, api_version, parameter_version, last_send_before, next_ask_at, expires_at)
  VALUES ('ten_demo', 'ord_' || :id, 'pgb-' || :id, 'checkout', 'pending', 'EUR', 1000, 'automatic',
    jsonb_build_array(jsonb_build_object('sku', 'bench_' || :sku::text, 'name', 'Product', 'quantity', 1, 'unit_price', 1000, 'amount', 1000)),
    'cus_' || :shopper, 'pm_card_visa', 'acct_benchmark', false, 'benchmark', 1, now() + interval '30 s',
    now() + interval '30 s', now() + interval '1 hour');
INSERT INTO stock_movements (tenant_id, order_id, line, kind, sku, quantity)
  VALUES ('ten_demo', 'ord_' || :id, 1, 'reserve', 'bench_' || :sku, 1);
COMMIT;
BEGIN;
UPDATE orders SET status = 'paid', intent_id = 'pi_' || :id, charge_id = 'ch_' || :id, payment_status = 'succeeded',
    captured = total, updated_at = now()
  WHERE tenant_id = 'ten_demo' AND order_id = 'ord_' || :id AND status = 'pending';
INSERT INTO order_transitions (tenant_id, order_id, from_status, to_status, cause, actor)
  VALUES ('ten_demo', 'ord_' || :id, 'pending', 'paid', 'answer', 'req_' || :id);
INSERT INTO provider_calls (tenant_id, order_id, operation, request_id, outcome, http_status, duration_ms, replayed, started_at)
  VALUES ('ten_demo', 'ord_' || :id, 'payment.create', 'req_' || :id, 'succeeded', 200, 0, false, now());
INSERT INTO ledger_transfers (tenant_id, transfer_id, kind, business_id, debit_account, credit_account, amount, currency, order_id)
  VALUES ('ten_demo', 'tra_' || :id, 'capture', 'ord_' || :id, 'provider_balance', 'sales', 1000, 'EUR', 'ord_' || :id);
INSERT INTO jobs (tenant_id, topic, business_id, payload)
  VALUES ('ten_demo', 'order_news', 'ord_' || :id || chr(58) || 'paid', jsonb_build_object('order_id', 'ord_' || :id::text, 'status', 'paid'));
UPDATE attempts SET state = 'settled', response_status = 201, response_body = repeat('x', 600), settled_at = now(),
    lease_token = NULL, lease_expires_at = NULL
  WHERE tenant_id = 'ten_demo' AND key = 'pgb-' || :id;
COMMIT;
