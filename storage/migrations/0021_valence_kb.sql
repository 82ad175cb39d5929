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
