-- Valence's conversations. Fed by thalweg.memory.v1 only, but for the last table.
CREATE TABLE vkb_sessions (
    session_id VARCHAR NOT NULL, platform VARCHAR NOT NULL, project_context VARCHAR, status VARCHAR NOT NULL, summary VARCHAR, themes JSON,
    started_at TIMESTAMP NOT NULL, ended_at TIMESTAMP, claude_session_id VARCHAR, external_room_id VARCHAR, metadata JSON,
    source_id VARCHAR NOT NULL, exchange_count BIGINT NOT NULL, last_exchange_id VARCHAR, insight_count BIGINT NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, session_id));
CREATE TABLE vkb_exchanges (
    exchange_id VARCHAR NOT NULL, session_id VARCHAR NOT NULL, sequence BIGINT NOT NULL, role VARCHAR NOT NULL, content VARCHAR NOT NULL,
    tokens_approx BIGINT NOT NULL, tool_uses JSON, created_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL);
CREATE TABLE vkb_patterns (
    pattern_id VARCHAR NOT NULL, type VARCHAR NOT NULL, description VARCHAR NOT NULL, evidence JSON NOT NULL, occurrence_count BIGINT NOT NULL,
    confidence DOUBLE NOT NULL, status VARCHAR NOT NULL, first_observed_at TIMESTAMP NOT NULL, last_observed_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, pattern_id));
CREATE TABLE vkb_session_insights (
    insight_id VARCHAR NOT NULL, session_id VARCHAR NOT NULL, belief_id VARCHAR NOT NULL, exchange_id VARCHAR, extraction_method VARCHAR NOT NULL,
    extracted_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, session_id, belief_id));

-- thalweg.derived.v1: a pattern's ageing, each step once for each last observation
CREATE TABLE vkb_pattern_changes (
    pattern_id VARCHAR NOT NULL, last_observed_at TIMESTAMP NOT NULL, to_status VARCHAR NOT NULL, from_status VARCHAR NOT NULL,
    changed_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, pattern_id, last_observed_at, to_status));

-- turns of conversations, told by a tool or read from a transcript
CREATE VIEW exchanges AS
SELECT exchange_id, session_id, sequence, role, content, tokens_approx, tool_uses, created_at, 'tool' AS origin,
       namespace, topic, partition, "offset", event_id
FROM vkb_exchanges
UNION ALL
SELECT e.event_id, e.session_id, row_number() OVER (PARTITION BY e.namespace, e.session_id ORDER BY e.occurred_at, e."offset", e.idx),
       e.role, coalesce(e.text, ''), (length(coalesce(e.text, '')) + 3) // 4, u.tool_uses, e.occurred_at, 'transcript',
       e.namespace, e.topic, e.partition, e."offset", e.event_id
FROM session_events e
LEFT JOIN (SELECT namespace, event_id, json_group_array(json_object('id', tool_call_id, 'name', tool_name)) AS tool_uses
           FROM tool_calls WHERE tool_name IS NOT NULL GROUP BY namespace, event_id) u
       ON u.namespace = e.namespace AND u.event_id = e.event_id
WHERE e.role IN ('user', 'assistant', 'system') AND (e.text <> '' OR u.tool_uses IS NOT NULL);

-- conversations, begun by a tool or read from a transcript
CREATE VIEW conversations AS
SELECT session_id, platform, project_context, status, summary, themes, started_at, ended_at, claude_session_id, external_room_id, metadata,
       exchange_count, insight_count, 'tool' AS origin, namespace, topic, partition, "offset", event_id
FROM vkb_sessions
UNION ALL
SELECT s.session_id, s.source, s.project, 'completed', s.summary, '[]'::JSON, s.started_at, s.ended_at,
       CASE WHEN s.source = 'claude-code' THEN s.session_id END, NULL,
       json_object('agent', s.agent, 'model', s.model, 'goal', s.goal, 'parent_session_id', s.parent_session_id),
       c.exchange_count, 0, 'transcript', s.namespace, s.topic, s.partition, s."offset", s.event_id
FROM telemetry_sessions s
JOIN (SELECT namespace, session_id, count(*) AS exchange_count FROM exchanges WHERE origin = 'transcript' GROUP BY namespace, session_id) c
  ON c.namespace = s.namespace AND c.session_id = s.session_id;

-- patterns as the stream timer has last found them
CREATE VIEW vkb_patterns_aged AS
SELECT p.* REPLACE (coalesce((SELECT arg_max(c.to_status, c.changed_at) FROM vkb_pattern_changes c
                              WHERE c.namespace = p.namespace AND c.pattern_id = p.pattern_id AND c.last_observed_at = p.last_observed_at),
                             p.status) AS status)
FROM vkb_patterns p;

-- the views over all toolsets, with Valence's conversations
CREATE OR REPLACE VIEW sessions AS
SELECT t.session_id, s.parent_session_id, t.namespace, 'talos' AS source, s.project, coalesce(t.persona, s.agent) AS agent,
       coalesce(s.model, (SELECT arg_max(m.model, m.occurred_at) FROM model_calls m
                          WHERE m.namespace = t.namespace AND m.session_id = t.session_id)) AS model,
       t.goal, coalesce(t.summary, s.summary) AS summary, t.started_at, t.ended_at, t.duration_seconds::DOUBLE AS duration_s
FROM talos_sessions t
LEFT JOIN telemetry_sessions s ON s.namespace = t.namespace AND s.session_id = t.session_id
UNION ALL
SELECT session_id, NULL, namespace, 'valence', project_context, platform, NULL, NULL, summary, started_at, ended_at,
       epoch_us(ended_at - started_at) / 1e6
FROM vkb_sessions
UNION ALL
SELECT session_id, parent_session_id, namespace, source, project, agent, model, goal, summary, started_at, ended_at,
       epoch_us(ended_at - started_at) / 1e6 AS duration_s
FROM telemetry_sessions s
WHERE NOT EXISTS (FROM talos_sessions t WHERE t.namespace = s.namespace AND t.session_id = s.session_id)
  AND NOT EXISTS (FROM vkb_sessions v WHERE v.namespace = s.namespace AND v.session_id = s.session_id);

CREATE OR REPLACE VIEW memories AS
SELECT j.entry_id AS memory_id, j.category AS kind, 'talos' AS toolset, j.session_id, j.content AS text, j.created_at,
       j.created_at AS valid_from, NULL::TIMESTAMP AS valid_until, NULL::VARCHAR AS superseded_by, true AS is_live,
       j.event_id AS source_event_id, j.namespace
FROM talos_journal j
UNION ALL
SELECT e.entity_id, e.label, 'talos', e.session_id, e.text, e.created_at, e.created_at, m.merged_at, m.into_id, m.record_id IS NULL,
       e.source_event_id, e.namespace
FROM entities e LEFT JOIN merges m ON m.namespace = e.namespace AND m.record_id = e.entity_id
UNION ALL
SELECT exchange_id, 'exchange', 'valence', session_id, content, created_at, created_at, NULL, NULL, true, event_id, namespace
FROM vkb_exchanges
UNION ALL
SELECT pattern_id, 'pattern', 'valence', NULL, description, first_observed_at, first_observed_at, NULL, NULL, status <> 'archived',
       event_id, namespace
FROM vkb_patterns_aged
UNION ALL
SELECT b.belief_id, 'belief', 'valence', s.session_id, b.content, b.created_at, coalesce(b.valid_from, b.created_at), b.valid_until,
       b.superseded_by_id, b.closed_at IS NULL, b.created_event_id, b.namespace
FROM valence_beliefs b LEFT JOIN valence_sources s ON s.namespace = b.namespace AND s.source_id = b.source_id
UNION ALL FROM cognitive_memories;

-- each belief back to the exchange, the call and the record that made it, and forward to what it has become.
-- the exchange: the latest of its session before it on the log. A client that names its tool use as the request id
-- (as Claude Code does) leads to the tool call of its transcript, and that to the turn that made the call.
-- A belief of no recorded conversation, stated by a tool call of a transcript, has the turn that made the call, and its session.
CREATE VIEW belief_origins AS
SELECT b.belief_id, b.content, b.extraction_method, coalesce(s.session_id, r.session_id) AS session_id, i.insight_id,
       coalesce(x.exchange_id, r.exchange_id) AS exchange_id, coalesce(x.sequence, r.sequence) AS exchange_sequence,
       coalesce(x.content, r.content) AS exchange_content, o.request_id, c.invocation_id, c.tool_name, t.tool_call_id, t.event_id AS transcript_event_id,
       e.event_type, e.topic, e.partition, e."offset", e.event_id, b.created_at,
       b.status, coalesce(l.successor_id, b.belief_id) AS current_belief_id, coalesce(l.successor_content, b.content) AS current_content,
       coalesce(l.steps, 0) AS supersessions, b.namespace
FROM beliefs b
LEFT JOIN events e ON e.namespace = b.namespace AND e.event_id = b.created_event_id
LEFT JOIN valence_sources s ON s.namespace = b.namespace AND s.source_id = b.source_id
LEFT JOIN vkb_session_insights i ON i.namespace = b.namespace AND i.belief_id = b.belief_id AND i.event_id = b.created_event_id
LEFT JOIN (SELECT a.namespace, a.belief_id, arg_max(y.exchange_id, y.sequence) AS exchange_id
           FROM valence_beliefs a
           JOIN events d ON d.namespace = a.namespace AND d.event_id = a.created_event_id
           JOIN valence_sources z ON z.namespace = a.namespace AND z.source_id = a.source_id
           JOIN vkb_exchanges y ON y.namespace = a.namespace AND y.session_id = z.session_id AND y."offset" < d."offset"
           GROUP BY a.namespace, a.belief_id) n ON n.namespace = b.namespace AND n.belief_id = b.belief_id
LEFT JOIN vkb_exchanges x ON x.namespace = b.namespace AND x.exchange_id = coalesce(i.exchange_id, n.exchange_id)
LEFT JOIN outcomes o ON o.namespace = b.namespace AND o.event_id = b.created_event_id
LEFT JOIN (SELECT namespace, request_id, arg_min(invocation_id, started_at) AS invocation_id, arg_min(tool_name, started_at) AS tool_name
           FROM invocations WHERE request_id IS NOT NULL GROUP BY namespace, request_id) c
       ON c.namespace = o.namespace AND c.request_id = o.request_id
LEFT JOIN tool_calls t ON t.namespace = o.namespace AND t.tool_call_id = o.request_id
LEFT JOIN exchanges r ON r.namespace = t.namespace AND r.exchange_id = t.event_id AND r.origin = 'transcript' AND x.exchange_id IS NULL
LEFT JOIN belief_successors l ON l.namespace = b.namespace AND l.belief_id = b.belief_id AND l.is_current;
