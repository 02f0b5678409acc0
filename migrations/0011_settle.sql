-- The settle: order + stored answer + transition + ledger + outbox + stock and cart where it ends unpaid, in one
-- statement and one commit, for a group of orders of one tenant. The code decides what becomes of an order; this
-- function applies a decision only where the order still has a status that the decision was made for, so that a stale or
-- repeated one changes nothing. Calls to the provider are kept in any case: they happened.
--
-- Locks in one order: orders, attempts, carts, products by SKU.
--
-- Items, each order once: {order_id, key, from: [status], to, lease_token?, at, facts: {...}, attempt_state,
-- response_status?, response_body?, transition: {cause, actor, reason}, calls: [...], transfers: [...], jobs: [...],
-- ends_unpaid}. With a lease_token, the decision also needs the lease: it was made from ignorance.
-- A fact that is absent stays as it is.
CREATE FUNCTION settle_orders(p_tenant text, p_items jsonb)
RETURNS TABLE (settled_order_id text, applied boolean, order_row jsonb, attempt jsonb, response_body text)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
  v_ids text[] := ARRAY(SELECT i->>'order_id' FROM jsonb_array_elements(p_items) AS i);
  v_applied text[];
  v_items jsonb;
  -- The applied items by order and by key, so that an update finds what belongs to its row.
  v_by_order jsonb;
  v_by_key jsonb;
  v_keys text[];
  v_back jsonb;
  v_skus text[];
  v_released text[];
BEGIN
  PERFORM 1 FROM orders o WHERE o.tenant_id = p_tenant AND o.order_id = ANY (v_ids) ORDER BY o.order_id FOR NO KEY UPDATE;
  PERFORM 1 FROM attempts a
    WHERE a.tenant_id = p_tenant AND a.key = ANY (ARRAY(SELECT i->>'key' FROM jsonb_array_elements(p_items) AS i))
    ORDER BY a.key FOR NO KEY UPDATE;

  v_applied := ARRAY(
    SELECT i.order_id
    FROM jsonb_to_recordset(p_items) AS i(order_id text, key text, "from" jsonb, lease_token uuid)
    WHERE (SELECT i."from" ? o.status FROM orders o WHERE o.tenant_id = p_tenant AND o.order_id = i.order_id)
      AND (i.lease_token IS NULL OR
           (SELECT a.state = 'running' AND a.lease_token = i.lease_token
            FROM attempts a WHERE a.tenant_id = p_tenant AND a.key = i.key)));
  SELECT jsonb_agg(i), jsonb_object_agg(i->>'order_id', i), jsonb_object_agg(i->>'key', i), array_agg(i->>'key')
    INTO v_items, v_by_order, v_by_key, v_keys
    FROM jsonb_array_elements(p_items) AS i WHERE i->>'order_id' = ANY (v_applied);

  INSERT INTO provider_calls (tenant_id, order_id, operation, request_id, outcome, http_status, error_code, duration_ms,
                              replayed, started_at)
    SELECT p_tenant, i->>'order_id', c.operation, c."requestId", c.outcome, c."httpStatus", c."errorCode",
           round(c."durationMs"), c.replayed, c."startedAt"
    FROM jsonb_array_elements(p_items) AS i,
      jsonb_to_recordset(i->'calls') AS c(operation text, "requestId" text, outcome text, "httpStatus" smallint,
        "errorCode" text, "durationMs" double precision, replayed boolean, "startedAt" timestamptz);

  IF v_items IS NOT NULL THEN
    INSERT INTO order_transitions (tenant_id, order_id, from_status, to_status, cause, actor, reason)
      SELECT p_tenant, i.order_id, o.status, i."to", i.transition->>'cause', i.transition->>'actor', i.transition->>'reason'
      FROM jsonb_to_recordset(v_items) AS i(order_id text, "to" text, transition jsonb)
      CROSS JOIN LATERAL (
        SELECT * FROM orders WHERE tenant_id = p_tenant AND order_id = i.order_id LIMIT 1
      ) o
      WHERE o.status <> i."to";

    UPDATE orders o SET
        (status, intent_id, charge_id, payment_status, decline_code, client_secret, capture_before, captured, maybe_sent,
         send_is_pointless, last_send_before, cancel_requested_at, reconcile_reason, next_ask_at, updated_at) = (
          SELECT v_by_order->o.order_id->>'to',
            coalesce(f.intent_id, o.intent_id), coalesce(f.charge_id, o.charge_id),
            coalesce(f.payment_status, o.payment_status), coalesce(f.decline_code, o.decline_code),
            f.client_secret, coalesce(f.capture_before, o.capture_before), coalesce(f.captured, o.captured),
            coalesce(f.maybe_sent, o.maybe_sent), coalesce(f.send_is_pointless, o.send_is_pointless),
            coalesce(f.last_send_before, o.last_send_before), coalesce(f.cancel_requested_at, o.cancel_requested_at),
            f.reconcile_reason,
            CASE WHEN f.next_ask_in_ms IS NULL THEN o.next_ask_at
                 ELSE clock_timestamp() + f.next_ask_in_ms * interval '1 ms' END,
            (v_by_order->o.order_id->>'at')::timestamptz
          FROM jsonb_to_record(v_by_order->o.order_id->'facts') AS f(intent_id text, charge_id text, payment_status text,
            decline_code text, client_secret text, capture_before timestamptz, captured bigint, maybe_sent boolean,
            send_is_pointless boolean, last_send_before timestamptz, cancel_requested_at timestamptz,
            reconcile_reason text, next_ask_in_ms double precision))
      WHERE o.tenant_id = p_tenant AND o.order_id = ANY (v_applied);

    -- A settled attempt keeps its first answer for good.
    UPDATE attempts a SET
        state = v_by_key->a.key->>'attempt_state',
        response_status = (v_by_key->a.key->>'response_status')::smallint,
        response_body = v_by_key->a.key->>'response_body',
        settled_at = CASE WHEN v_by_key->a.key->>'attempt_state' = 'settled' THEN now() END,
        lease_token = NULL,
        lease_expires_at = NULL
      WHERE a.tenant_id = p_tenant AND a.key = ANY (v_keys) AND a.state <> 'settled'
        AND v_by_key->a.key ? 'attempt_state';

    v_released := ARRAY(SELECT i->>'order_id' FROM jsonb_array_elements(v_items) AS i WHERE (i->>'ends_unpaid')::boolean);
    IF v_released <> '{}' THEN
      DELETE FROM carts c
        WHERE c.tenant_id = p_tenant AND c.order_id = ANY (v_released) AND c.cart_id = ANY (ARRAY(
          SELECT o.cart_id FROM orders o
          WHERE o.tenant_id = p_tenant AND o.order_id = ANY (v_released) AND o.cart_id IS NOT NULL ORDER BY o.cart_id));
      PERFORM 1 FROM products p
        WHERE p.tenant_id = p_tenant AND p.sku = ANY (ARRAY(
          SELECT m.sku FROM stock_movements m WHERE m.tenant_id = p_tenant AND m.order_id = ANY (v_released)))
        ORDER BY p.sku FOR NO KEY UPDATE;
      WITH released AS (
        INSERT INTO stock_movements AS r (tenant_id, order_id, line, kind, sku, quantity)
        SELECT m.tenant_id, m.order_id, m.line, 'release', m.sku, m.quantity
        FROM stock_movements m
        WHERE m.tenant_id = p_tenant AND m.order_id = ANY (v_released) AND m.kind = 'reserve'
        ON CONFLICT DO NOTHING
        RETURNING r.sku, r.quantity
      )
      SELECT array_agg(d.sku), jsonb_object_agg(d.sku, d.quantity) INTO v_skus, v_back
        FROM (SELECT sku, sum(quantity) AS quantity FROM released GROUP BY sku) d;
      UPDATE products p SET available = p.available + (v_back->>p.sku)::bigint, updated_at = now()
        WHERE p.tenant_id = p_tenant AND p.sku = ANY (v_skus);
    END IF;

    INSERT INTO ledger_transfers (tenant_id, transfer_id, kind, business_id, debit_account, credit_account, amount,
                                  currency, order_id)
      SELECT p_tenant, t.transfer_id, t.kind, t.business_id, t.debit_account, t.credit_account, t.amount, t.currency,
             i->>'order_id'
      FROM jsonb_array_elements(v_items) AS i,
        jsonb_to_recordset(i->'transfers') AS t(transfer_id text, kind text, business_id text, debit_account text,
          credit_account text, amount bigint, currency text)
      ON CONFLICT ON CONSTRAINT transfer_per_business_fact DO NOTHING;

    INSERT INTO jobs (tenant_id, topic, business_id, payload)
      SELECT p_tenant, j.topic, j.business_id, j.payload
      FROM jsonb_array_elements(v_items) AS i,
        jsonb_to_recordset(i->'jobs') AS j(topic text, business_id text, payload jsonb)
      ON CONFLICT DO NOTHING;
  END IF;

  RETURN QUERY
    SELECT i, i = ANY (v_applied), NULL::jsonb, NULL::jsonb, NULL
    FROM unnest(v_ids) AS i WHERE i = ANY (v_applied)
    UNION ALL
    SELECT o.order_id, false, to_jsonb(o),
           jsonb_build_object('state', a.state, 'response_status', a.response_status), a.response_body
    FROM orders o
    CROSS JOIN LATERAL (
      SELECT * FROM attempts WHERE tenant_id = p_tenant AND key = o.attempt_key LIMIT 1
    ) a
    WHERE o.tenant_id = p_tenant AND o.order_id = ANY (v_ids) AND o.order_id <> ALL (v_applied);
END
$$;
