-- Edges between memories of Context Graph, as they are now. thalweg.derived.v1. Of similar, temporal and rem the source is the smaller id.
CREATE TABLE context_edges (
    source_id VARCHAR NOT NULL, target_id VARCHAR NOT NULL, kind VARCHAR NOT NULL, weight DOUBLE NOT NULL, confidence DOUBLE NOT NULL,
    evidence JSON, space VARCHAR, is_removed BOOLEAN NOT NULL, created_at TIMESTAMP NOT NULL, changed_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, source_id, target_id, kind));
-- what dreams made of them, one row a change
CREATE TABLE context_edge_changes (
    source_id VARCHAR NOT NULL, target_id VARCHAR NOT NULL, kind VARCHAR NOT NULL, weight DOUBLE NOT NULL, confidence DOUBLE NOT NULL,
    is_removed BOOLEAN NOT NULL, dream_id VARCHAR NOT NULL, changed_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL);

-- thalweg.invocations.v1: the paths by which searches reached what they returned; ids of the path with a blank between them
CREATE TABLE context_traversals (
    path VARCHAR NOT NULL, hops INTEGER NOT NULL, tool VARCHAR NOT NULL, traversed_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL);
