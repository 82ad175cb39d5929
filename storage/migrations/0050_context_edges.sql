-- Edges between memories of Context Graph, as they are now. thalweg.derived.v1. Of similar, temporal and rem the source is the smaller id.
CREATE TABLE context_edges (
    source_id VARCHAR NOT NULL, target_id VARCHAR NOT NULL, kind VARCHAR NOT NULL, weight DOUBLE NOT NULL, confidence DOUBLE NOT NULL,
    evidence JSON, space VARCHAR, is_removed BOOLEAN NOT NULL, created_at TIMESTAMP NOT NULL, changed_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, source_id, target_id, kind));
CREATE INDEX context_edges_by_source ON context_edges (source_id);
CREATE INDEX context_edges_by_target ON context_edges (target_id);
-- what dreams made of them, one row a change; `weight_before` is NULL where there was no such edge
CREATE TABLE context_edge_changes (
    source_id VARCHAR NOT NULL, target_id VARCHAR NOT NULL, kind VARCHAR NOT NULL, weight DOUBLE NOT NULL, confidence DOUBLE NOT NULL,
    weight_before DOUBLE, is_removed BOOLEAN NOT NULL, dream_id VARCHAR NOT NULL, changed_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL);

-- thalweg.invocations.v1: the paths by which searches reached what they returned; ids of the path with a blank between them
CREATE TABLE context_traversals (
    path VARCHAR NOT NULL, hops INTEGER NOT NULL, tool VARCHAR NOT NULL, traversed_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL);

-- each edge between living memories, and what became of it; of a merged memory the one that stands for it
CREATE VIEW context_edge_states AS
WITH living AS (
    SELECT e.namespace, coalesce(s.successor_id, e.source_id) AS one, coalesce(t.successor_id, e.target_id) AS other, e.*
               EXCLUDE (namespace, source_id, target_id)
    FROM context_edges e
    LEFT JOIN context_successors s ON s.namespace = e.namespace AND s.memory_id = e.source_id
    LEFT JOIN context_successors t ON t.namespace = e.namespace AND t.memory_id = e.target_id)
SELECT namespace, CASE WHEN kind IN ('causal', 'shortcut') THEN one ELSE least(one, other) END AS source_id,
       CASE WHEN kind IN ('causal', 'shortcut') THEN other ELSE greatest(one, other) END AS target_id,
       kind, weight, confidence, evidence, space, created_at, changed_at
FROM living
WHERE NOT is_removed AND one <> other
QUALIFY row_number() OVER (PARTITION BY namespace, kind, least(one, other), greatest(one, other), CASE WHEN one < other THEN kind END ORDER BY weight DESC, changed_at) = 1;
