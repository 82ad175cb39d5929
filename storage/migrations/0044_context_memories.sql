-- Memories of Context Graph. thalweg.memory.v1: one row for one content, however often it is stored.
CREATE TABLE context_memories (
    memory_id VARCHAR NOT NULL, label BIGINT NOT NULL, content VARCHAR NOT NULL, searched VARCHAR, rationale VARCHAR,
    modality VARCHAR NOT NULL, importance DOUBLE NOT NULL, tags VARCHAR[] NOT NULL, content_hash VARCHAR NOT NULL,
    session_id VARCHAR, times BIGINT NOT NULL, created_at TIMESTAMP NOT NULL, last_stored_at TIMESTAMP NOT NULL,
    learning_score DOUBLE, entropy DOUBLE, coherence DOUBLE, surprise DOUBLE, emotional_weight DOUBLE,
    created_event_id VARCHAR NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, idx INTEGER NOT NULL,
    event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, memory_id));
CREATE INDEX context_memories_by_label ON context_memories (label);
-- which memory has this content
CREATE TABLE context_contents (
    content_hash VARCHAR NOT NULL, memory_id VARCHAR NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, content_hash));

-- thalweg.invocations.v1: what searches returned
CREATE TABLE context_recalls (
    memory_id VARCHAR NOT NULL, query_vector_id VARCHAR NOT NULL, tool VARCHAR NOT NULL, session_id VARCHAR, rank BIGINT NOT NULL,
    similarity DOUBLE, alignments DOUBLE[], recalled_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL);

-- each memory, and how often it was stored again or returned by a search
CREATE VIEW context_memory_states AS
SELECT m.namespace, m.memory_id, m.content, m.rationale, m.modality, m.importance, m.tags, m.session_id, m.times, m.created_at,
       m.learning_score, m.times - 1 + coalesce(r.recalls, 0) AS access_count,
       greatest(m.last_stored_at, coalesce(r.recalled_at, m.last_stored_at)) AS last_accessed_at
FROM context_memories m
LEFT JOIN (SELECT namespace, memory_id, count(*) AS recalls, max(recalled_at) AS recalled_at
           FROM context_recalls GROUP BY namespace, memory_id) r
    ON r.namespace = m.namespace AND r.memory_id = m.memory_id;

-- the columns of `memories`, of this toolset
CREATE VIEW context_graph_memories AS
SELECT memory_id, modality AS kind, 'context_graph' AS toolset, session_id, content AS text, created_at, created_at AS valid_from,
       NULL::TIMESTAMP AS valid_until, NULL::VARCHAR AS superseded_by, true AS is_live, created_event_id AS source_event_id, namespace
FROM context_memories;

CREATE OR REPLACE VIEW memories AS
FROM talos_memories
UNION ALL FROM valence_memories
UNION ALL FROM cognitive_memories
UNION ALL FROM context_graph_memories;
