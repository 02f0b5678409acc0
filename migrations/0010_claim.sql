-- The claim: key + cart + pending order + stock in one statement and one commit, for a group of attempts of one tenant.
-- It is a function because a group has to be admitted item by item against the stock less the items before it, under
-- locks taken in one order (keys, carts, products by SKU, customers), and because one round trip is all it may cost.
--
-- No plan in here may depend on statistics: on fresh tables they are wrong, and a session keeps its plan for good. So every
-- row is fetched by its whole key, through `= ANY (keys)` or a scalar subquery, never through a join that could be
-- planned as a scan of the tenant's rows; and the plans are generic, made once per session. The items are parsed once,
-- into an array of rows; what follows only walks that array.

CREATE TYPE claim_item AS (
  key text, kind text, order_id text, customer_id text, token uuid, email text, name text,
  -- [{sku, quantity}] as ordered; `skus` and `quantities` are the same summed by SKU, sorted.
  items jsonb, skus text[], quantities bigint[],
  currency text, expected_total bigint,
  -- An order without lines, for this amount.
  fixed_total bigint,
  capture text, cart_id text, payment_method text, shipping_address jsonb, metadata jsonb,
  digest text, digest_tags jsonb, digest_secret_id text,
  account text, connected_account text, livemode boolean, api_version text, parameter_version smallint
);

CREATE TYPE claim_quote AS (
  item_key text,
  -- Why it cannot be sold, or null. Stock is not looked at.
  refusal text, refusal_detail jsonb,
  currency text, total bigint, lines jsonb
);

-- Prices the items with today's catalog, given as {sku: {name, unit_price, currency}}. Maps instead of joins: a group of
-- items asks for a few rows many times.
CREATE FUNCTION quote_items(p_items claim_item[], p_catalog jsonb) RETURNS claim_quote[]
LANGUAGE plpgsql STABLE
AS $$
DECLARE
  -- {currency: [minimum, maximum, step]}
  v_limits jsonb := (
    SELECT jsonb_object_agg(code, jsonb_build_array(minimum, maximum, step)) FROM currencies
    WHERE code = ANY (ARRAY(SELECT DISTINCT value->>'currency' FROM jsonb_each(p_catalog))
                   || ARRAY(SELECT currency FROM unnest(p_items) WHERE fixed_total IS NOT NULL)));
BEGIN
  RETURN ARRAY(
    SELECT (i.key, r.refusal,
      CASE r.refusal
        WHEN 'unknown_sku' THEN jsonb_build_object('skus', l.unknown)
        WHEN 'currency_mismatch' THEN jsonb_build_object('currency', s.currency)
        WHEN 'price_changed'
          THEN jsonb_build_object('expected_total', i.expected_total, 'total', s.total, 'currency', s.currency)
        WHEN 'amount_not_chargeable'
          THEN jsonb_build_object('total', s.total, 'currency', s.currency, 'minimum', c.minimum, 'maximum', c.maximum,
                                  'step', c.step)
      END,
      s.currency, s.total, coalesce(l.lines, '[]'))::claim_quote
    FROM unnest(p_items) AS i
    CROSS JOIN LATERAL (
      SELECT min(p->>'currency') AS currency, min(p->>'currency') <> max(p->>'currency') AS mixed,
        -- Far above any currency's maximum, and the largest integer that JSON carries exactly.
        least(sum((v->>'quantity')::bigint * (p->>'unit_price')::bigint), 9007199254740991)::bigint AS total,
        jsonb_agg(v->'sku' ORDER BY n) FILTER (WHERE p IS NULL) AS unknown,
        jsonb_agg(jsonb_build_object('sku', v->'sku', 'name', p->'name', 'quantity', v->'quantity',
                                     'unit_price', p->'unit_price',
                                     'amount', (v->>'quantity')::bigint * (p->>'unit_price')::bigint) ORDER BY n) AS lines
      FROM (SELECT v, n, p_catalog->(v->>'sku') AS p FROM jsonb_array_elements(i.items) WITH ORDINALITY AS e(v, n)) e
    ) l
    CROSS JOIN LATERAL (
      SELECT CASE WHEN i.fixed_total IS NULL THEN l.currency ELSE i.currency END AS currency,
             coalesce(i.fixed_total, l.total) AS total
    ) s
    CROSS JOIN LATERAL (
      SELECT (v_limits->s.currency->>0)::bigint AS minimum, (v_limits->s.currency->>1)::bigint AS maximum,
             (v_limits->s.currency->>2)::bigint AS step
    ) c
    CROSS JOIN LATERAL (
      SELECT CASE WHEN l.unknown IS NOT NULL THEN 'unknown_sku'
                  WHEN l.mixed OR i.currency <> s.currency THEN 'currency_mismatch'
                  WHEN i.expected_total <> s.total THEN 'price_changed'
                  WHEN c.step IS NULL OR s.total < c.minimum OR s.total > c.maximum OR s.total % c.step <> 0
                    THEN 'amount_not_chargeable' END AS refusal
    ) r);
END
$$;

-- Admits the items in their order, each against the stock less what those before it take. `p_stock` is {sku: available}.
-- Resolves with those that cannot be sold: refused by their quote, or short of stock.
CREATE FUNCTION refused_items(p_items claim_item[], p_quotes claim_quote[], p_stock jsonb) RETURNS claim_quote[]
LANGUAGE plpgsql STABLE
AS $$
DECLARE
  v_quote claim_quote;
  v_item claim_item;
  v_left jsonb := p_stock;
  v_short jsonb;
  v_refused claim_quote[] := '{}';
BEGIN
  FOREACH v_item IN ARRAY p_items LOOP
    SELECT * INTO v_quote FROM unnest(p_quotes) q WHERE q.item_key = v_item.key;
    IF v_quote.refusal IS NULL THEN
      SELECT jsonb_agg(jsonb_build_object('sku', d.sku, 'requested', d.quantity, 'available', v_left->d.sku))
        INTO v_short
        FROM unnest(v_item.skus, v_item.quantities) AS d(sku, quantity)
        WHERE d.quantity > (v_left->>d.sku)::bigint;
      IF v_short IS NULL THEN
        SELECT v_left || coalesce(jsonb_object_agg(d.sku, (v_left->>d.sku)::bigint - d.quantity), '{}')
          INTO v_left FROM unnest(v_item.skus, v_item.quantities) AS d(sku, quantity);
        CONTINUE;
      END IF;
      v_quote.refusal := 'out_of_stock';
      v_quote.refusal_detail := jsonb_build_object('items', v_short);
    END IF;
    v_refused := v_refused || v_quote;
  END LOOP;
  RETURN v_refused;
END
$$;

-- The items but those with one of the keys.
CREATE FUNCTION items_without(p_items claim_item[], p_keys text[]) RETURNS claim_item[] LANGUAGE sql IMMUTABLE AS $$
  SELECT ARRAY(SELECT i FROM unnest(p_items) AS i WHERE i.key <> ALL (p_keys))
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

-- The customer was erased between two statements of the claim: as after a serialization failure, the same again works.
CREATE FUNCTION claim_again() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the customer has just been erased' USING ERRCODE = 'serialization_failure';
END
$$;

-- Items come sorted by key, each key and each cart once, as JSON with the fields of claim_item.
--
-- Outcomes per item: `claimed`; `known` (the key has an attempt; also where an earlier call, whose answer was lost, has
-- claimed it with this token); `refused` and `cart_taken` (nothing stored, the key is free); `again` (what stood in the
-- way has gone meanwhile: call again). `detail` says of a claimed one what only this function knows of its order.
CREATE FUNCTION claim_checkouts(p_tenant text, p_items jsonb, p_lease_ms double precision, p_expiry_ms double precision)
RETURNS TABLE (item_key text, outcome text, refusal text, detail jsonb, attempt jsonb, response_body text, order_row jsonb)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
  v_items claim_item[] := ARRAY(SELECT i FROM jsonb_populate_recordset(NULL::claim_item, p_items) AS i);
  v_keys text[] := ARRAY(SELECT i.key FROM unnest(v_items) AS i);
  v_won text[];
  v_gone text[];
  v_skus text[];
  v_catalog jsonb;
  v_stock jsonb;
  v_for_sale bigint;
  v_quotes claim_quote[];
  v_refused claim_quote[];
  v_lease_ends timestamptz;
BEGIN
  -- Keys that have been seen: a repeat ends here, having read one index and written nothing.
  RETURN QUERY
    SELECT k.item_key, 'known', NULL, NULL::jsonb, k.attempt, k.response_body, k.order_row
    FROM read_attempts(p_tenant, v_keys) k;
  IF FOUND THEN
    v_items := items_without(v_items, ARRAY(
      SELECT a.key FROM attempts a WHERE a.tenant_id = p_tenant AND a.key = ANY (v_keys)));
    IF v_items = '{}' THEN RETURN; END IF;
  END IF;

  -- Refuse without a write or a lock what is unknown or sold out: a sold-out product stays cheap to ask for.
  v_skus := ARRAY(SELECT DISTINCT s FROM unnest(v_items) AS i, unnest(i.skus) AS s);
  SELECT jsonb_object_agg(p.sku, jsonb_build_object('name', p.name, 'unit_price', p.unit_price, 'currency', p.currency)),
         jsonb_object_agg(p.sku, p.available), coalesce(count(*) FILTER (WHERE p.available > 0), 0)
    INTO v_catalog, v_stock, v_for_sale
    FROM products p WHERE p.tenant_id = p_tenant AND p.sku = ANY (v_skus);
  IF v_for_sale < cardinality(v_skus) THEN
    v_refused := refused_items(v_items, quote_items(v_items, v_catalog), v_stock);
    RETURN QUERY SELECT q.item_key, 'refused', q.refusal, q.refusal_detail, NULL::jsonb, NULL, NULL::jsonb
      FROM unnest(v_refused) q;
    v_items := items_without(v_items, ARRAY(SELECT q.item_key FROM unnest(v_refused) q));
    IF v_items = '{}' THEN RETURN; END IF;
    v_skus := ARRAY(SELECT DISTINCT s FROM unnest(v_items) AS i, unnest(i.skus) AS s);
  END IF;

  -- Keys, in order.
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
    -- Twins in another process came first and have committed, or have gone again.
    v_gone := ARRAY(SELECT i.key FROM unnest(v_items) AS i WHERE i.key <> ALL (v_won));
    RETURN QUERY
      SELECT k, CASE WHEN r.item_key IS NULL THEN 'again' ELSE 'known' END,
             NULL, NULL::jsonb, r.attempt, r.response_body, r.order_row
      FROM unnest(v_gone) AS k LEFT JOIN read_attempts(p_tenant, v_gone) r ON r.item_key = k;
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
  SELECT jsonb_object_agg(p.sku, jsonb_build_object('name', p.name, 'unit_price', p.unit_price, 'currency', p.currency)),
         jsonb_object_agg(p.sku, p.available)
    INTO v_catalog, v_stock
    FROM (SELECT * FROM products p WHERE p.tenant_id = p_tenant AND p.sku = ANY (v_skus)
          ORDER BY p.sku FOR NO KEY UPDATE) p;
  v_quotes := quote_items(v_items, v_catalog);

  -- The walk over the items is needed only where something is refused or short.
  IF EXISTS (SELECT FROM unnest(v_quotes) q WHERE q.refusal IS NOT NULL)
    OR EXISTS (SELECT FROM unnest(v_items) i, unnest(i.skus, i.quantities) AS d(sku, quantity)
               GROUP BY d.sku HAVING sum(d.quantity) > (v_stock->>d.sku)::bigint) THEN
    v_refused := refused_items(v_items, v_quotes, v_stock);
    RETURN QUERY SELECT q.item_key, 'refused', q.refusal, q.refusal_detail, NULL::jsonb, NULL, NULL::jsonb
      FROM unnest(v_refused) q;
    v_gone := ARRAY(SELECT q.item_key FROM unnest(v_refused) q);
    DELETE FROM carts c WHERE c.tenant_id = p_tenant AND c.cart_id = ANY (ARRAY(
      SELECT i.cart_id FROM unnest(v_items) AS i WHERE i.cart_id IS NOT NULL AND i.key = ANY (v_gone)));
    DELETE FROM attempts a WHERE a.tenant_id = p_tenant AND a.key = ANY (v_gone);
    v_items := items_without(v_items, v_gone);
    IF v_items = '{}' THEN RETURN; END IF;
  END IF;

  -- Everything is decided: write. The joins are with arrays of a few items; the tables are read by whole keys.
  UPDATE products p SET available = p.available - d.quantity, updated_at = now()
    FROM (SELECT d.sku, sum(d.quantity) AS quantity
          FROM unnest(v_items) i, unnest(i.skus, i.quantities) AS d(sku, quantity) GROUP BY d.sku) d
    WHERE p.tenant_id = p_tenant AND p.sku = ANY (v_skus) AND d.sku = p.sku;

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
    WITH made AS (
      INSERT INTO orders AS o (tenant_id, order_id, attempt_key, kind, status, currency, total, capture, lines,
        customer_id, cart_id, shipping_address, metadata, payment_method, provider_account, connected_account, livemode,
        api_version, parameter_version, last_send_before, next_ask_at, expires_at)
      SELECT p_tenant, i.order_id, i.key, i.kind, 'pending', q.currency, q.total, i.capture, q.lines,
        coalesce((SELECT c.customer_id FROM customers c WHERE c.tenant_id = p_tenant AND c.email = i.email), claim_again()),
        i.cart_id, i.shipping_address, i.metadata, i.payment_method, i.account, i.connected_account,
        i.livemode, i.api_version, i.parameter_version, v_lease_ends, v_lease_ends,
        clock_timestamp() + p_expiry_ms * interval '1 ms'
      FROM unnest(v_items) AS i JOIN unnest(v_quotes) q ON q.item_key = i.key
      RETURNING o.*
    )
    SELECT made.attempt_key, 'claimed', NULL,
      jsonb_build_object('currency', made.currency, 'total', made.total, 'lines', made.lines,
        'customer_id', made.customer_id, 'last_send_before', made.last_send_before, 'expires_at', made.expires_at,
        'created_at', made.created_at),
      NULL::jsonb, NULL, NULL::jsonb
    FROM made;
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
        -- Found again when the lease ends, should its holder die. An order that waits is asked about at its own pauses.
        next_ask_at = CASE WHEN o.status = 'pending' THEN greatest(o.next_ask_at, v_ends) ELSE o.next_ask_at END
      WHERE o.tenant_id = p_tenant AND o.order_id = p_order_id
      RETURNING v_state, to_jsonb(o);
END
$$;
