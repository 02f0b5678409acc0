-- The settle: order + stored answer + transition + ledger + outbox + stock and cart where it ends unpaid, in one
-- statement and one commit, for a group of orders of one tenant. The code decides what becomes of an order; this
-- function applies a decision only where the order still has a status that the decision was made for, so that a stale or
-- repeated one changes nothing. Calls to the provider are kept in any case: they happened.
--
-- Locks in one order: orders, attempts, carts, products by SKU.
--
-- Items, each order once: {order_id, key, from: [status], to, guarded, lease_token?, at, facts: {...}, attempt_state,
-- response_status?, response_body?, transition: {cause, actor, reason}, calls: [{id, ...}], transfers: [...], jobs: [...],
-- ends_unpaid}. A guarded decision was made from ignorance: it needs the lease of that token or, without a token, that
-- nobody holds one. A fact that is absent stays as it is.
CREATE TYPE settle_item AS (
  order_id text, key text, "from" text[], "to" text, guarded boolean, lease_token uuid, at timestamptz, facts jsonb,
  attempt_state text, response_status smallint, response_body text, cause text, actor text, reason text,
  ends_unpaid boolean
);

CREATE FUNCTION settle_orders(p_tenant text, p_items jsonb, p_calls jsonb, p_transfers jsonb, p_jobs jsonb)
RETURNS TABLE (settled_order_id text, applied boolean, order_row jsonb, attempt jsonb, response_body text)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
  v_items settle_item[] := ARRAY(SELECT i FROM jsonb_populate_recordset(NULL::settle_item, p_items) AS i);
  v_ids text[] := ARRAY(SELECT i.order_id FROM unnest(v_items) AS i);
  v_keys text[] := ARRAY(SELECT i.key FROM unnest(v_items) AS i);
  v_orders orders[];
  v_attempts attempts[];
  v_applied text[];
  v_released text[];
BEGIN
  v_orders := ARRAY(SELECT o FROM orders o WHERE o.tenant_id = p_tenant AND o.order_id = ANY (v_ids)
                    ORDER BY o.order_id FOR NO KEY UPDATE);
  v_attempts := ARRAY(SELECT a FROM attempts a WHERE a.tenant_id = p_tenant AND a.key = ANY (v_keys)
                      ORDER BY a.key FOR NO KEY UPDATE);

  -- Their ids are the caller's, so that a statement which is repeated after a lost answer keeps each once.
  INSERT INTO provider_calls (tenant_id, order_id, call_id, operation, request_id, outcome, http_status, error_code,
                              duration_ms, replayed, started_at)
    SELECT p_tenant, c.order_id, c.id, c.operation, c."requestId", c.outcome, c."httpStatus", c."errorCode",
           round(c."durationMs"), c.replayed, c."startedAt"
    FROM jsonb_to_recordset(p_calls) AS c(order_id text, id uuid, operation text, "requestId" text, outcome text,
      "httpStatus" smallint, "errorCode" text, "durationMs" double precision, replayed boolean, "startedAt" timestamptz)
    ON CONFLICT DO NOTHING;

  -- From here on only those that apply.
  v_items := ARRAY(
    SELECT i FROM unnest(v_items) AS i
    JOIN unnest(v_orders) AS o ON o.order_id = i.order_id
    JOIN unnest(v_attempts) AS a ON a.key = i.key
    WHERE o.status = ANY (i."from")
      AND (NOT i.guarded OR CASE WHEN i.lease_token IS NULL
                                 THEN a.state IN ('resumable', 'open') OR a.lease_expires_at <= clock_timestamp()
                                 ELSE a.state = 'running' AND a.lease_token = i.lease_token END));

  v_applied := ARRAY(SELECT i.order_id FROM unnest(v_items) AS i);

  IF v_items <> '{}' THEN
    INSERT INTO order_transitions (tenant_id, order_id, from_status, to_status, cause, actor, reason)
      SELECT p_tenant, i.order_id, o.status, i."to", i.cause, i.actor, i.reason
      FROM unnest(v_items) AS i JOIN unnest(v_orders) AS o ON o.order_id = i.order_id
      WHERE o.status <> i."to";

    UPDATE orders o SET
        status = i."to",
        intent_id = coalesce(f.intent_id, o.intent_id),
        charge_id = coalesce(f.charge_id, o.charge_id),
        payment_status = coalesce(f.payment_status, o.payment_status),
        decline_code = coalesce(f.decline_code, o.decline_code),
        client_secret = f.client_secret,
        capture_before = coalesce(f.capture_before, o.capture_before),
        captured = coalesce(f.captured, o.captured),
        maybe_sent = coalesce(f.maybe_sent, o.maybe_sent),
        send_is_pointless = coalesce(f.send_is_pointless, o.send_is_pointless),
        last_send_before = CASE WHEN f.sends_have_ended THEN clock_timestamp() ELSE o.last_send_before END,
        cancel_requested_at = coalesce(f.cancel_requested_at, o.cancel_requested_at),
        reconcile_reason = f.reconcile_reason,
        -- Another status is another wait: its pauses begin anew.
        asks = CASE WHEN o.status = i."to" THEN o.asks ELSE 0 END,
        next_ask_at = CASE WHEN f.next_ask_in_ms IS NULL THEN o.next_ask_at
                           ELSE clock_timestamp() + f.next_ask_in_ms * interval '1 ms' END,
        updated_at = i.at
      FROM unnest(v_items) AS i
      CROSS JOIN LATERAL jsonb_to_record(i.facts) AS f(intent_id text, charge_id text, payment_status text,
        decline_code text, client_secret text, capture_before timestamptz, captured bigint, maybe_sent boolean,
        send_is_pointless boolean, sends_have_ended boolean, cancel_requested_at timestamptz, reconcile_reason text,
        next_ask_in_ms double precision)
      WHERE o.tenant_id = p_tenant AND o.order_id = ANY (v_ids) AND i.order_id = o.order_id;

    -- A settled attempt keeps its first answer for good.
    UPDATE attempts a SET
        state = i.attempt_state,
        response_status = i.response_status,
        response_body = i.response_body,
        settled_at = CASE WHEN i.attempt_state = 'settled' THEN now() END,
        lease_token = NULL,
        lease_expires_at = NULL
      FROM unnest(v_items) AS i
      WHERE a.tenant_id = p_tenant AND a.key = ANY (v_keys) AND i.key = a.key
        AND a.state <> 'settled' AND i.attempt_state IS NOT NULL;

    v_released := ARRAY(SELECT i.order_id FROM unnest(v_items) AS i WHERE i.ends_unpaid);
    IF v_released <> '{}' THEN
      DELETE FROM carts c
        WHERE c.tenant_id = p_tenant AND c.order_id = ANY (v_released) AND c.cart_id = ANY (ARRAY(
          SELECT o.cart_id FROM unnest(v_orders) AS o WHERE o.order_id = ANY (v_released) AND o.cart_id IS NOT NULL));
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
      ), back AS (
        SELECT sku, sum(quantity) AS quantity FROM released GROUP BY sku
      )
      UPDATE products p SET available = p.available + back.quantity, updated_at = now()
        FROM back
        WHERE p.tenant_id = p_tenant AND p.sku = ANY (ARRAY(SELECT sku FROM back)) AND back.sku = p.sku;
    END IF;

    INSERT INTO ledger_transfers (tenant_id, transfer_id, kind, business_id, debit_account, credit_account, amount,
                                  currency, order_id)
      SELECT p_tenant, t.transfer_id, t.kind, t.business_id, t.debit_account, t.credit_account, t.amount, t.currency,
             t.order_id
      FROM jsonb_to_recordset(p_transfers) AS t(order_id text, transfer_id text, kind text, business_id text,
        debit_account text, credit_account text, amount bigint, currency text)
      WHERE t.order_id = ANY (v_applied)
      ON CONFLICT ON CONSTRAINT transfer_per_business_fact DO NOTHING;

    INSERT INTO jobs (tenant_id, topic, business_id, payload)
      SELECT p_tenant, j.topic, j.business_id, j.payload
      FROM jsonb_to_recordset(p_jobs) AS j(order_id text, topic text, business_id text, payload jsonb)
      WHERE j.order_id = ANY (v_applied)
      ON CONFLICT DO NOTHING;
  END IF;

  RETURN QUERY SELECT i, true, NULL::jsonb, NULL::jsonb, NULL FROM unnest(v_applied) AS i;
  IF cardinality(v_applied) < cardinality(v_ids) THEN
    RETURN QUERY
      SELECT o.order_id, false, to_jsonb(o),
             (SELECT jsonb_build_object('state', a.state, 'response_status', a.response_status) FROM attempts a
              WHERE a.tenant_id = p_tenant AND a.key = o.attempt_key),
             (SELECT a.response_body FROM attempts a WHERE a.tenant_id = p_tenant AND a.key = o.attempt_key)
      FROM orders o
      WHERE o.tenant_id = p_tenant AND o.order_id = ANY (v_ids)
        AND o.order_id <> ALL (v_applied);
  END IF;
END
$$;
