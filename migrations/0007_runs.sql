-- Metered work: a hold placed first, usage recorded against it, captured once at the end.
CREATE TABLE runs (
  tenant_id text COLLATE "C" NOT NULL,
  run_id text COLLATE "C" NOT NULL,
  order_id text COLLATE "C" NOT NULL,
  -- Minor units.
  hold_amount bigint NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, run_id),
  CONSTRAINT run_per_order UNIQUE (tenant_id, order_id)
);
