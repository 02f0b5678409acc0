-- Work that follows from a fact, written in the fact's own transaction (outbox). One row per business fact and topic
-- for good: what is done stays until retention, so a redelivered fact finds its row.
CREATE TABLE jobs (
  tenant_id text COLLATE "C" NOT NULL,
  topic text COLLATE "C" NOT NULL,
  business_id text COLLATE "C" NOT NULL,
  -- Ids only, never personal data.
  payload jsonb NOT NULL DEFAULT '{}',
  state text COLLATE "C" NOT NULL DEFAULT 'ready' CONSTRAINT job_state_is_known CHECK (state IN ('ready', 'done', 'dead', 'discarded')),
  run_at timestamptz NOT NULL DEFAULT now(),
  attempts integer NOT NULL DEFAULT 0,
  lease_token uuid,
  last_error text,
  created_at timestamptz NOT NULL DEFAULT now(),
  finished_at timestamptz,
  PRIMARY KEY (tenant_id, topic, business_id)
) WITH (fillfactor = 70);
-- Taking a job moves its run_at past the lease, so that a crashed worker's job comes back by itself.
CREATE INDEX jobs_ready ON jobs (run_at) WHERE state = 'ready';
