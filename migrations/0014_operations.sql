-- What people do to orders and to personal data, and the comparison of the two sets of books.

-- One line per decision or button of an operator, in the transaction of its effect where that is in Postgres; otherwise
-- written before it as `started`, and completed after it.
CREATE TABLE audit_entries (
  tenant_id text COLLATE "C" NOT NULL,
  -- Sorts by time.
  entry_id text COLLATE "C" NOT NULL,
  -- The label of the API key and the beginning of its hash, or the command line.
  actor text NOT NULL,
  key_id text COLLATE "C",
  request_id text COLLATE "C" NOT NULL,
  action text COLLATE "C" NOT NULL,
  target_type text COLLATE "C" NOT NULL,
  target_id text COLLATE "C" NOT NULL,
  -- Whose personal data the reason may hold.
  order_id text COLLATE "C",
  -- Free text, so it may hold personal data: erased with the customer's.
  reason text,
  -- From a closed vocabulary: `started`, or what came of it.
  outcome text COLLATE "C" NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  ended_at timestamptz,
  PRIMARY KEY (tenant_id, entry_id)
);
CREATE INDEX audit_entries_by_order ON audit_entries (tenant_id, order_id) WHERE order_id IS NOT NULL;

-- The way from a person to their orders. It costs the hot path an index entry at the claim and one at the settle, and saves
-- an erasure the scan of all the tenant's orders. By the customer alone: with the tenant or the order in it, plans of the
-- claim and the settle that know no statistics yet would take it for the primary key and walk over all that the tenant has.
CREATE INDEX orders_by_customer ON orders (customer_id);
-- What waits for a person.
CREATE INDEX orders_to_decide ON orders (tenant_id, order_id)
  WHERE status = 'needs_reconcile' OR reconcile_reason IS NOT NULL;
-- A tenant's part of the inbox, and the part that names no tenant.
CREATE INDEX provider_events_by_tenant ON provider_events (tenant_id, received_at, event_id);
CREATE INDEX event_deliveries_failed ON event_deliveries (tenant_id, delivery_id) WHERE NOT delivered;

-- Wishes to be forgotten. Those of customers with unfinished orders are carried out when these have ended.
CREATE TABLE erasures (
  tenant_id text COLLATE "C" NOT NULL,
  customer_id text COLLATE "C" NOT NULL,
  requested_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  completed_at timestamptz,
  -- When a worker looks at it next; once more after it is complete, for what was claimed at the same moment.
  next_look_at timestamptz,
  looks integer NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant_id, customer_id)
);
CREATE INDEX erasures_to_look_at ON erasures (next_look_at) WHERE next_look_at IS NOT NULL;

-- Comparisons of a period of the provider's books with ours.
CREATE TABLE reports (
  tenant_id text COLLATE "C" NOT NULL,
  report_id text COLLATE "C" NOT NULL,
  period_from timestamptz NOT NULL,
  period_to timestamptz NOT NULL,
  state text COLLATE "C" NOT NULL DEFAULT 'running'
    CONSTRAINT report_state_is_known CHECK (state IN ('running', 'done', 'failed')),
  -- Why it failed, from a closed vocabulary.
  reason text COLLATE "C",
  -- Everything before this has been compared.
  compared_to timestamptz NOT NULL,
  matched bigint NOT NULL DEFAULT 0,
  missing_here bigint NOT NULL DEFAULT 0,
  missing_there bigint NOT NULL DEFAULT 0,
  amount_differs bigint NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  finished_at timestamptz,
  PRIMARY KEY (tenant_id, report_id),
  CONSTRAINT report_period_is_one CHECK (period_from < period_to)
);

-- What a report found wrong: once per order and payment.
CREATE TABLE report_findings (
  tenant_id text COLLATE "C" NOT NULL,
  report_id text COLLATE "C" NOT NULL,
  -- The order, or what stands in its place in the payment's metadata, and the payment where there is one.
  subject text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL
    CONSTRAINT finding_kind_is_known CHECK (kind IN ('missing_here', 'missing_there', 'amount_differs')),
  order_id text COLLATE "C",
  intent_id text COLLATE "C",
  -- Minor units that are kept or held, refunds subtracted: by our books and by the provider's.
  ours bigint,
  theirs bigint,
  currency text COLLATE "C",
  PRIMARY KEY (tenant_id, report_id, subject)
);
