-- Events that a person should look at, few among many: those that fit no order of ours, or not what our books say of it.
CREATE INDEX provider_events_strange ON provider_events (tenant_id, received_at, event_id)
  WHERE state IN ('foreign', 'mismatched');
