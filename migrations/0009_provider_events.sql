-- The inbox: every notification of the provider once, however often it is delivered. Of an event stands here what is
-- used of it (ids, type, status, amounts) and nothing of a person.
--
-- A global table: an event is unique at the provider, and whose it is may not be known before the provider is asked.
CREATE TABLE provider_events (
  provider text COLLATE "C" NOT NULL,
  event_id text COLLATE "C" NOT NULL,
  type text COLLATE "C" NOT NULL,
  -- The connected account that it is about, or null for the credentials' own.
  account text COLLATE "C",
  livemode boolean NOT NULL,
  created_at timestamptz NOT NULL, -- by the provider's clock
  -- What it is about. Not `readable`: in a form or currency that we do not know, then only ids are given.
  object text COLLATE "C" NOT NULL,
  readable boolean NOT NULL,
  intent_id text COLLATE "C",
  charge_id text COLLATE "C",
  refund_id text COLLATE "C",
  dispute_id text COLLATE "C",
  status text COLLATE "C", -- the object's, at the time of the event
  amount bigint, -- minor units
  amount_captured bigint,
  currency text COLLATE "C",
  decline_code text COLLATE "C",
  -- As the object's metadata says, or the provider when asked; of a foreign event whatever it claims.
  tenant_id text COLLATE "C",
  order_id text COLLATE "C",

  -- waiting: accepted, its job has still to be done. done: its news has been used. ignored: of a type that we do not use.
  -- foreign: not about an order of ours. mismatched: about one of ours, but it is not what our books or the provider say.
  state text COLLATE "C" NOT NULL CONSTRAINT event_state_is_known
    CHECK (state IN ('waiting', 'done', 'ignored', 'foreign', 'mismatched')),
  -- What came of it, or why nothing did.
  reason text COLLATE "C",
  -- Whole milliseconds, as the cursor of a list carries them.
  received_at timestamptz NOT NULL DEFAULT date_trunc('milliseconds', clock_timestamp()),
  handled_at timestamptz,
  PRIMARY KEY (provider, event_id)
);

-- Newest first for the list, oldest first for the sweep.
CREATE INDEX provider_events_by_receipt ON provider_events (received_at, event_id);
-- The story of an order.
CREATE INDEX provider_events_by_order ON provider_events (tenant_id, order_id) WHERE order_id IS NOT NULL;
