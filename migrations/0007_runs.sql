-- Metered work: a hold placed first, usage recorded against it, captured once at the end. Only quantities are kept, never
-- what the work was about.

-- What usage costs. A change holds for what is recorded after it.
CREATE TABLE meters (
  tenant_id text COLLATE "C" NOT NULL,
  meter_type text COLLATE "C" NOT NULL,
  -- `price` minor units for every `per` units.
  price bigint NOT NULL CONSTRAINT meter_price_is_not_negative CHECK (price >= 0),
  per bigint NOT NULL CONSTRAINT meter_counts_in_whole_units CHECK (per >= 1),
  currency text COLLATE "C" NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, meter_type)
);

-- A run is an order of the kind `run`, whose total is the hold; its public id is the order's with another prefix. Usage
-- and the end of a run are decided under the order's row lock.
CREATE TABLE runs (
  tenant_id text COLLATE "C" NOT NULL,
  order_id text COLLATE "C" NOT NULL,
  -- From here on no usage is taken, and what was used is what will be captured.
  closed_at timestamptz,
  closed_by text COLLATE "C" CONSTRAINT run_closing_is_known CHECK (closed_by IN ('finalize', 'expiry')),
  -- When a worker looks at it next: at its expiry, and after it was closed until it is finished.
  next_look_at timestamptz NOT NULL,
  looks integer NOT NULL DEFAULT 0,
  -- The order has ended, and what could not be captured is booked.
  finished_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, order_id)
);
CREATE INDEX runs_unfinished ON runs (next_look_at) WHERE finished_at IS NULL;

-- One line per run and meter, priced when it was recorded.
CREATE TABLE usage_lines (
  tenant_id text COLLATE "C" NOT NULL,
  order_id text COLLATE "C" NOT NULL,
  meter_type text COLLATE "C" NOT NULL,
  quantity bigint NOT NULL CONSTRAINT usage_is_not_negative CHECK (quantity >= 0),
  price bigint NOT NULL,
  per bigint NOT NULL,
  -- Minor units, rounded half up once.
  amount bigint NOT NULL CONSTRAINT usage_costs_nothing_or_more CHECK (amount >= 0),
  -- The run's usage up to and with this line, as its first answer said.
  used_after bigint NOT NULL,
  -- Within the row lock, so that lines sort as they were recorded.
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (tenant_id, order_id, meter_type)
);
