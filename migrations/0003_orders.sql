-- Orders and what they follow from. Ids are texts with a type prefix; those made over time sort by it, so the
-- primary key also serves the newest-first listing.

-- One row per person and tenant, so that erasing it reaches every order of theirs.
CREATE TABLE customers (
  tenant_id text COLLATE "C" NOT NULL,
  customer_id text COLLATE "C" NOT NULL,
  email text COLLATE "C", -- null once erased
  name text,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, customer_id),
  CONSTRAINT customer_per_email UNIQUE (tenant_id, email)
);

CREATE TABLE orders (
  tenant_id text COLLATE "C" NOT NULL,
  order_id text COLLATE "C" NOT NULL,
  -- The idempotency key of the attempt that made it: the identity of the charge.
  attempt_key text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL CONSTRAINT order_kind_is_known CHECK (kind IN ('checkout', 'run')),
  status text COLLATE "C" NOT NULL CONSTRAINT order_status_is_known CHECK (status IN
    ('pending', 'requires_action', 'needs_reconcile', 'authorized', 'paid', 'payment_failed', 'canceled')),
  currency text COLLATE "C" NOT NULL,
  total bigint NOT NULL,
  capture text COLLATE "C" NOT NULL CONSTRAINT order_capture_is_known CHECK (capture IN ('automatic', 'manual')),
  -- [{sku, name, quantity, unit_price, amount}] as sold: never read from the catalog again.
  lines jsonb NOT NULL,
  customer_id text COLLATE "C" NOT NULL,
  cart_id text COLLATE "C",
  shipping_address jsonb,
  metadata jsonb,

  -- What every call to the provider for this order uses, fixed by the claim.
  payment_method text NOT NULL,
  provider_account text NOT NULL,
  connected_account text,
  livemode boolean NOT NULL,
  api_version text NOT NULL,
  parameter_version smallint NOT NULL,

  -- What the provider has told of the payment.
  intent_id text COLLATE "C",
  charge_id text COLLATE "C",
  payment_status text COLLATE "C",
  decline_code text,
  client_secret text, -- only while the customer has to act
  capture_before timestamptz,

  -- Money in minor units. Refunds that have not failed and open or lost disputes draw on one budget: `captured`.
  captured bigint NOT NULL DEFAULT 0,
  refunded bigint NOT NULL DEFAULT 0,
  disputed_amount bigint NOT NULL DEFAULT 0,
  disputed boolean NOT NULL DEFAULT false,

  -- Recovery. `maybe_sent`: some call for the charge may have reached the provider without a definite answer.
  maybe_sent boolean NOT NULL DEFAULT false,
  -- The provider replays a stored failure under our key: only looking up helps.
  send_is_pointless boolean NOT NULL DEFAULT false,
  -- No call for the charge can have been sent later than this.
  last_send_before timestamptz NOT NULL,
  cancel_requested_at timestamptz,
  reconcile_reason text COLLATE "C",
  -- When the provider may next be asked about it; shared by recovery, repeats and notifications.
  next_ask_at timestamptz NOT NULL,
  asks integer NOT NULL DEFAULT 0,
  -- When it stops waiting for a customer or a provider.
  expires_at timestamptz NOT NULL,

  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, order_id),
  CONSTRAINT order_refunds_stay_within_captured CHECK (refunded + disputed_amount <= captured),
  CONSTRAINT order_captures_stay_within_total CHECK (captured <= total)
) WITH (fillfactor = 70);

-- What recovery looks for. Settled orders leave it, so it stays as small as what is open.
CREATE INDEX orders_open ON orders (next_ask_at)
  WHERE status IN ('pending', 'requires_action', 'needs_reconcile');

-- One line per change of status, with who brought it: the story of an order, and the proof that each change happened once.
CREATE TABLE order_transitions (
  tenant_id text COLLATE "C" NOT NULL,
  order_id text COLLATE "C" NOT NULL,
  -- An order never returns to a status it has left, but for the two that wait.
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  from_status text COLLATE "C" NOT NULL,
  to_status text COLLATE "C" NOT NULL,
  -- answer, repeat, recovery, notification, expiry, customer, merchant or operator.
  cause text COLLATE "C" NOT NULL,
  -- The request, event or operator that brought it.
  actor text,
  reason text,
  PRIMARY KEY (tenant_id, order_id, at)
);

-- Stock taken and given back: a line moves once per kind, whoever repeats it.
CREATE TABLE stock_movements (
  tenant_id text COLLATE "C" NOT NULL,
  order_id text COLLATE "C" NOT NULL,
  line integer NOT NULL,
  kind text COLLATE "C" NOT NULL CONSTRAINT stock_movement_kind_is_known CHECK (kind IN ('reserve', 'release')),
  sku text COLLATE "C" NOT NULL,
  quantity bigint NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, order_id, line, kind)
);
