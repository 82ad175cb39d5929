-- How probably results of Context Graph are right: what was judged, and what that taught. thalweg.memory.v1.
-- the newest 500 results that were judged, with what their search had said of them
CREATE TABLE context_judgements (
    slot BIGINT NOT NULL, number BIGINT NOT NULL, query_vector_id VARCHAR NOT NULL, memory_id VARCHAR NOT NULL, is_relevant BOOLEAN NOT NULL,
    similarity DOUBLE, prior DOUBLE, alignments DOUBLE[] NOT NULL, judged_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, slot));
CREATE TABLE context_calibrations (
    judgements BIGINT NOT NULL, fitted_judgements BIGINT NOT NULL, fitted_at TIMESTAMP,
    relevance_temperature DOUBLE NOT NULL, relevance_offset DOUBLE NOT NULL,
    similarity_temperature DOUBLE NOT NULL, similarity_offset DOUBLE NOT NULL, temperatures DOUBLE[] NOT NULL,
    observed_counts BIGINT[] NOT NULL, observed_references DOUBLE[] NOT NULL, observed_means DOUBLE[] NOT NULL,
    arm_successes BIGINT[] NOT NULL, arm_failures BIGINT[] NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace));
-- thresholds that are not what their domain begins with
CREATE TABLE context_thresholds (
    domain VARCHAR NOT NULL, name VARCHAR NOT NULL, value DOUBLE NOT NULL, level INTEGER NOT NULL, changed_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, domain, name));

-- thalweg.invocations.v1: the relevance that a search gave a result, before what was learned of its namespace
ALTER TABLE context_recalls ADD COLUMN prior DOUBLE;
