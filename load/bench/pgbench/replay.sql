-- The one read of a replay; the keys are stored before the run.
\set n random(1, 1000)
SELECT state, response_status, response_body, digest FROM attempts WHERE tenant_id = 'ten_demo' AND key = 'replay-' || :n;
