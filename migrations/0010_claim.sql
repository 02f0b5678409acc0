-- The claim: key + cart + pending order + stock in one statement and one commit, for a group of attempts of one tenant.
-- It is a function because a group has to be admitted item by item against the stock less the items before it, under
-- locks taken in one order (keys, carts, products by SKU, customers), and because one round trip is all it may cost.
--
-- No plan in here may depend on statistics: on fresh tables they are wrong, and a session keeps its plan for good. So every
-- row is fetched by its whole key, through `= ANY (keys)`, a scalar subquery or a LATERAL with LIMIT 1, never through a
-- join that could be planned as a scan of the tenant's rows; and the plans are generic, made once per session.

CREATE TYPE checkout_quote AS (
  item_key text,
  -- Why it cannot be sold, or null.
  refusal text,
  refusal_detail jsonb,
  currency text,
  total bigint,
  lines jsonb,
  -- Summed by SKU, for admission against the stock.
  skus text[],
  quantities bigint[],
  stock bigint[]
);

-- Price a group of items at today's catalog. Says nothing of the items before it in the group.
CREATE FUNCTION quote_checkouts(p_tenant text, p_items jsonb) RETURNS SETOF checkout_quote
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  WITH item AS (
    SELECT i.*, i.fixed_total IS NOT NULL AS fixed
    FROM jsonb_to_recordset(p_items)
      AS i(key text, items jsonb, currency text, expected_total bigint, fixed_total bigint)
  ), line AS (
    SELECT item.key, l.n AS line, l.v->>'sku' AS sku, (l.v->>'quantity')::bigint AS quantity,
           p.name, p.unit_price, p.currency, p.available
    FROM item
    CROSS JOIN LATERAL jsonb_array_elements(item.items) WITH ORDINALITY AS l(v, n)
    LEFT JOIN LATERAL (
      SELECT * FROM products WHERE tenant_id = p_tenant AND sku = l.v->>'sku' LIMIT 1
    ) p ON true
  ), by_sku AS (
    SELECT key, sku, sum(quantity)::bigint AS quantity, min(available) AS available FROM line GROUP BY key, sku
  ), stock AS (
    SELECT key, array_agg(sku ORDER BY sku) AS skus, array_agg(quantity ORDER BY sku) AS quantities,
           array_agg(available ORDER BY sku) AS stock,
           jsonb_agg(jsonb_build_object('sku', sku, 'requested', quantity, 'available', available) ORDER BY sku)
             FILTER (WHERE quantity > available) AS short
    FROM by_sku GROUP BY key
  ), priced AS (
    SELECT key, min(currency) AS currency, count(DISTINCT currency) > 1 AS mixed,
           sum(quantity * unit_price)::bigint AS total,
           jsonb_agg(sku ORDER BY line) FILTER (WHERE name IS NULL) AS unknown,
           jsonb_agg(jsonb_build_object('sku', sku, 'name', name, 'quantity', quantity, 'unit_price', unit_price,
                                        'amount', quantity * unit_price) ORDER BY line) AS lines
    FROM line GROUP BY key
  ), summed AS (
    SELECT item.key, item.expected_total, item.currency AS wanted,
           CASE WHEN fixed THEN item.currency ELSE priced.currency END AS currency,
           CASE WHEN fixed THEN item.fixed_total ELSE priced.total END AS total,
           coalesce(priced.mixed, false) AS mixed, priced.unknown,
           coalesce(priced.lines, '[]') AS lines, stock.skus, stock.quantities, stock.stock, stock.short
    FROM item LEFT JOIN priced ON priced.key = item.key LEFT JOIN stock ON stock.key = item.key
  )
  SELECT s.key,
    CASE WHEN s.unknown IS NOT NULL THEN 'unknown_sku'
         WHEN s.mixed OR s.wanted <> s.currency THEN 'currency_mismatch'
         WHEN s.expected_total <> s.total THEN 'price_changed'
         WHEN c.code IS NULL OR s.total < c.minimum OR s.total > c.maximum OR s.total % c.step <> 0
           THEN 'amount_not_chargeable'
         WHEN s.short IS NOT NULL THEN 'out_of_stock' END,
    CASE WHEN s.unknown IS NOT NULL THEN jsonb_build_object('skus', s.unknown)
         WHEN s.mixed OR s.wanted <> s.currency THEN jsonb_build_object('currency', s.currency)
         WHEN s.expected_total <> s.total
           THEN jsonb_build_object('expected_total', s.expected_total, 'total', s.total, 'currency', s.currency)
         WHEN c.code IS NULL OR s.total < c.minimum OR s.total > c.maximum OR s.total % c.step <> 0
           THEN jsonb_build_object('total', s.total, 'currency', s.currency, 'minimum', c.minimum, 'maximum', c.maximum,
                                   'step', c.step)
         WHEN s.short IS NOT NULL THEN jsonb_build_object('items', s.short) END,
    s.currency, s.total, s.lines, s.skus, s.quantities, s.stock
  FROM summed s LEFT JOIN currencies c ON c.code = s.currency;
END
$$;

-- Items of a group but those with one of the keys; null where none is left.
CREATE FUNCTION items_without(p_items jsonb, p_keys text[]) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
  SELECT jsonb_agg(i) FROM jsonb_array_elements(p_items) AS i WHERE i->>'key' <> ALL (p_keys)
$$;

-- What is known of some keys: the stored answer where settled, otherwise the order as it stands.
CREATE FUNCTION read_attempts(p_tenant text, p_keys text[])
RETURNS TABLE (item_key text, attempt jsonb, response_body text, order_row jsonb)
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT a.key,
    jsonb_build_object('kind', a.kind, 'object_id', a.object_id, 'state', a.state, 'lease_token', a.lease_token,
      'lease_remaining_ms', extract(epoch FROM a.lease_expires_at - clock_timestamp()) * 1000,
      'digest', encode(a.digest, 'base64'), 'digest_tags', a.digest_tags, 'digest_secret_id', a.digest_secret_id,
      'response_status', a.response_status, 'swept', a.swept_at IS NOT NULL),
    a.response_body,
    CASE WHEN a.state <> 'settled' THEN
      (SELECT to_jsonb(o) FROM orders o WHERE o.tenant_id = p_tenant AND o.order_id = a.object_id) END
  FROM attempts a
  WHERE a.tenant_id = p_tenant AND a.key = ANY (p_keys);
END
$$;

-- Items come sorted by key, each key and each cart once: {key, kind, token, order_id, customer_id, email, name, items,
-- currency, expected_total, fixed_total, capture, cart_id, payment_method, shipping_address, metadata, digest,
-- digest_tags, digest_secret_id, account, connected_account, livemode, api_version, parameter_version}.
--
-- Outcomes per item: `claimed` (also where an earlier, lost answer had claimed it with this token), `known` (the key has
-- an attempt), `refused` (nothing stored, the key is free), `cart_taken` (nothing stored), `again` (what stood in the way
-- has gone meanwhile: call again).
CREATE FUNCTION claim_checkouts(p_tenant text, p_items jsonb, p_lease_ms double precision, p_expiry_ms double precision)
RETURNS TABLE (item_key text, outcome text, refusal text, refusal_detail jsonb, attempt jsonb, response_body text, order_row jsonb)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
  v_items jsonb := p_items;
  v_keys text[] := ARRAY(SELECT i->>'key' FROM jsonb_array_elements(p_items) AS i);
  v_won text[];
  v_gone text[];
  v_quotes checkout_quote[];
  v_quote checkout_quote;
  v_taken jsonb := '{}';
  v_short jsonb;
  v_skus text[];
  v_lease_ends timestamptz;
BEGIN
  -- Keys that have been seen: a repeat ends here, having read one index and written nothing.
  RETURN QUERY
    SELECT k.item_key,
      CASE WHEN k.attempt->>'state' = 'running' AND k.attempt->>'lease_token' = i->>'token' THEN 'claimed' ELSE 'known' END,
      NULL, NULL::jsonb, k.attempt, k.response_body, k.order_row
    FROM read_attempts(p_tenant, v_keys) k
    JOIN jsonb_array_elements(p_items) AS i ON i->>'key' = k.item_key;
  IF FOUND THEN
    v_items := items_without(v_items, ARRAY(
      SELECT a.key FROM attempts a WHERE a.tenant_id = p_tenant AND a.key = ANY (v_keys)));
    IF v_items IS NULL THEN RETURN; END IF;
  END IF;

  -- Refuse without a write or a lock what today's catalog refuses: a sold-out product stays cheap to ask for.
  v_gone := '{}';
  FOR v_quote IN SELECT * FROM quote_checkouts(p_tenant, v_items) q WHERE q.refusal IS NOT NULL LOOP
    item_key := v_quote.item_key; outcome := 'refused'; refusal := v_quote.refusal; refusal_detail := v_quote.refusal_detail;
    RETURN NEXT;
    v_gone := v_gone || v_quote.item_key;
  END LOOP;
  IF v_gone <> '{}' THEN
    v_items := items_without(v_items, v_gone);
    IF v_items IS NULL THEN RETURN; END IF;
  END IF;

  -- Keys, in order.
  v_lease_ends := clock_timestamp() + p_lease_ms * interval '1 ms';
  WITH won AS (
    INSERT INTO attempts AS a (tenant_id, key, kind, object_id, state, lease_token, lease_expires_at,
                               digest, digest_tags, digest_secret_id)
    SELECT p_tenant, i.key, i.kind, i.object_id, 'running', i.token, v_lease_ends,
           decode(i.digest, 'base64'), i.digest_tags, i.digest_secret_id
    FROM jsonb_to_recordset(v_items) AS i(key text, kind text, object_id text, token uuid, digest text,
                                          digest_tags jsonb, digest_secret_id text)
    ORDER BY i.key COLLATE "C"
    ON CONFLICT DO NOTHING
    RETURNING a.key
  )
  SELECT coalesce(array_agg(won.key), '{}') INTO v_won FROM won;
  IF cardinality(v_won) < jsonb_array_length(v_items) THEN
    -- Twins in another process came first and have committed, or have gone again.
    v_gone := ARRAY(SELECT i->>'key' FROM jsonb_array_elements(v_items) AS i WHERE i->>'key' <> ALL (v_won));
    RETURN QUERY
      SELECT k, CASE WHEN r.item_key IS NULL THEN 'again' ELSE 'known' END,
             NULL, NULL::jsonb, r.attempt, r.response_body, r.order_row
      FROM unnest(v_gone) AS k LEFT JOIN read_attempts(p_tenant, v_gone) r ON r.item_key = k;
    v_items := items_without(v_items, v_gone);
    IF v_items IS NULL THEN RETURN; END IF;
  END IF;

  -- Carts, in order.
  IF v_items @? '$[*].cart_id' THEN
    WITH won AS (
      INSERT INTO carts AS c (tenant_id, cart_id, order_id, attempt_key)
      SELECT p_tenant, i.cart_id, i.order_id, i.key
      FROM jsonb_to_recordset(v_items) AS i(key text, cart_id text, order_id text)
      WHERE i.cart_id IS NOT NULL
      ORDER BY i.cart_id COLLATE "C"
      ON CONFLICT DO NOTHING
      RETURNING c.attempt_key
    )
    SELECT coalesce(array_agg(won.attempt_key), '{}') INTO v_won FROM won;
    v_gone := ARRAY(SELECT i->>'key' FROM jsonb_array_elements(v_items) AS i
                    WHERE i ? 'cart_id' AND i->>'key' <> ALL (v_won));
    IF v_gone <> '{}' THEN
      RETURN QUERY
        SELECT i->>'key', CASE WHEN c.cart_id IS NULL THEN 'again' ELSE 'cart_taken' END,
               NULL, NULL::jsonb, to_jsonb(a) - 'response_body' - 'digest', NULL, to_jsonb(o)
        FROM jsonb_array_elements(v_items) AS i
        LEFT JOIN LATERAL (
          SELECT * FROM carts WHERE tenant_id = p_tenant AND cart_id = i->>'cart_id' LIMIT 1
        ) c ON true
        LEFT JOIN LATERAL (
          SELECT * FROM orders WHERE tenant_id = p_tenant AND order_id = c.order_id LIMIT 1
        ) o ON true
        LEFT JOIN LATERAL (
          SELECT * FROM attempts WHERE tenant_id = p_tenant AND key = c.attempt_key LIMIT 1
        ) a ON true
        WHERE i->>'key' = ANY (v_gone);
      DELETE FROM attempts a WHERE a.tenant_id = p_tenant AND a.key = ANY (v_gone);
      v_items := items_without(v_items, v_gone);
      IF v_items IS NULL THEN RETURN; END IF;
    END IF;
  END IF;

  -- Products, by SKU. What follows sees them as they are, and nobody changes them until the commit.
  PERFORM 1 FROM products p
  WHERE p.tenant_id = p_tenant
    AND p.sku = ANY (ARRAY(SELECT l->>'sku' FROM jsonb_array_elements(v_items) AS i, jsonb_array_elements(i->'items') AS l))
  ORDER BY p.sku FOR NO KEY UPDATE;
  v_quotes := ARRAY(SELECT q FROM quote_checkouts(p_tenant, v_items) q ORDER BY q.item_key COLLATE "C");

  -- Admit each against the stock less what the items before it take; the walk is needed only where stock is short.
  IF EXISTS (SELECT FROM unnest(v_quotes) q WHERE q.refusal IS NOT NULL)
    OR EXISTS (SELECT FROM unnest(v_quotes) q, unnest(q.skus, q.quantities, q.stock) AS d(sku, quantity, stock)
               GROUP BY d.sku HAVING sum(d.quantity) > min(d.stock)) THEN
    v_gone := '{}';
    FOREACH v_quote IN ARRAY v_quotes LOOP
      IF v_quote.refusal IS NULL THEN
        SELECT jsonb_agg(jsonb_build_object('sku', d.sku, 'requested', d.quantity,
                                            'available', d.stock - coalesce((v_taken->>d.sku)::bigint, 0)))
          INTO v_short
          FROM unnest(v_quote.skus, v_quote.quantities, v_quote.stock) AS d(sku, quantity, stock)
          WHERE d.quantity > d.stock - coalesce((v_taken->>d.sku)::bigint, 0);
        IF v_short IS NULL THEN
          SELECT v_taken || coalesce(jsonb_object_agg(d.sku, d.quantity + coalesce((v_taken->>d.sku)::bigint, 0)), '{}')
            INTO v_taken FROM unnest(v_quote.skus, v_quote.quantities) AS d(sku, quantity);
          CONTINUE;
        END IF;
        v_quote.refusal := 'out_of_stock';
        v_quote.refusal_detail := jsonb_build_object('items', v_short);
      END IF;
      item_key := v_quote.item_key; outcome := 'refused'; refusal := v_quote.refusal; refusal_detail := v_quote.refusal_detail;
      attempt := NULL; response_body := NULL; order_row := NULL;
      RETURN NEXT;
      v_gone := v_gone || v_quote.item_key;
    END LOOP;
    IF v_gone <> '{}' THEN
      DELETE FROM carts c WHERE c.tenant_id = p_tenant AND c.cart_id = ANY (ARRAY(
        SELECT i->>'cart_id' FROM jsonb_array_elements(v_items) AS i
        WHERE i ? 'cart_id' AND i->>'key' = ANY (v_gone)));
      DELETE FROM attempts a WHERE a.tenant_id = p_tenant AND a.key = ANY (v_gone);
      v_items := items_without(v_items, v_gone);
      IF v_items IS NULL THEN RETURN; END IF;
      v_quotes := ARRAY(SELECT q FROM unnest(v_quotes) q WHERE q.item_key <> ALL (v_gone));
    END IF;
  END IF;

  -- Everything is decided: write.
  SELECT array_agg(d.sku), jsonb_object_agg(d.sku, d.quantity) INTO v_skus, v_taken
    FROM (SELECT d.sku, sum(d.quantity) AS quantity
          FROM unnest(v_quotes) q, unnest(q.skus, q.quantities) AS d(sku, quantity) GROUP BY d.sku) d;
  UPDATE products p SET available = p.available - (v_taken->>p.sku)::bigint, updated_at = now()
    WHERE p.tenant_id = p_tenant AND p.sku = ANY (v_skus);

  INSERT INTO customers (tenant_id, customer_id, email, name)
    SELECT DISTINCT ON (i.email COLLATE "C") p_tenant, i.customer_id, i.email, i.name
    FROM jsonb_to_recordset(v_items) AS i(customer_id text, email text, name text)
    ORDER BY i.email COLLATE "C"
    ON CONFLICT (tenant_id, email) DO NOTHING;

  INSERT INTO stock_movements (tenant_id, order_id, line, kind, sku, quantity)
    SELECT p_tenant, i->>'order_id', l.n, 'reserve', l.v->>'sku', (l.v->>'quantity')::bigint
    FROM jsonb_array_elements(v_items) AS i, jsonb_array_elements(i->'items') WITH ORDINALITY AS l(v, n);

  INSERT INTO runs (tenant_id, run_id, order_id, hold_amount)
    SELECT p_tenant, i->>'object_id', i->>'order_id', (i->>'fixed_total')::bigint
    FROM jsonb_array_elements(v_items) AS i WHERE i->>'kind' = 'run';

  RETURN QUERY
    WITH made AS (
      INSERT INTO orders AS o (tenant_id, order_id, attempt_key, kind, status, currency, total, capture, lines,
        customer_id, cart_id, shipping_address, metadata, payment_method, provider_account, connected_account, livemode,
        api_version, parameter_version, last_send_before, next_ask_at, expires_at)
      SELECT p_tenant, i.order_id, i.key, i.kind, 'pending', q.currency, q.total, i.capture, q.lines,
        (SELECT c.customer_id FROM customers c WHERE c.tenant_id = p_tenant AND c.email = i.email), i.cart_id, i.shipping_address, i.metadata, i.payment_method, i.account, i.connected_account,
        i.livemode, i.api_version, i.parameter_version, v_lease_ends, v_lease_ends,
        clock_timestamp() + p_expiry_ms * interval '1 ms'
      FROM jsonb_to_recordset(v_items) AS i(key text, kind text, order_id text, email text, capture text, cart_id text,
             shipping_address jsonb, metadata jsonb, payment_method text, account text, connected_account text,
             livemode boolean, api_version text, parameter_version smallint)
      JOIN unnest(v_quotes) q ON q.item_key = i.key
      RETURNING o.*
    )
    SELECT made.attempt_key, 'claimed', NULL, NULL::jsonb, NULL::jsonb, NULL, to_jsonb(made) FROM made;
END
$$;

-- Take the lease of an attempt that nobody holds: one of them only, whoever tries. `from_state` tells what it was: a
-- `running` attempt whose lease ended belongs to a process that died or froze, perhaps during a call, so from then on a
-- call may have been sent. Null where somebody holds it or the order is no longer open.
CREATE FUNCTION take_lease(p_tenant text, p_order_id text, p_token uuid, p_lease_ms double precision, p_may_send boolean)
RETURNS TABLE (from_state text, order_row jsonb)
LANGUAGE plpgsql
AS $$
DECLARE
  v_order orders;
  v_state text;
  v_ends timestamptz;
BEGIN
  SELECT * INTO v_order FROM orders o
    WHERE o.tenant_id = p_tenant AND o.order_id = p_order_id
      AND o.status IN ('pending', 'requires_action', 'needs_reconcile')
    FOR NO KEY UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  SELECT a.state INTO v_state FROM attempts a
    WHERE a.tenant_id = p_tenant AND a.key = v_order.attempt_key
      AND (a.state IN ('resumable', 'open') OR (a.state = 'running' AND a.lease_expires_at <= clock_timestamp()))
    FOR NO KEY UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  v_ends := clock_timestamp() + p_lease_ms * interval '1 ms';
  UPDATE attempts a SET state = 'running', lease_token = p_token, lease_expires_at = v_ends
    WHERE a.tenant_id = p_tenant AND a.key = v_order.attempt_key;
  RETURN QUERY
    UPDATE orders o SET
        maybe_sent = o.maybe_sent OR v_state = 'running',
        last_send_before = CASE WHEN p_may_send THEN v_ends ELSE o.last_send_before END,
        next_ask_at = greatest(o.next_ask_at, v_ends)
      WHERE o.tenant_id = p_tenant AND o.order_id = p_order_id
      RETURNING v_state, to_jsonb(o);
END
$$;
