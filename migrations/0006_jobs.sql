-- Work that follows from a fact, written in the fact's own transaction (outbox). One row per business fact and topic:
-- what is done stays until its retention, so a redelivered fact finds its row.
CREATE TABLE jobs (
  tenant_id text COLLATE "C" NOT NULL,
  topic text COLLATE "C" NOT NULL,
  business_id text COLLATE "C" NOT NULL,
  -- Ids and amounts only, never personal data.
  payload jsonb NOT NULL DEFAULT '{}',
  state text COLLATE "C" NOT NULL DEFAULT 'ready' CONSTRAINT job_state_is_known CHECK (state IN ('ready', 'done', 'dead', 'discarded')),
  -- Taking a job moves it past the lease, so that a crashed worker's job comes back by itself.
  run_at timestamptz NOT NULL DEFAULT now(),
  -- Runs that were begun; a worker that dies counts.
  attempts integer NOT NULL DEFAULT 0,
  -- Whoever took it last may end it, and nobody else; null where nobody works on it.
  lease_token uuid,
  -- From a closed vocabulary, never free text.
  last_error text,
  created_at timestamptz NOT NULL DEFAULT now(),
  finished_at timestamptz,
  PRIMARY KEY (tenant_id, topic, business_id)
  -- A queue changes every row it has: vacuum by what changed, not by what has piled up.
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);

-- The way from tenant to tenant among those with work of a topic, and within one to what is due first.
CREATE INDEX jobs_ready ON jobs (topic, tenant_id, run_at) WHERE state = 'ready';
-- For the person who decides about them.
CREATE INDEX jobs_given_up ON jobs (tenant_id, topic, business_id) WHERE state IN ('dead', 'discarded');
-- The sweep's way to what is old.
CREATE INDEX jobs_finished ON jobs (finished_at) WHERE state IN ('done', 'discarded');

-- Take due jobs, going from tenant to tenant among those that have some: each gets a share before one gets more, so that
-- one with a long queue makes nobody else wait. The walk hops over the index and looks at no more than p_tenants_max
-- tenants a topic; `next_after` is where the next walk begins, '' after the last tenant.
--
-- Lanes: [{topic, slots, share, after, busy: {tenant: running}}]. The last row of each lane has no job. No plan depends
-- on statistics: only one index has each order that is asked for, and what is taken is fetched by its whole key.
CREATE FUNCTION take_jobs(p_lanes jsonb, p_token uuid, p_lease_ms double precision, p_tenants_max integer)
RETURNS TABLE (lane text, next_after text, job jsonb)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
DECLARE
  -- A variable, because a volatile function's value cannot bound an index scan.
  v_now timestamptz := clock_timestamp();
  v_lease_ends timestamptz := clock_timestamp() + p_lease_ms * interval '1 ms';
  v_lane record;
  v_tenant text;
  v_next record;
  v_left integer;
  v_share integer;
  v_job jsonb;
BEGIN
  FOR v_lane IN
    SELECT * FROM jsonb_to_recordset(p_lanes) AS l(topic text, slots integer, share integer, after text, busy jsonb)
  LOOP
    v_tenant := v_lane.after;
    v_left := v_lane.slots;
    FOR v_seen IN 1 .. p_tenants_max LOOP
      EXIT WHEN v_left <= 0;
      SELECT j.topic, j.tenant_id INTO v_next FROM jobs j
        WHERE j.state = 'ready' AND (j.topic, j.tenant_id) > (v_lane.topic, v_tenant)
        ORDER BY j.topic, j.tenant_id LIMIT 1;
      IF v_next.topic IS DISTINCT FROM v_lane.topic THEN
        v_tenant := '';
        EXIT;
      END IF;
      v_tenant := v_next.tenant_id;
      v_share := least(v_left, v_lane.share - coalesce((v_lane.busy->>v_tenant)::integer, 0));
      CONTINUE WHEN v_share <= 0;
      FOR v_job IN
        UPDATE jobs AS taken SET run_at = v_lease_ends, lease_token = p_token, attempts = taken.attempts + 1
          WHERE taken.tenant_id = v_tenant AND taken.topic = v_lane.topic
            AND taken.business_id = ANY (ARRAY(
              SELECT j.business_id FROM jobs j
              WHERE j.state = 'ready' AND j.topic = v_lane.topic AND j.tenant_id = v_tenant AND j.run_at <= v_now
              ORDER BY j.run_at LIMIT v_share FOR NO KEY UPDATE SKIP LOCKED))
          RETURNING to_jsonb(taken)
      LOOP
        v_left := v_left - 1;
        lane := v_lane.topic; next_after := v_tenant; job := v_job;
        RETURN NEXT;
      END LOOP;
    END LOOP;
    lane := v_lane.topic; next_after := v_tenant; job := NULL;
    RETURN NEXT;
  END LOOP;
END
$$;
