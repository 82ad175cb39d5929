-- The state by which Context Graph searches. thalweg.memory.v1. How strongly its views are coupled
CREATE TABLE context_couplings (
    coupling DOUBLE NOT NULL, adjusted_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace));
-- levels of the modulators when one of them was last changed
CREATE TABLE context_modulators (
    dopamine DOUBLE NOT NULL, serotonin DOUBLE NOT NULL, noradrenaline DOUBLE NOT NULL, adjusted_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace));
-- what competes for the workspace of a session, and what won it last; session `default` is the whole namespace
CREATE TABLE context_workspaces (
    session_id VARCHAR NOT NULL, candidates JSON NOT NULL, memory_id VARCHAR, score DOUBLE, broadcast_at TIMESTAMP, broadcasts BIGINT NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, session_id));
-- and each memory that competed
CREATE TABLE context_broadcasts (
    memory_id VARCHAR NOT NULL, session_id VARCHAR NOT NULL, importance DOUBLE NOT NULL, alignment DOUBLE NOT NULL, r DOUBLE NOT NULL,
    score DOUBLE NOT NULL, is_forced BOOLEAN NOT NULL, was_selected BOOLEAN NOT NULL, losers VARCHAR[] NOT NULL, broadcast_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, event_id));
