-- The public views: stable names, documented column by column in docs/tables.md.

CREATE VIEW sessions AS
SELECT t.session_id, s.parent_session_id, t.namespace, 'talos' AS source, s.project, coalesce(t.persona, s.agent) AS agent,
       coalesce(s.model, (SELECT arg_max(m.model, m.occurred_at) FROM model_calls m
                          WHERE m.namespace = t.namespace AND m.session_id = t.session_id)) AS model,
       t.goal, coalesce(t.summary, s.summary) AS summary, t.started_at, t.ended_at, t.duration_seconds::DOUBLE AS duration_s
FROM talos_sessions t
LEFT JOIN telemetry_sessions s ON s.namespace = t.namespace AND s.session_id = t.session_id
UNION ALL
SELECT session_id, parent_session_id, namespace, source, project, agent, model, goal, summary, started_at, ended_at,
       epoch_us(ended_at - started_at) / 1e6 AS duration_s
FROM telemetry_sessions s
WHERE NOT EXISTS (FROM talos_sessions t WHERE t.namespace = s.namespace AND t.session_id = s.session_id);

CREATE VIEW journal AS
SELECT entry_id, category, content, session_id, domain, confidence, created_at, namespace, event_id, topic, partition, "offset"
FROM talos_journal;

CREATE VIEW entities_live AS
SELECT e.* FROM entities e
WHERE NOT EXISTS (FROM merges m WHERE m.namespace = e.namespace AND m.record_id = e.entity_id);

CREATE VIEW frictions AS
SELECT e.entity_id AS friction_id, e.text AS description, e.category, e.session_id, coalesce(e.is_blocking, false) AS is_blocking,
       coalesce(m.into_id, e.entity_id) AS canonical_id, coalesce(m.merge_count, 1) AS occurrence,
       coalesce(c.record_count, 1) AS recurrence_count, e.created_at, e.namespace, e.source_event_id
FROM entities e
LEFT JOIN merges m ON m.namespace = e.namespace AND m.record_id = e.entity_id
LEFT JOIN clusters c ON c.namespace = e.namespace AND c.canonical_id = coalesce(m.into_id, e.entity_id)
WHERE e.label = 'Friction';

CREATE VIEW friction_recurrence AS
SELECT namespace, canonical_id, any_value(category) AS category, arg_min(description, created_at) AS description,
       count(*) AS recurrence_count, count(DISTINCT session_id) AS session_count, min(created_at) AS first_seen_at, max(created_at) AS last_seen_at
FROM frictions GROUP BY namespace, canonical_id;

CREATE VIEW memories AS
SELECT j.entry_id AS memory_id, j.category AS kind, 'talos' AS toolset, j.session_id, j.content AS text, j.created_at,
       j.created_at AS valid_from, NULL::TIMESTAMP AS valid_until, NULL::VARCHAR AS superseded_by, true AS is_live,
       j.event_id AS source_event_id, j.namespace
FROM talos_journal j
UNION ALL
SELECT e.entity_id, e.label, 'talos', e.session_id, e.text, e.created_at, e.created_at, m.merged_at, m.into_id, m.record_id IS NULL,
       e.source_event_id, e.namespace
FROM entities e LEFT JOIN merges m ON m.namespace = e.namespace AND m.record_id = e.entity_id;

CREATE VIEW tool_call_latencies AS
SELECT namespace, tool_name, count(*) AS calls, count(*) FILTER (is_error) AS errors,
       count(*) FILTER (is_error)::DOUBLE / count(*) AS error_rate,
       quantile_cont(duration_ms, 0.5) AS p50_ms, quantile_cont(duration_ms, 0.95) AS p95_ms, quantile_cont(duration_ms, 0.99) AS p99_ms
FROM tool_calls GROUP BY namespace, tool_name;

CREATE VIEW model_usage AS
SELECT namespace, model, count(*) AS calls, sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
       sum(cache_read_tokens) AS cache_read_tokens, sum(cache_creation_tokens) AS cache_creation_tokens, sum(cost_usd) AS cost_usd
FROM model_calls GROUP BY namespace, model;

-- every offset that the materialiser has passed, and what became of it
CREATE VIEW offsets_accounted AS
SELECT topic, partition, "offset", 'applied' AS fate FROM events
UNION ALL SELECT topic, partition, "offset", 'duplicate' FROM duplicates
UNION ALL SELECT topic, partition, "offset", 'dead_letter' FROM dead_letters WHERE stage = 'materialise';

-- from which record of the log, which request and which call each memory comes
CREATE VIEW memory_origins AS
SELECT m.memory_id, m.kind, m.toolset, m.text, m.created_at, m.namespace, m.source_event_id,
       e.source, e.event_type, e.topic, e.partition, e."offset", o.request_id, o.status, i.invocation_id, i.tool_name, i.session_id
FROM memories m
LEFT JOIN events e ON e.namespace = m.namespace AND e.event_id = m.source_event_id
LEFT JOIN outcomes o ON o.namespace = m.namespace AND o.event_id = m.source_event_id
LEFT JOIN (SELECT namespace, request_id, arg_min(invocation_id, started_at) AS invocation_id, arg_min(tool_name, started_at) AS tool_name,
                  arg_min(session_id, started_at) AS session_id
           FROM invocations WHERE request_id IS NOT NULL GROUP BY namespace, request_id) i
       ON i.namespace = o.namespace AND i.request_id = o.request_id;

-- what happened in a session, in one column of moments
CREATE VIEW session_timeline AS
SELECT namespace, session_id, occurred_at, 'event' AS kind, event_type AS name, text AS detail, event_id AS id FROM session_events
UNION ALL SELECT namespace, session_id, started_at, 'tool_call', tool_name, coalesce(error_type, 'ok'), tool_call_id FROM tool_calls
UNION ALL SELECT namespace, session_id, occurred_at, 'model_call', model, NULL, message_id FROM model_calls
UNION ALL SELECT namespace, session_id, occurred_at, 'state', to_state, "trigger", event_id FROM state_changes
UNION ALL SELECT namespace, session_id, created_at, 'memory', kind, text, memory_id FROM memories WHERE session_id IS NOT NULL;

-- how far the store itself has come, and how far each processing stage
CREATE VIEW positions AS SELECT topic, partition, next_offset FROM progress WHERE stage = 'materialise';
CREATE VIEW stage_positions AS SELECT stage, topic, partition, next_offset FROM progress WHERE stage <> 'materialise';

-- how far each processing stage is behind what is applied
CREATE VIEW stage_lag AS
SELECT s.stage, s.topic, s.partition, s.next_offset, coalesce(p.next_offset, 0) AS applied_next_offset,
       greatest(coalesce(p.next_offset, 0) - s.next_offset, 0) AS records_behind
FROM stage_positions s LEFT JOIN positions p ON p.topic = s.topic AND p.partition = s.partition;

-- which tools a session used, and how well it went (USED)
CREATE VIEW session_tool_usage AS
SELECT namespace, session_id, tool_name, count(*) AS calls, count(*) FILTER (NOT is_error)::DOUBLE / count(*) AS success_rate
FROM tool_calls GROUP BY namespace, session_id, tool_name;

-- which states a session was in, and for how much of its time (EXPERIENCED_STATE): a state lasts until the next, the last to the end
CREATE VIEW session_states AS
WITH spans AS (
    SELECT c.namespace, c.session_id, c.to_state AS state, c.category, c.intensity, s.duration_s,
           epoch_us(coalesce(lead(c.occurred_at) OVER (PARTITION BY c.namespace, c.session_id ORDER BY c.occurred_at), s.ended_at)
                    - c.occurred_at) / 1e6 AS state_s
    FROM state_changes c JOIN sessions s ON s.namespace = c.namespace AND s.session_id = c.session_id)
SELECT namespace, session_id, state, any_value(category) AS category, avg(intensity) AS intensity, sum(state_s) AS state_s,
       sum(state_s) / nullif(any_value(duration_s), 0) AS duration_fraction
FROM spans GROUP BY namespace, session_id, state;

-- what several sessions have shown: two make an emerging signal, the third a pattern, the fifth confirms it
CREATE VIEW signals AS
SELECT namespace, signal_id, any_value(description) AS description, any_value(indicators) AS indicators,
       count(*) AS occurrences, min(signalled_at) AS first_signalled_at, max(signalled_at) AS last_signalled_at
FROM pattern_signals GROUP BY namespace, signal_id;

CREATE VIEW patterns AS
SELECT namespace, signal_id AS pattern_id, description AS name, CASE WHEN occurrences >= 5 THEN 'confirmed' ELSE 'emerging' END AS status,
       occurrences AS total_occurrences, indicators, first_signalled_at AS first_noticed_at, last_signalled_at AS last_occurred_at
FROM signals WHERE occurrences >= 3;
