-- What others are told of an order: the customer by email, the merchant by signed events.

-- One row per email that an order calls for, claimed before the send: an email goes out at most once. Neither address
-- nor text is kept; both are made from the order when it is sent.
CREATE TABLE emails (
  tenant_id text COLLATE "C" NOT NULL,
  order_id text COLLATE "C" NOT NULL,
  -- The order's transition that it tells of, with the refund's id where it is a refund.
  kind text COLLATE "C" NOT NULL,
  -- waiting: to be sent. sending: claimed; a process that dies now may have sent it. sent: the mail server has taken it.
  -- uncertain: nobody knows, a person decides. skipped: nothing to send it with or to. failed: the mail server refused it.
  state text COLLATE "C" NOT NULL CONSTRAINT email_state_is_known
    CHECK (state IN ('waiting', 'sending', 'sent', 'uncertain', 'skipped', 'failed')),
  -- Why it is in that state, from a closed vocabulary.
  reason text COLLATE "C",
  -- Minor units given back, where it tells of a refund.
  amount bigint,
  -- Of who claimed it last: only they know what became of it.
  claim_token uuid,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, order_id, kind)
);
CREATE INDEX emails_to_decide ON emails (tenant_id, order_id, kind) WHERE state IN ('uncertain', 'failed');

-- Where a tenant wants its events.
CREATE TABLE webhook_endpoints (
  tenant_id text COLLATE "C" PRIMARY KEY,
  url text NOT NULL,
  -- Needed as it is to sign. The one before it signs too while the receiver changes over.
  secret text NOT NULL,
  previous_secret text,
  previous_secret_until timestamptz,
  -- To the minute: shows that it works, and whether a failure is the endpoint's or the event's.
  last_success_at timestamptz,
  disabled_at timestamptz,
  disabled_reason text COLLATE "C",
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT endpoint_disabled_with_reason CHECK ((disabled_at IS NULL) = (disabled_reason IS NULL))
);

-- Events for merchants, one per order and transition, with the bytes that are sent: the same on every delivery.
CREATE TABLE merchant_events (
  tenant_id text COLLATE "C" NOT NULL,
  event_id text COLLATE "C" NOT NULL,
  order_id text COLLATE "C" NOT NULL,
  type text COLLATE "C" NOT NULL,
  -- The transition, with the refund's or dispute's id where there is one.
  transition text COLLATE "C" NOT NULL,
  body text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, event_id),
  CONSTRAINT event_per_order_and_transition UNIQUE (tenant_id, order_id, transition)
);
-- The sweep's way to what is old.
CREATE INDEX merchant_events_by_age ON merchant_events (created_at);

-- Every attempt to deliver one, also those that came to nothing.
CREATE TABLE event_deliveries (
  tenant_id text COLLATE "C" NOT NULL,
  -- Sorts by time.
  delivery_id text COLLATE "C" NOT NULL,
  event_id text COLLATE "C" NOT NULL,
  attempt integer NOT NULL,
  delivered boolean NOT NULL,
  http_status smallint,
  -- From a closed vocabulary.
  error text COLLATE "C",
  duration_ms integer NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, delivery_id)
);
CREATE INDEX event_deliveries_by_event ON event_deliveries (tenant_id, event_id);
