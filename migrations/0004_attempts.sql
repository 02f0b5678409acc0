-- One row per idempotency key and tenant, over all endpoints, inserted before anything lasting. The row outlives the
-- stored answer: a key that ever started an effect never starts a second one.

CREATE TABLE attempts (
  tenant_id text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL CONSTRAINT attempt_kind_is_known CHECK (kind IN ('checkout', 'refund', 'run')),
  -- The order or refund that it made; a run is known by its order.
  object_id text COLLATE "C" NOT NULL,
  -- running: a process works on it under a lease. resumable: surely nothing was sent, the same key goes on.
  -- open: waits for the customer or for the provider's word. settled: the answer is stored.
  state text COLLATE "C" NOT NULL CONSTRAINT attempt_state_is_known CHECK (state IN ('running', 'resumable', 'open', 'settled')),
  -- Whoever holds the token decides for this attempt until the lease ends, by the database's clock.
  lease_token uuid,
  lease_expires_at timestamptz,
  -- HMACs of the request, never the request. Null once the retention is over.
  digest bytea,
  digest_tags jsonb,
  digest_secret_id text,
  -- Status and body byte for byte as first answered.
  response_status smallint,
  response_body text,
  created_at timestamptz NOT NULL DEFAULT now(),
  settled_at timestamptz,
  swept_at timestamptz,
  PRIMARY KEY (tenant_id, key)
) WITH (fillfactor = 50); -- room for the settle's HOT update, which adds the stored answer

-- The sweep's way to what is old. Nothing that the settle changes is in it, so the settle stays a HOT update.
CREATE INDEX attempts_unswept ON attempts (created_at) WHERE swept_at IS NULL;

-- A cart that is being paid or has been paid. The row goes only in the transaction that ends its order unpaid.
CREATE TABLE carts (
  tenant_id text COLLATE "C" NOT NULL,
  cart_id text COLLATE "C" NOT NULL,
  order_id text COLLATE "C" NOT NULL,
  attempt_key text COLLATE "C" NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, cart_id)
);
