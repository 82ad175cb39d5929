-- Teleological vectors of Context Graph, what was learned of its views, and profiles. thalweg.memory.v1.
CREATE TABLE context_vectors (
    vector_id VARCHAR NOT NULL, kind VARCHAR NOT NULL, content VARCHAR, memory_id VARCHAR, profile_id VARCHAR,
    purpose_vector DOUBLE[], cross_correlations DOUBLE[], group_alignments DOUBLE[], is_provisional BOOLEAN,
    fusion_method VARCHAR, weights DOUBLE[], vector DOUBLE[], confidence DOUBLE, created_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, vector_id));
-- the 78 numbers above the diagonal of the synergy matrix, row by row
CREATE TABLE context_synergy (
    pairs DOUBLE[] NOT NULL, version BIGINT NOT NULL, updated_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace));
CREATE TABLE context_profiles (
    profile_id VARCHAR NOT NULL, name VARCHAR NOT NULL, task_type VARCHAR NOT NULL, embedder_weights DOUBLE[] NOT NULL,
    group_priorities JSON NOT NULL, fusion_strategy VARCHAR NOT NULL, is_deleted BOOLEAN NOT NULL,
    created_at TIMESTAMP NOT NULL, updated_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, profile_id));
-- how many profiles a namespace has that are not deleted
CREATE TABLE context_profile_counts (
    profiles BIGINT NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace));
