-- Dreams of Context Graph that began. thalweg.memory.v1.
CREATE TABLE context_dreams (
    dream_id VARCHAR NOT NULL, cause VARCHAR NOT NULL, is_forced BOOLEAN NOT NULL, activity DOUBLE NOT NULL,
    started_at TIMESTAMP NOT NULL, aborted_at TIMESTAMP,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, dream_id));
-- the one of each namespace that began last
CREATE TABLE context_last_dreams (
    dream_id VARCHAR NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace));

-- thalweg.derived.v1: how far each dream came; `state` is Awake once it is over
CREATE TABLE context_dream_reports (
    dream_id VARCHAR NOT NULL, state VARCHAR NOT NULL, wake_reason VARCHAR, is_complete BOOLEAN NOT NULL, report JSON NOT NULL,
    reported_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, dream_id));

-- each dream, and what became of it
CREATE VIEW context_dream_cycles AS
SELECT d.namespace, d.dream_id, d.cause, d.is_forced, d.activity, d.started_at, d.aborted_at, coalesce(r.state, 'NREM') AS state,
       r.wake_reason, coalesce(r.is_complete, false) AS is_complete,
       CASE WHEN r.state = 'Awake' THEN r.reported_at END AS ended_at, r.report
FROM context_dreams d
LEFT JOIN context_dream_reports r ON r.namespace = d.namespace AND r.dream_id = d.dream_id;
