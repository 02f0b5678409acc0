-- What happens to money after it was promised: the end of a hold, refunds, disputes.

-- How a hold ends, decided once per order under the order's row lock. A different ending finds this row and is refused.
CREATE TABLE hold_endings (
  tenant_id text COLLATE "C" NOT NULL,
  order_id text COLLATE "C" NOT NULL,
  action text COLLATE "C" NOT NULL CONSTRAINT hold_ending_is_known CHECK (action IN ('capture', 'cancel')),
  -- Minor units to capture; 0 where the hold is let go.
  amount bigint NOT NULL,
  -- Why it has not ended yet; null while its first owner may still be at it.
  doubt text COLLATE "C",
  -- The order has ended, this way or another.
  ended_at timestamptz,
  -- When the provider may next be asked to do it.
  next_ask_at timestamptz NOT NULL,
  asks integer NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, order_id),
  CONSTRAINT hold_ending_captures_something CHECK ((action = 'capture') = (amount > 0))
);
CREATE INDEX hold_endings_open ON hold_endings (next_ask_at) WHERE ended_at IS NULL;
-- Holds that can have lapsed at the provider.
CREATE INDEX orders_on_hold ON orders (capture_before) WHERE status = 'authorized';

-- One row per refund, reserved on the order's budget before the provider is asked, and bound to the provider's refund
-- once it is known.
CREATE TABLE refunds (
  tenant_id text COLLATE "C" NOT NULL,
  refund_id text COLLATE "C" NOT NULL,
  order_id text COLLATE "C" NOT NULL,
  -- The idempotency key that asked for it; null where it was made in the provider's dashboard.
  attempt_key text COLLATE "C",
  -- Minor units.
  amount bigint NOT NULL CONSTRAINT refund_gives_something_back CHECK (amount > 0),
  currency text COLLATE "C" NOT NULL,
  -- Free text, so it may hold personal data.
  reason text,
  -- pending: in doubt, or on its way; counts as spent. unsent: surely never reached the provider, and draws on nothing
  -- until its key comes again.
  status text COLLATE "C" NOT NULL CONSTRAINT refund_status_is_known CHECK (status IN ('pending', 'succeeded', 'failed', 'unsent')),
  provider_refund_id text COLLATE "C",
  failure_code text COLLATE "C",
  -- Some call for it may have reached the provider without a definite answer.
  maybe_sent boolean NOT NULL DEFAULT false,
  -- The provider replays a stored failure under our key: only looking up helps.
  send_is_pointless boolean NOT NULL DEFAULT false,
  -- No call for it can have been sent later than this.
  last_send_before timestamptz NOT NULL,
  -- Why it is not settled yet.
  doubt text COLLATE "C",
  -- When the provider may next be asked about it; shared by the worker and repeats.
  next_ask_at timestamptz NOT NULL,
  asks integer NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, refund_id),
  CONSTRAINT refund_per_refund_of_the_provider UNIQUE (tenant_id, provider_refund_id)
);
CREATE INDEX refunds_by_order ON refunds (tenant_id, order_id);
CREATE INDEX refunds_open ON refunds (next_ask_at) WHERE status = 'pending';

-- What is known of each dispute, whatever order its notifications came in.
CREATE TABLE disputes (
  tenant_id text COLLATE "C" NOT NULL,
  -- The provider's id.
  dispute_id text COLLATE "C" NOT NULL,
  order_id text COLLATE "C" NOT NULL,
  amount bigint NOT NULL CONSTRAINT dispute_claims_something CHECK (amount > 0),
  currency text COLLATE "C" NOT NULL,
  -- The furthest that it has come, in the provider's own word.
  status text COLLATE "C" NOT NULL,
  withdrawn boolean NOT NULL DEFAULT false,
  reinstated boolean NOT NULL DEFAULT false,
  -- Draws on the order's budget: opened as more than an inquiry, and not won.
  counts boolean NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, dispute_id)
);
CREATE INDEX disputes_by_order ON disputes (tenant_id, order_id);
