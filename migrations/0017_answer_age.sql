-- How long ago an attempt was settled: whoever keeps its answer in memory must let it go when its retention ends.
CREATE OR REPLACE FUNCTION read_attempts(p_tenant text, p_keys text[])
RETURNS TABLE (item_key text, attempt jsonb, response_body text, order_row jsonb)
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT a.key,
    jsonb_build_object('kind', a.kind, 'object_id', a.object_id, 'state', a.state, 'lease_token', a.lease_token,
      'lease_remaining_ms', extract(epoch FROM a.lease_expires_at - clock_timestamp()) * 1000,
      'digest', encode(a.digest, 'base64'), 'digest_tags', a.digest_tags, 'digest_secret_id', a.digest_secret_id,
      'response_status', a.response_status, 'swept', a.swept_at IS NOT NULL,
      'settled_ms_ago', extract(epoch FROM clock_timestamp() - a.settled_at) * 1000),
    a.response_body,
    CASE WHEN a.state <> 'settled' THEN
      (SELECT to_jsonb(o) FROM orders o WHERE o.tenant_id = p_tenant AND o.order_id = a.object_id) END
  FROM attempts a
  WHERE a.tenant_id = p_tenant AND a.key = ANY (p_keys);
END
$$;
