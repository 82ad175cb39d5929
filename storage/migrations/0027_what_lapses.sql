-- Patterns that did not occur any more, and everywhere the same answer to what holds: not merged, pruned or deprecated.

-- thalweg.derived.v1: a pattern was given up since this last occurrence; a later one makes it what it was
CREATE TABLE pattern_deprecations (
    pattern_id VARCHAR NOT NULL, last_occurred_at TIMESTAMP NOT NULL, reason VARCHAR NOT NULL, deprecated_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, pattern_id, last_occurred_at));

CREATE OR REPLACE VIEW patterns AS
SELECT p.namespace, p.pattern_id, p.name,
       CASE WHEN d.pattern_id IS NOT NULL THEN 'deprecated' WHEN p.total_occurrences >= 5 THEN 'confirmed' ELSE 'emerging' END AS status,
       p.total_occurrences, p.indicators, p.first_noticed_at, p.last_occurred_at, p.established_at, d.deprecated_at
FROM (SELECT namespace, signal_id AS pattern_id, any_value(description) AS name, count(*) AS total_occurrences,
             any_value(indicators) AS indicators, min(signalled_at) AS first_noticed_at, max(signalled_at) AS last_occurred_at,
             list_sort(list(signalled_at))[3] AS established_at
      FROM pattern_signals GROUP BY namespace, signal_id HAVING count(*) >= 3) p
LEFT JOIN pattern_deprecations d ON d.namespace = p.namespace AND d.pattern_id = p.pattern_id AND d.last_occurred_at = p.last_occurred_at;

-- what was live when a session opened (INHERITED)
CREATE OR REPLACE VIEW session_inherited AS
SELECT s.namespace, s.session_id, e.entity_id AS node_id, e.label, s.started_at AS inherited_at
FROM talos_sessions s JOIN entities e ON e.namespace = s.namespace AND e.created_at < s.started_at
LEFT JOIN merges m ON m.namespace = e.namespace AND m.record_id = e.entity_id
LEFT JOIN prunes p ON p.namespace = e.namespace AND p.record_id = e.entity_id
WHERE e.label IN ('Belief', 'Insight', 'Pattern', 'Sutra', 'Protocol', 'Limitation', 'Capability')
  AND (m.merged_at IS NULL OR m.merged_at >= s.started_at) AND (p.pruned_at IS NULL OR p.pruned_at >= s.started_at)
  AND CASE WHEN e.label = 'Pattern' THEN coalesce(e.properties->>'$.status', '') <> 'deprecated' ELSE true END
UNION ALL
SELECT s.namespace, s.session_id, n.node_id, 'Protocol', s.started_at
FROM talos_sessions s
JOIN (SELECT namespace, node_id, min(created_at) AS created_at FROM talos_names WHERE label = 'Protocol' GROUP BY namespace, node_id) n
  ON n.namespace = s.namespace AND n.created_at < s.started_at
WHERE NOT EXISTS (FROM entities e WHERE e.namespace = n.namespace AND e.entity_id = n.node_id)
UNION ALL
SELECT s.namespace, s.session_id, p.pattern_id, 'Pattern', s.started_at
FROM talos_sessions s JOIN patterns p ON p.namespace = s.namespace AND p.established_at < s.started_at
WHERE NOT EXISTS (
    FROM (SELECT d.namespace, d.pattern_id, d.deprecated_at, min(g.signalled_at) AS revived_at
          FROM pattern_deprecations d
          LEFT JOIN pattern_signals g ON g.namespace = d.namespace AND g.signal_id = d.pattern_id AND g.signalled_at > d.last_occurred_at
          GROUP BY ALL) l
    WHERE l.namespace = s.namespace AND l.pattern_id = p.pattern_id AND l.deprecated_at < s.started_at
      AND (l.revived_at IS NULL OR l.revived_at >= s.started_at));

CREATE OR REPLACE VIEW memories AS
SELECT j.entry_id AS memory_id, j.category AS kind, 'talos' AS toolset, j.session_id, j.content AS text, j.created_at,
       j.created_at AS valid_from, NULL::TIMESTAMP AS valid_until, NULL::VARCHAR AS superseded_by, true AS is_live,
       j.event_id AS source_event_id, j.namespace
FROM talos_journal j
UNION ALL
SELECT e.entity_id, e.label, 'talos', e.session_id, e.text, e.created_at, e.created_at, coalesce(m.merged_at, p.pruned_at), m.into_id,
       m.record_id IS NULL AND p.record_id IS NULL, e.source_event_id, e.namespace
FROM entities e
LEFT JOIN merges m ON m.namespace = e.namespace AND m.record_id = e.entity_id
LEFT JOIN prunes p ON p.namespace = e.namespace AND p.record_id = e.entity_id
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
