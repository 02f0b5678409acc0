-- Every HTTP call made to the provider for an order, also those that brought nothing.
CREATE TABLE provider_calls (
  tenant_id text COLLATE "C" NOT NULL,
  order_id text COLLATE "C" NOT NULL,
  call_id uuid NOT NULL DEFAULT gen_random_uuid(),
  operation text COLLATE "C" NOT NULL,
  request_id text,
  outcome text COLLATE "C" NOT NULL,
  http_status smallint,
  error_code text,
  duration_ms integer NOT NULL,
  -- The provider said that it repeated a stored answer.
  replayed boolean NOT NULL,
  started_at timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, order_id, call_id)
);

-- Double entry: money moves from the credited to the debited account when it moves at the provider. A business fact
-- is booked once.
CREATE TABLE ledger_transfers (
  tenant_id text COLLATE "C" NOT NULL,
  transfer_id text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  business_id text COLLATE "C" NOT NULL,
  debit_account text COLLATE "C" NOT NULL,
  credit_account text COLLATE "C" NOT NULL,
  -- Minor units.
  amount bigint NOT NULL CONSTRAINT transfer_moves_something CHECK (amount > 0),
  currency text COLLATE "C" NOT NULL,
  order_id text COLLATE "C" NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, transfer_id),
  CONSTRAINT transfer_per_business_fact UNIQUE (tenant_id, kind, business_id),
  CONSTRAINT transfer_between_two_accounts CHECK (debit_account <> credit_account)
);
CREATE INDEX ledger_transfers_by_order ON ledger_transfers (tenant_id, order_id);
