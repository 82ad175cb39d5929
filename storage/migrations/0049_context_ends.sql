-- Ends of memories of Context Graph. thalweg.memory.v1: one row a memory that became part of another one, appended once.
CREATE TABLE context_ends (
    memory_id VARCHAR NOT NULL, merged_into VARCHAR NOT NULL, how VARCHAR NOT NULL, similarity DOUBLE, ended_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, idx INTEGER NOT NULL,
    event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, memory_id));
-- of a memory that others became: these, and since when it stands for them
ALTER TABLE context_memories ADD COLUMN merged_from VARCHAR[];
ALTER TABLE context_memories ADD COLUMN merged_at TIMESTAMP;

-- each memory that lives, and itself and all that became part of it, over any number of merges
CREATE VIEW context_successors AS
WITH RECURSIVE chain(namespace, memory_id, successor_id) AS (
    SELECT namespace, memory_id, merged_into FROM context_ends
    UNION
    SELECT c.namespace, c.memory_id, e.merged_into
    FROM chain c JOIN context_ends e ON e.namespace = c.namespace AND e.memory_id = c.successor_id)
SELECT c.namespace, c.memory_id, c.successor_id
FROM chain c
WHERE NOT EXISTS (FROM context_ends e WHERE e.namespace = c.namespace AND e.memory_id = c.successor_id);

-- each memory, how often it was stored again or returned by a search with all that became part of it, and what became of it
CREATE OR REPLACE VIEW context_memory_states AS
SELECT m.namespace, m.memory_id, m.content, m.rationale, m.modality, m.importance, m.tags, m.session_id,
       m.times + coalesce(s.times, 0) AS times, m.created_at, m.learning_score,
       m.times + coalesce(s.times, 0) - 1 + coalesce(r.recalls, 0) + coalesce(s.recalls, 0) AS access_count,
       greatest(m.last_stored_at, coalesce(r.recalled_at, m.last_stored_at), coalesce(s.recalled_at, m.last_stored_at))
           AS last_accessed_at,
       CASE WHEN e.memory_id IS NULL THEN 'active' ELSE 'merged' END AS status, e.merged_into, m.merged_from
FROM context_memories m
LEFT JOIN context_ends e ON e.namespace = m.namespace AND e.memory_id = m.memory_id
LEFT JOIN (SELECT namespace, memory_id, count(*) AS recalls, max(recalled_at) AS recalled_at
           FROM context_recalls GROUP BY namespace, memory_id) r
    ON r.namespace = m.namespace AND r.memory_id = m.memory_id
LEFT JOIN (SELECT c.namespace, c.successor_id, sum(p.times)::BIGINT AS times, sum(p.recalls)::BIGINT AS recalls, max(p.recalled_at) AS recalled_at
           FROM context_successors c
           JOIN (SELECT o.namespace, o.memory_id, o.times, count(q.memory_id) AS recalls, max(q.recalled_at) AS recalled_at
                 FROM context_memories o
                 LEFT JOIN context_recalls q ON q.namespace = o.namespace AND q.memory_id = o.memory_id
                 GROUP BY o.namespace, o.memory_id, o.times) p
               ON p.namespace = c.namespace AND p.memory_id = c.memory_id
           GROUP BY c.namespace, c.successor_id) s
    ON s.namespace = m.namespace AND s.successor_id = m.memory_id;

CREATE OR REPLACE VIEW context_graph_memories AS
SELECT m.memory_id, m.modality AS kind, 'context_graph' AS toolset, m.session_id, m.content AS text, m.created_at,
       coalesce(m.merged_at, m.created_at) AS valid_from, e.ended_at AS valid_until, e.merged_into AS superseded_by,
       e.memory_id IS NULL AS is_live, m.created_event_id AS source_event_id, m.namespace
FROM context_memories m
LEFT JOIN context_ends e ON e.namespace = m.namespace AND e.memory_id = m.memory_id;

-- searches of captured sessions ask tables of these names; nothing of Context Graph is in them
CREATE VIEW captured.context_ends AS
SELECT memory_id, merged_into, how, similarity, ended_at, namespace, topic, partition, "offset", idx, event_id
FROM main.context_ends WHERE false;
