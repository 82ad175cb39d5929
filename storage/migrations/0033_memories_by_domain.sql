-- Each domain has a view of its own of what it remembers, with the columns of `memories`, which is their union:
-- a domain that comes or changes leaves the SQL of the others alone.

CREATE VIEW talos_memories AS
SELECT j.entry_id AS memory_id, j.category AS kind, 'talos' AS toolset, j.session_id, j.content AS text, j.created_at,
       j.created_at AS valid_from, NULL::TIMESTAMP AS valid_until, NULL::VARCHAR AS superseded_by, true AS is_live,
       j.event_id AS source_event_id, j.namespace
FROM talos_journal j
UNION ALL
SELECT e.entity_id, e.label, 'talos', e.session_id, e.text, e.created_at, e.created_at, coalesce(m.merged_at, p.pruned_at),
       m.into_id, m.record_id IS NULL AND p.record_id IS NULL, e.source_event_id, e.namespace
FROM entities e
LEFT JOIN merges m ON m.namespace = e.namespace AND m.record_id = e.entity_id
LEFT JOIN prunes p ON p.namespace = e.namespace AND p.record_id = e.entity_id;

CREATE VIEW valence_memories AS
SELECT exchange_id AS memory_id, 'exchange' AS kind, 'valence' AS toolset, session_id, content AS text, created_at,
       created_at AS valid_from, NULL::TIMESTAMP AS valid_until, NULL::VARCHAR AS superseded_by, true AS is_live,
       event_id AS source_event_id, namespace
FROM vkb_exchanges
UNION ALL
SELECT pattern_id, 'pattern', 'valence', NULL, description, first_observed_at, first_observed_at, NULL, NULL,
       status <> 'archived', event_id, namespace
FROM vkb_patterns_aged
UNION ALL
SELECT b.belief_id, 'belief', 'valence', s.session_id, b.content, b.created_at, coalesce(b.valid_from, b.created_at),
       b.valid_until, b.superseded_by_id, b.closed_at IS NULL, b.created_event_id, b.namespace
FROM valence_beliefs b
LEFT JOIN valence_sources s ON s.namespace = b.namespace AND s.source_id = b.source_id;

CREATE OR REPLACE VIEW memories AS
FROM talos_memories
UNION ALL FROM valence_memories
UNION ALL FROM cognitive_memories;
