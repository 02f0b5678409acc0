-- The claim and the settle, in fewer steps than before: products are judged and changed by one map of what is wanted,
-- facts are parsed once, what no usual group needs is read only where it is needed. Same arguments, same outcomes, so that
-- processes of the version before go on while this one starts. Plans depend on no statistics, as said in 0010.

-- {sku: quantity} of all items together.
CREATE FUNCTION demand_of(p_items claim_item[]) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN (
    SELECT coalesce(jsonb_object_agg(d.sku, d.quantity), '{}')
    FROM (SELECT d.sku, sum(d.quantity) AS quantity
          FROM unnest(p_items) AS i, unnest(i.skus, i.quantities) AS d(sku, quantity) GROUP BY d.sku) d);
END
$$;

-- As rows of the claim: `known`, or `again` where one has gone meanwhile.
CREATE FUNCTION known_attempts(p_tenant text, p_keys text[])
RETURNS TABLE (item_key text, outcome text, refusal text, detail jsonb, attempt jsonb, response_body text, order_row jsonb)
LANGUAGE sql STABLE
AS $$
  SELECT k, CASE WHEN r.item_key IS NULL THEN 'again' ELSE 'known' END, NULL, NULL::jsonb, r.attempt, r.response_body, r.order_row
  FROM unnest(p_keys) AS k LEFT JOIN read_attempts(p_tenant, p_keys) r ON r.item_key = k
$$;

-- Items come sorted by key, each key and each cart once, as JSON with the fields of claim_item.
--
-- Outcomes per item: `claimed`; `known` (the key has an attempt; also where an earlier call, whose answer was lost, has
-- claimed it with this token); `refused` and `cart_taken` (nothing stored, the key is free); `again` (what stood in the
-- way has gone meanwhile: call again). `detail` says of a claimed one what only this function knows of its order.
CREATE OR REPLACE FUNCTION claim_checkouts(p_tenant text, p_items jsonb, p_lease_ms double precision, p_expiry_ms double precision)
RETURNS TABLE (item_key text, outcome text, refusal text, detail jsonb, attempt jsonb, response_body text, order_row jsonb)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
  v_items claim_item[] := ARRAY(SELECT i FROM jsonb_populate_recordset(NULL::claim_item, p_items) AS i);
  v_demand jsonb := demand_of(v_items);
  v_skus text[] := ARRAY(SELECT jsonb_object_keys(v_demand));
  v_takes_writes boolean := current_setting('transaction_read_only') = 'off';
  v_won text[];
  v_gone text[];
  v_catalog jsonb;
  v_stock jsonb;
  v_quotes claim_quote[];
  v_refused claim_quote[];
  v_lease_ends timestamptz;
BEGIN
  -- Refuse without a write or a lock what is unknown or sold out: a sold-out product stays cheap to ask for. Whose key is
  -- known gets its own answer, whatever is for sale today, and also of a database that takes no writes. What is for sale is
  -- read before the keys are: who reads that a twin in another process has taken the last unit then finds the twin's key.
  IF NOT v_takes_writes
    OR (SELECT count(*) FROM products p WHERE p.tenant_id = p_tenant AND p.sku = ANY (v_skus) AND p.available > 0)
       < cardinality(v_skus) THEN
    SELECT jsonb_object_agg(p.sku, jsonb_build_object('name', p.name, 'unit_price', p.unit_price, 'currency', p.currency)),
           jsonb_object_agg(p.sku, p.available)
      INTO v_catalog, v_stock
      FROM products p WHERE p.tenant_id = p_tenant AND p.sku = ANY (v_skus);
    v_gone := ARRAY(SELECT a.key FROM attempts a
                    WHERE a.tenant_id = p_tenant AND a.key = ANY (ARRAY(SELECT i.key FROM unnest(v_items) AS i)));
    RETURN QUERY SELECT * FROM known_attempts(p_tenant, v_gone);
    v_items := items_without(v_items, v_gone);
    -- A database that takes no writes may be behind another one: it knows too little to refuse.
    IF v_takes_writes THEN
      v_refused := refused_items(v_items, quote_items(v_items, v_catalog), v_stock);
      RETURN QUERY SELECT q.item_key, 'refused', q.refusal, q.refusal_detail, NULL::jsonb, NULL, NULL::jsonb
        FROM unnest(v_refused) q;
      v_items := items_without(v_items, ARRAY(SELECT q.item_key FROM unnest(v_refused) q));
    END IF;
    IF v_items = '{}' THEN RETURN; END IF;
  END IF;

  -- Keys, in order. A repeat ends here, having written nothing.
  v_lease_ends := clock_timestamp() + p_lease_ms * interval '1 ms';
  WITH won AS (
    INSERT INTO attempts AS a (tenant_id, key, kind, object_id, state, lease_token, lease_expires_at,
                               digest, digest_tags, digest_secret_id)
    SELECT p_tenant, i.key, i.kind, i.order_id, 'running', i.token, v_lease_ends,
           decode(i.digest, 'base64'), i.digest_tags, i.digest_secret_id
    FROM unnest(v_items) AS i
    ON CONFLICT DO NOTHING
    RETURNING a.key
  )
  SELECT coalesce(array_agg(won.key), '{}') INTO v_won FROM won;
  IF cardinality(v_won) < cardinality(v_items) THEN
    -- Seen before, or twins in another process came first and have committed, or have gone again.
    v_gone := ARRAY(SELECT i.key FROM unnest(v_items) AS i WHERE i.key <> ALL (v_won));
    RETURN QUERY SELECT * FROM known_attempts(p_tenant, v_gone);
    v_items := items_without(v_items, v_gone);
    IF v_items = '{}' THEN RETURN; END IF;
  END IF;

  -- Carts, in order.
  IF EXISTS (SELECT FROM unnest(v_items) AS i WHERE i.cart_id IS NOT NULL) THEN
    WITH won AS (
      INSERT INTO carts AS c (tenant_id, cart_id, order_id, attempt_key)
      SELECT p_tenant, i.cart_id, i.order_id, i.key FROM unnest(v_items) AS i
      WHERE i.cart_id IS NOT NULL ORDER BY i.cart_id COLLATE "C"
      ON CONFLICT DO NOTHING
      RETURNING c.attempt_key
    )
    SELECT coalesce(array_agg(won.attempt_key), '{}') INTO v_won FROM won;
    v_gone := ARRAY(SELECT i.key FROM unnest(v_items) AS i WHERE i.cart_id IS NOT NULL AND i.key <> ALL (v_won));
    IF v_gone <> '{}' THEN
      RETURN QUERY
        SELECT i.key, CASE WHEN c.cart_id IS NULL THEN 'again' ELSE 'cart_taken' END, NULL, NULL::jsonb,
          (SELECT jsonb_build_object('state', a.state) FROM attempts a
           WHERE a.tenant_id = p_tenant AND a.key = c.attempt_key),
          NULL,
          (SELECT to_jsonb(o) FROM orders o WHERE o.tenant_id = p_tenant AND o.order_id = c.order_id)
        FROM unnest(v_items) AS i
        LEFT JOIN LATERAL (SELECT * FROM carts WHERE tenant_id = p_tenant AND cart_id = i.cart_id LIMIT 1) c ON true
        WHERE i.key = ANY (v_gone);
      DELETE FROM attempts a WHERE a.tenant_id = p_tenant AND a.key = ANY (v_gone);
      v_items := items_without(v_items, v_gone);
      IF v_items = '{}' THEN RETURN; END IF;
    END IF;
  END IF;

  -- Products, by SKU. A row that was waited for is read as it is now, and nobody changes it until the commit.
  -- Who has left wants nothing any more.
  IF cardinality(v_items) < jsonb_array_length(p_items) THEN
    v_demand := demand_of(v_items);
    v_skus := ARRAY(SELECT jsonb_object_keys(v_demand));
  END IF;
  SELECT jsonb_object_agg(p.sku, jsonb_build_object('name', p.name, 'unit_price', p.unit_price, 'currency', p.currency)),
         jsonb_object_agg(p.sku, p.available)
    INTO v_catalog, v_stock
    FROM (SELECT * FROM products p WHERE p.tenant_id = p_tenant AND p.sku = ANY (v_skus)
          ORDER BY p.sku FOR NO KEY UPDATE) p;
  v_quotes := quote_items(v_items, v_catalog);

  -- The walk over the items is needed only where something is refused or short.
  IF EXISTS (SELECT FROM unnest(v_quotes) q WHERE q.refusal IS NOT NULL)
    OR EXISTS (SELECT FROM jsonb_each_text(v_demand) AS d(sku, quantity)
               WHERE d.quantity::bigint > (v_stock->>d.sku)::bigint) THEN
    v_refused := refused_items(v_items, v_quotes, v_stock);
    RETURN QUERY SELECT q.item_key, 'refused', q.refusal, q.refusal_detail, NULL::jsonb, NULL, NULL::jsonb
      FROM unnest(v_refused) q;
    v_gone := ARRAY(SELECT q.item_key FROM unnest(v_refused) q);
    DELETE FROM carts c WHERE c.tenant_id = p_tenant AND c.cart_id = ANY (ARRAY(
      SELECT i.cart_id FROM unnest(v_items) AS i WHERE i.cart_id IS NOT NULL AND i.key = ANY (v_gone)));
    DELETE FROM attempts a WHERE a.tenant_id = p_tenant AND a.key = ANY (v_gone);
    v_items := items_without(v_items, v_gone);
    IF v_items = '{}' THEN RETURN; END IF;
    v_demand := demand_of(v_items);
    v_skus := ARRAY(SELECT jsonb_object_keys(v_demand));
  END IF;

  -- Everything is decided: write.
  UPDATE products p SET available = p.available - (v_demand->>p.sku)::bigint, updated_at = now()
    WHERE p.tenant_id = p_tenant AND p.sku = ANY (v_skus);

  INSERT INTO customers (tenant_id, customer_id, email, name)
    SELECT DISTINCT ON (i.email COLLATE "C") p_tenant, i.customer_id, i.email, i.name
    FROM unnest(v_items) AS i
    ORDER BY i.email COLLATE "C"
    ON CONFLICT (tenant_id, email) DO NOTHING;

  INSERT INTO stock_movements (tenant_id, order_id, line, kind, sku, quantity)
    SELECT p_tenant, i.order_id, l.n, 'reserve', l.v->>'sku', (l.v->>'quantity')::bigint
    FROM unnest(v_items) AS i, jsonb_array_elements(i.items) WITH ORDINALITY AS l(v, n);

  INSERT INTO runs (tenant_id, order_id, next_look_at)
    SELECT p_tenant, i.order_id, clock_timestamp() + p_expiry_ms * interval '1 ms' FROM unnest(v_items) AS i
    WHERE i.kind = 'run';

  RETURN QUERY
    INSERT INTO orders AS o (tenant_id, order_id, attempt_key, kind, status, currency, total, capture, lines,
      customer_id, cart_id, shipping_address, metadata, payment_method, provider_account, connected_account, livemode,
      api_version, parameter_version, last_send_before, next_ask_at, expires_at)
    SELECT p_tenant, i.order_id, i.key, i.kind, 'pending', q.currency, q.total, i.capture, q.lines,
      coalesce((SELECT c.customer_id FROM customers c WHERE c.tenant_id = p_tenant AND c.email = i.email), claim_again()),
      i.cart_id, i.shipping_address, i.metadata, i.payment_method, i.account, i.connected_account,
      i.livemode, i.api_version, i.parameter_version, v_lease_ends, v_lease_ends,
      clock_timestamp() + p_expiry_ms * interval '1 ms'
    FROM unnest(v_items) AS i JOIN unnest(v_quotes) q ON q.item_key = i.key
    RETURNING o.attempt_key, 'claimed', NULL,
      jsonb_build_object('currency', o.currency, 'total', o.total, 'lines', o.lines, 'customer_id', o.customer_id,
        'last_send_before', o.last_send_before, 'expires_at', o.expires_at, 'created_at', o.created_at),
      NULL::jsonb, NULL, NULL::jsonb;
END
$$;

-- What a settlement says of its order, each absent where it stays as it is.
CREATE TYPE settle_facts AS (
  intent_id text, charge_id text, payment_status text, decline_code text, client_secret text, capture_before timestamptz,
  captured bigint, maybe_sent boolean, send_is_pointless boolean, sends_have_ended boolean,
  cancel_requested_at timestamptz, reconcile_reason text, next_ask_in_ms double precision
);
-- As settle_item, which the calls that are under way when this is applied still have.
CREATE TYPE settlement AS (
  order_id text, key text, "from" text[], "to" text, guarded boolean, lease_token uuid, at timestamptz, facts settle_facts,
  attempt_state text, response_status smallint, response_body text, cause text, actor text, reason text,
  ends_unpaid boolean
);

-- Locks in one order: orders, attempts, carts, products by SKU. Whoever changes an order's attempt holds the order, so
-- that the attempt needs no lock to be judged.
CREATE OR REPLACE FUNCTION settle_orders(p_tenant text, p_items jsonb, p_calls jsonb, p_transfers jsonb, p_jobs jsonb)
RETURNS TABLE (settled_order_id text, applied boolean, order_row jsonb, attempt jsonb, response_body text)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
  v_items settlement[] := ARRAY(SELECT i FROM jsonb_populate_recordset(NULL::settlement, p_items) AS i);
  v_ids text[] := ARRAY(SELECT i.order_id FROM unnest(v_items) AS i);
  -- {order id: status} before.
  v_was jsonb;
  v_applied text[];
  v_keys text[];
  v_released text[];
BEGIN
  SELECT jsonb_object_agg(o.order_id, o.status) INTO v_was
    FROM (SELECT o.order_id, o.status FROM orders o WHERE o.tenant_id = p_tenant AND o.order_id = ANY (v_ids)
          ORDER BY o.order_id FOR NO KEY UPDATE) o;

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
    WHERE v_was->>i.order_id = ANY (i."from")
      AND (NOT i.guarded OR (
        SELECT CASE WHEN i.lease_token IS NULL THEN a.state IN ('resumable', 'open') OR a.lease_expires_at <= clock_timestamp()
                    ELSE a.state = 'running' AND a.lease_token = i.lease_token END
        FROM attempts a WHERE a.tenant_id = p_tenant AND a.key = i.key)));
  v_applied := ARRAY(SELECT i.order_id FROM unnest(v_items) AS i);
  v_keys := ARRAY(SELECT i.key FROM unnest(v_items) AS i);

  IF v_items <> '{}' THEN
    INSERT INTO order_transitions (tenant_id, order_id, from_status, to_status, cause, actor, reason)
      SELECT p_tenant, i.order_id, v_was->>i.order_id, i."to", i.cause, i.actor, i.reason
      FROM unnest(v_items) AS i
      WHERE v_was->>i.order_id <> i."to";

    UPDATE orders o SET
        status = i."to",
        intent_id = coalesce((i.facts).intent_id, o.intent_id),
        charge_id = coalesce((i.facts).charge_id, o.charge_id),
        payment_status = coalesce((i.facts).payment_status, o.payment_status),
        decline_code = coalesce((i.facts).decline_code, o.decline_code),
        client_secret = (i.facts).client_secret,
        capture_before = coalesce((i.facts).capture_before, o.capture_before),
        captured = coalesce((i.facts).captured, o.captured),
        maybe_sent = coalesce((i.facts).maybe_sent, o.maybe_sent),
        send_is_pointless = coalesce((i.facts).send_is_pointless, o.send_is_pointless),
        last_send_before = CASE WHEN (i.facts).sends_have_ended THEN clock_timestamp() ELSE o.last_send_before END,
        cancel_requested_at = coalesce((i.facts).cancel_requested_at, o.cancel_requested_at),
        reconcile_reason = (i.facts).reconcile_reason,
        -- Another status is another wait: its pauses begin anew.
        asks = CASE WHEN o.status = i."to" THEN o.asks ELSE 0 END,
        next_ask_at = CASE WHEN (i.facts).next_ask_in_ms IS NULL THEN o.next_ask_at
                           ELSE clock_timestamp() + (i.facts).next_ask_in_ms * interval '1 ms' END,
        updated_at = i.at
      FROM unnest(v_items) AS i
      WHERE o.tenant_id = p_tenant AND o.order_id = ANY (v_applied) AND i.order_id = o.order_id;

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
          SELECT o.cart_id FROM orders o
          WHERE o.tenant_id = p_tenant AND o.order_id = ANY (v_released) AND o.cart_id IS NOT NULL));
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
