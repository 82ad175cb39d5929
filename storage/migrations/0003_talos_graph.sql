-- The Talos graph: names that sessions and telemetry bring, what is hidden, how significant a day was; the nodes and edges
-- of the ontology as views, from which the graph projection is built. As before, a table is fed by one topic.

-- thalweg.memory.v1: personas, protocols and humans of sessions
CREATE TABLE talos_names (
    label VARCHAR NOT NULL, name VARCHAR NOT NULL, node_id VARCHAR NOT NULL, created_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, label, name));
-- thalweg.telemetry.v1: tools and operational states of the agents' own telemetry
CREATE TABLE telemetry_names (
    label VARCHAR NOT NULL, name VARCHAR NOT NULL, node_id VARCHAR NOT NULL, category VARCHAR, created_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, label, name));
-- thalweg.derived.v1
CREATE TABLE prunes (
    record_id VARCHAR NOT NULL, reason VARCHAR NOT NULL, pruned_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, record_id));
CREATE TABLE significance (
    day DATE NOT NULL, score INTEGER NOT NULL, level VARCHAR NOT NULL, counts JSON, rated_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, day));
CREATE TABLE signal_evidence (
    signal_id VARCHAR NOT NULL, session_id VARCHAR NOT NULL, relation_type VARCHAR NOT NULL, node_id VARCHAR NOT NULL, created_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL);

-- what is there before the first event, in every namespace (processors/talos/rules/ontology.py; a test compares)
CREATE TABLE preloaded_nodes (node_id VARCHAR PRIMARY KEY, label VARCHAR NOT NULL, name VARCHAR NOT NULL, category VARCHAR);
INSERT INTO preloaded_nodes VALUES
    ('state-clarity-cbb088ab', 'OperationalState', 'clarity', 'cognitive'),
    ('state-confusion-92bb8833', 'OperationalState', 'confusion', 'cognitive'),
    ('state-uncertainty-10a711fe', 'OperationalState', 'uncertainty', 'cognitive'),
    ('state-contextpressure-73c21068', 'OperationalState', 'context_pressure', 'resource'),
    ('state-tokenscarcity-4f54b3d3', 'OperationalState', 'token_scarcity', 'resource'),
    ('state-momentum-7b581ed4', 'OperationalState', 'momentum', 'flow'),
    ('state-stuck-57928133', 'OperationalState', 'stuck', 'flow'),
    ('state-blocked-6b359f3f', 'OperationalState', 'blocked', 'flow'),
    ('state-ontrack-533526e5', 'OperationalState', 'on_track', 'alignment'),
    ('state-drifting-169a1e90', 'OperationalState', 'drifting', 'alignment'),
    ('state-misaligned-7c3ec1bb', 'OperationalState', 'misaligned', 'alignment'),
    ('domain-technical-bf331113', 'Domain', 'technical', NULL),
    ('domain-philosophical-1040214e', 'Domain', 'philosophical', NULL),
    ('domain-operational-2566a71a', 'Domain', 'operational', NULL),
    ('domain-relational-135ab68f', 'Domain', 'relational', NULL),
    ('domain-metacognitive-c5bd95b0', 'Domain', 'meta-cognitive', NULL),
    ('domain-patternrecognition-f48815fd', 'Domain', 'pattern-recognition', NULL),
    ('domain-processimprovement-fb327a55', 'Domain', 'process-improvement', NULL),
    ('domain-consciousnesspractice-fc3ba74f', 'Domain', 'consciousness-practice', NULL),
    ('domain-functionalprogramming-d2cea3f9', 'Domain', 'functional-programming', NULL),
    ('domain-vaultoperations-4af03041', 'Domain', 'vault-operations', NULL),
    ('tool-bash-150383ef', 'Tool', 'bash', 'compute'),
    ('tool-read-51765be1', 'Tool', 'read', 'file'),
    ('tool-write-ec8b7864', 'Tool', 'write', 'file'),
    ('tool-edit-eee386be', 'Tool', 'edit', 'file'),
    ('tool-glob-9d3e71d5', 'Tool', 'glob', 'search'),
    ('tool-grep-ed3e53e6', 'Tool', 'grep', 'search'),
    ('tool-task-56c4d97b', 'Tool', 'task', 'compute'),
    ('tool-webfetch-05aa4dbc', 'Tool', 'webfetch', 'search'),
    ('tool-todowrite-db5cb292', 'Tool', 'todowrite', 'file'),
    ('tool-todoread-977f897d', 'Tool', 'todoread', 'file');

CREATE OR REPLACE VIEW entities_live AS
SELECT e.* FROM entities e
WHERE NOT EXISTS (FROM merges m WHERE m.namespace = e.namespace AND m.record_id = e.entity_id)
  AND NOT EXISTS (FROM prunes p WHERE p.namespace = e.namespace AND p.record_id = e.entity_id);

CREATE OR REPLACE VIEW patterns AS
SELECT namespace, signal_id AS pattern_id, any_value(description) AS name, CASE WHEN count(*) >= 5 THEN 'confirmed' ELSE 'emerging' END AS status,
       count(*) AS total_occurrences, any_value(indicators) AS indicators, min(signalled_at) AS first_noticed_at,
       max(signalled_at) AS last_occurred_at, list_sort(list(signalled_at))[3] AS established_at
FROM pattern_signals GROUP BY namespace, signal_id HAVING count(*) >= 3;

-- a goal is what its sessions made of it: the last close that says so decides, a session opened after it makes it active again
CREATE VIEW goals AS
SELECT namespace, goal_id, arg_min(goal, started_at) AS description, min(started_at) AS created_at,
       CASE WHEN status = 'achieved' THEN any_value(decided_at) END AS completed_at, status, 'session' AS scope
FROM (SELECT s.*, d.decided_at, CASE WHEN d.decided_at IS NULL OR d.newest_at > d.decided_at THEN 'active'
                                     WHEN d.is_achieved THEN 'achieved' ELSE 'abandoned' END AS status
      FROM (SELECT * EXCLUDE (status) FROM talos_sessions) s
      JOIN (SELECT namespace, goal_id, max(ended_at) FILTER (goal_achieved IS NOT NULL) AS decided_at, max(started_at) AS newest_at,
                   arg_max(goal_achieved, ended_at) FILTER (goal_achieved IS NOT NULL) AS is_achieved
            FROM talos_sessions GROUP BY namespace, goal_id) d ON d.namespace = s.namespace AND d.goal_id = s.goal_id)
GROUP BY namespace, goal_id, status;

-- what was live when a session opened (INHERITED)
CREATE VIEW session_inherited AS
SELECT s.namespace, s.session_id, e.entity_id AS node_id, e.label, s.started_at AS inherited_at
FROM talos_sessions s JOIN entities e ON e.namespace = s.namespace AND e.created_at < s.started_at
LEFT JOIN merges m ON m.namespace = e.namespace AND m.record_id = e.entity_id
LEFT JOIN prunes p ON p.namespace = e.namespace AND p.record_id = e.entity_id
WHERE e.label IN ('Belief', 'Insight', 'Pattern', 'Sutra', 'Protocol', 'Limitation', 'Capability')
  AND (m.merged_at IS NULL OR m.merged_at >= s.started_at) AND (p.pruned_at IS NULL OR p.pruned_at >= s.started_at)
UNION ALL
SELECT s.namespace, s.session_id, n.node_id, 'Protocol', s.started_at
FROM talos_sessions s
JOIN (SELECT namespace, node_id, min(created_at) AS created_at FROM talos_names WHERE label = 'Protocol' GROUP BY namespace, node_id) n
  ON n.namespace = s.namespace AND n.created_at < s.started_at
WHERE NOT EXISTS (FROM entities e WHERE e.namespace = n.namespace AND e.entity_id = n.node_id)
UNION ALL
SELECT s.namespace, s.session_id, p.pattern_id, 'Pattern', s.started_at
FROM talos_sessions s JOIN patterns p ON p.namespace = s.namespace AND p.established_at < s.started_at;

-- every node of the ontology; preloaded ones belong to every namespace and have none
CREATE VIEW graph_nodes AS
SELECT e.namespace, e.label, e.entity_id AS node_id, e.text AS name, e.created_at, e.confidence, e.domain, e.category, e.canonical_form,
       to_json(json_merge_patch(coalesce(e.properties, '{}'), json_object(
           'is_live', m.record_id IS NULL AND p.record_id IS NULL, 'recurrence_count', coalesce(c.record_count, 1)))) AS properties
FROM entities e
LEFT JOIN merges m ON m.namespace = e.namespace AND m.record_id = e.entity_id
LEFT JOIN prunes p ON p.namespace = e.namespace AND p.record_id = e.entity_id
LEFT JOIN clusters c ON c.namespace = e.namespace AND c.canonical_id = e.entity_id
UNION ALL
SELECT s.namespace, 'Session', s.session_id, s.goal, s.started_at, NULL, NULL, NULL, NULL, to_json(json_object(
           'started_at', strftime(s.started_at, '%Y-%m-%dT%H:%M:%S.%fZ'), 'ended_at', strftime(s.ended_at, '%Y-%m-%dT%H:%M:%S.%fZ'),
           'duration_seconds', s.duration_seconds, 'token_count', coalesce(k.tokens, 0), 'tool_calls', coalesce(t.calls, 0),
           'goal_achieved', s.goal_achieved, 'summary', s.summary, 'persona', s.persona, 'protocol', s.protocol, 'human', s.human, 'status', s.status))
FROM talos_sessions s
LEFT JOIN (SELECT namespace, session_id, sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0)) AS tokens
           FROM model_calls GROUP BY ALL) k ON k.namespace = s.namespace AND k.session_id = s.session_id
LEFT JOIN (SELECT namespace, session_id, count(*) AS calls FROM tool_calls GROUP BY ALL) t
       ON t.namespace = s.namespace AND t.session_id = s.session_id
UNION ALL
SELECT g.namespace, 'Goal', g.goal_id, g.description, g.created_at, NULL, NULL, NULL, NULL, to_json(json_object(
           'completed_at', strftime(g.completed_at, '%Y-%m-%dT%H:%M:%S.%fZ'), 'status', g.status, 'scope', g.scope))
FROM goals g WHERE NOT EXISTS (FROM entities e WHERE e.namespace = g.namespace AND e.entity_id = g.goal_id)
UNION ALL
SELECT namespace, 'Pattern', pattern_id, name, first_noticed_at, NULL, NULL, NULL, NULL, to_json(json_object(
           'status', status, 'occurrence_count', total_occurrences, 'indicators', indicators,
           'last_occurred', strftime(last_occurred_at, '%Y-%m-%dT%H:%M:%S.%fZ')))
FROM patterns
UNION ALL
SELECT n.namespace, n.label, n.node_id, arg_min(n.name, n.created_at), min(n.created_at), NULL, NULL, any_value(n.category), NULL, NULL
FROM (SELECT namespace, label, node_id, name, NULL AS category, created_at FROM talos_names
      UNION ALL SELECT namespace, label, node_id, name, category, created_at FROM telemetry_names) n
WHERE NOT EXISTS (FROM preloaded_nodes p WHERE p.node_id = n.node_id)
  AND NOT EXISTS (FROM entities e WHERE e.namespace = n.namespace AND e.entity_id = n.node_id)
GROUP BY n.namespace, n.label, n.node_id
UNION ALL
SELECT NULL, label, node_id, name, NULL, NULL, NULL, category, NULL, NULL FROM preloaded_nodes;

-- the edges as they were stated or follow from rows, before merges give copies to the older
CREATE VIEW stated_edges AS
SELECT namespace, relation_type, from_id, to_id, properties, created_at FROM relations
UNION ALL
SELECT r.namespace, 'BLOCKED_BY', s.goal_id, r.to_id, r.properties, r.created_at
FROM relations r JOIN talos_sessions s ON s.namespace = r.namespace AND s.session_id = r.from_id WHERE r.relation_type = 'BLOCKED_BY'
UNION ALL
SELECT namespace, 'SERVES', session_id, goal_id, to_json(json_object('contribution_type', 'direct')), started_at FROM talos_sessions
UNION ALL
SELECT s.namespace, k.relation_type, s.session_id, n.node_id, NULL, s.started_at
FROM talos_sessions s
JOIN (VALUES ('WORKED_WITH', 'Human'), ('ACTIVATED', 'Persona'), ('FOLLOWED', 'Protocol')) k(relation_type, label) ON true
JOIN talos_names n ON n.namespace = s.namespace AND n.label = k.label
     AND n.name = trim(CASE k.label WHEN 'Human' THEN s.human WHEN 'Persona' THEN s.persona ELSE s.protocol END)
UNION ALL
SELECT namespace, 'INHERITED', session_id, node_id, NULL, inherited_at FROM session_inherited
UNION ALL
SELECT u.namespace, 'USED', u.session_id, n.node_id, to_json(json_object('count', sum(u.calls)::BIGINT,
           'success_rate', round(sum(u.calls * u.success_rate) / sum(u.calls), 4))), NULL
FROM session_tool_usage u JOIN telemetry_names n ON n.namespace = u.namespace AND n.label = 'Tool' AND n.name = trim(u.tool_name)
GROUP BY u.namespace, u.session_id, n.node_id
UNION ALL
SELECT u.namespace, 'EXPERIENCED_STATE', u.session_id, n.node_id, to_json(json_object(
           'intensity', avg(u.intensity), 'duration_fraction', round(sum(u.duration_fraction), 4))), NULL
FROM session_states u JOIN telemetry_names n ON n.namespace = u.namespace AND n.label = 'OperationalState' AND n.name = trim(u.state)
GROUP BY u.namespace, u.session_id, n.node_id
UNION ALL
SELECT namespace, 'MERGED_INTO', record_id, into_id, to_json(json_object('merged_at', strftime(merged_at, '%Y-%m-%dT%H:%M:%S.%fZ'))), merged_at
FROM merges
UNION ALL
SELECT s.namespace, 'PRODUCED', s.session_id, s.signal_id,
       to_json(json_object('valid_from', strftime(s.signalled_at, '%Y-%m-%dT%H:%M:%S.%fZ'))), s.signalled_at
FROM pattern_signals s
UNION ALL
SELECT namespace, relation_type, CASE relation_type WHEN 'TRIGGERED_BY' THEN signal_id ELSE node_id END,
       CASE relation_type WHEN 'TRIGGERED_BY' THEN node_id ELSE signal_id END, NULL, created_at
FROM signal_evidence;

-- every edge whose ends exist; what was merged gives copies of its edges to the older one
CREATE VIEW graph_edges AS
WITH ends AS (
    SELECT s.namespace, s.relation_type, s.from_id, s.to_id, s.properties, s.created_at FROM stated_edges s
    UNION ALL
    SELECT s.namespace, s.relation_type, coalesce(f.into_id, s.from_id), coalesce(t.into_id, s.to_id), s.properties, s.created_at
    FROM stated_edges s
    LEFT JOIN merges f ON f.namespace = s.namespace AND f.record_id = s.from_id
    LEFT JOIN merges t ON t.namespace = s.namespace AND t.record_id = s.to_id
    WHERE s.relation_type NOT IN ('MERGED_INTO', 'INHERITED') AND (f.record_id IS NOT NULL OR t.record_id IS NOT NULL))
SELECT e.namespace, e.relation_type, a.label AS from_label, e.from_id, b.label AS to_label, e.to_id,
       arg_min(e.properties, coalesce(e.created_at, TIMESTAMP '9999-12-31')) AS properties, min(e.created_at) AS created_at
FROM (SELECT namespace, relation_type, from_id, to_id, created_at, coalesce(properties, '{}') AS properties FROM ends) e
JOIN graph_nodes a ON a.node_id = e.from_id AND (a.namespace = e.namespace OR a.namespace IS NULL)
JOIN graph_nodes b ON b.node_id = e.to_id AND (b.namespace = e.namespace OR b.namespace IS NULL)
WHERE e.from_id <> e.to_id
GROUP BY e.namespace, e.relation_type, a.label, e.from_id, b.label, e.to_id;
