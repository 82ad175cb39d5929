-- Drift of Context Graph. thalweg.derived.v1: what the timer observed, a row an hour in which enough was new.
CREATE TABLE context_drift_observations (
    observed_at TIMESTAMP NOT NULL, goal_id VARCHAR NOT NULL, severity VARCHAR NOT NULL, trend VARCHAR NOT NULL,
    alignment DOUBLE NOT NULL, baseline DOUBLE NOT NULL, drift_score DOUBLE NOT NULL, rotation DOUBLE NOT NULL,
    samples BIGINT NOT NULL, memories BIGINT NOT NULL, most_drifted_embedders VARCHAR[] NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, event_id));

-- thalweg.memory.v1: what searches add to their scores now, one row a namespace
CREATE TABLE context_corrections (
    goal_id VARCHAR NOT NULL, strategy VARCHAR NOT NULL, severity VARCHAR, goal_weight DOUBLE NOT NULL, view_weights DOUBLE[] NOT NULL,
    threshold DOUBLE, penalty DOUBLE NOT NULL, version BIGINT NOT NULL, corrected_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace));
-- and each correction there was
CREATE TABLE context_correction_history (
    corrected_at TIMESTAMP NOT NULL, goal_id VARCHAR NOT NULL, strategy VARCHAR NOT NULL, severity VARCHAR, trend VARCHAR, factor DOUBLE,
    iterations BIGINT, target_alignment DOUBLE, alignment_before DOUBLE, alignment_after DOUBLE, is_forced BOOLEAN NOT NULL,
    is_automatic BOOLEAN NOT NULL, version BIGINT NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, event_id));
