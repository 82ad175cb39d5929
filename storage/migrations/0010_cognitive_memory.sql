-- Cognitive Memory. All tables are fed by thalweg.memory.v1 only, so that a reducer may read any of them back.

CREATE TABLE l0_raw (
    id BIGINT NOT NULL, session_id VARCHAR NOT NULL, timestamp TIMESTAMP NOT NULL, speaker VARCHAR NOT NULL, content VARCHAR NOT NULL,
    metadata JSON,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, idx INTEGER NOT NULL,
    event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, id));
CREATE TABLE l2_insights (
    id BIGINT NOT NULL, content VARCHAR NOT NULL, created_at TIMESTAMP NOT NULL, source_ids JSON NOT NULL, fidelity_score DOUBLE NOT NULL,
    fidelity_warning BOOLEAN NOT NULL, warning_message VARCHAR, source_coverage DOUBLE, coverage_model VARCHAR,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, idx INTEGER NOT NULL,
    event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, id));
CREATE TABLE l2_sources (
    insight_id BIGINT NOT NULL, source_id BIGINT NOT NULL, place INTEGER NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL);
-- ten places a namespace; an empty one has no id. Nothing is deleted: what leaves a place is in stale_memory
CREATE TABLE working_memory_slots (
    slot INTEGER NOT NULL, id BIGINT, content VARCHAR, importance DOUBLE, last_accessed TIMESTAMP, created_at TIMESTAMP,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, idx INTEGER NOT NULL,
    event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, slot));
CREATE TABLE stale_memory (
    id BIGINT NOT NULL, item_id BIGINT NOT NULL, original_content VARCHAR NOT NULL, importance DOUBLE NOT NULL, reason VARCHAR NOT NULL,
    archived_at TIMESTAMP NOT NULL, created_at TIMESTAMP NOT NULL, last_accessed TIMESTAMP NOT NULL, displaced_by BIGINT,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, id));
CREATE TABLE episode_memory (
    id BIGINT NOT NULL, query VARCHAR NOT NULL, reward DOUBLE NOT NULL, reflection VARCHAR NOT NULL, created_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, id));
CREATE TABLE ground_truth (
    id BIGINT NOT NULL, query VARCHAR NOT NULL, expected_docs JSON NOT NULL, session_id VARCHAR NOT NULL, judge1_scores JSON,
    judge2_scores JSON, judge1_model VARCHAR, judge2_model VARCHAR, kappa DOUBLE, metadata JSON, imported_at TIMESTAMP NOT NULL,
    judged_at TIMESTAMP,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, id));
CREATE TABLE judge_runs (
    query_id BIGINT NOT NULL, query VARCHAR NOT NULL, judged_at TIMESTAMP NOT NULL, judge1_model VARCHAR NOT NULL,
    judge2_model VARCHAR NOT NULL, evaluated_documents INTEGER NOT NULL, failed_documents INTEGER NOT NULL, judge1_score DOUBLE,
    judge2_score DOUBLE, kappa DOUBLE, kappa_degenerate BOOLEAN NOT NULL, agreement VARCHAR, input_tokens BIGINT, output_tokens BIGINT,
    cost_usd DOUBLE,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL);
CREATE TABLE judgements (
    query_id BIGINT NOT NULL, document_id BIGINT NOT NULL, judge1_score DOUBLE, judge2_score DOUBLE, judged_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL);
CREATE TABLE golden_test_set (
    id BIGINT NOT NULL, query VARCHAR NOT NULL, query_type VARCHAR NOT NULL, expected_docs JSON NOT NULL, session_id VARCHAR NOT NULL,
    imported_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, id));
-- which evaluation set a dialogue session belongs to: one at most; the row with an empty session says that the golden set is there
CREATE TABLE evaluation_sessions (
    session_id VARCHAR NOT NULL, belongs_to VARCHAR NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, session_id));
CREATE TABLE model_drift_log (
    date DATE NOT NULL, precision_at_5 DOUBLE NOT NULL, baseline_precision DOUBLE, drift_detected BOOLEAN NOT NULL,
    queries_tested INTEGER NOT NULL, embedding_model VARCHAR, details VARCHAR NOT NULL, query_breakdown JSON NOT NULL,
    avg_retrieval_time_ms DOUBLE, completed_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, date));

CREATE VIEW working_memory AS
SELECT id, content, importance, last_accessed, created_at, namespace, event_id, topic, partition, "offset", idx
FROM working_memory_slots WHERE id IS NOT NULL;

-- what was compressed from what
CREATE VIEW l2_compressions AS
SELECT s.namespace, s.insight_id, s.place, i.content AS insight, i.fidelity_score, i.source_coverage, i.created_at, s.source_id,
       r.session_id, r.speaker, r.content AS source, r.timestamp AS said_at
FROM l2_sources s
JOIN l2_insights i ON i.namespace = s.namespace AND i.id = s.insight_id
JOIN l0_raw r ON r.namespace = s.namespace AND r.id = s.source_id;

-- the columns of `memories`, of this toolset
CREATE VIEW cognitive_memories AS
SELECT 'l0-' || id AS memory_id, 'raw_dialogue' AS kind, 'cognitive_memory' AS toolset, session_id, content AS text, timestamp AS created_at,
       timestamp AS valid_from, NULL::TIMESTAMP AS valid_until, NULL::VARCHAR AS superseded_by, true AS is_live, event_id AS source_event_id,
       namespace
FROM l0_raw
UNION ALL
SELECT 'l2-' || id, 'l2_insight', 'cognitive_memory', NULL, content, created_at, created_at, NULL, NULL, true, event_id, namespace
FROM l2_insights
UNION ALL
SELECT 'episode-' || id, 'episode', 'cognitive_memory', NULL, query || chr(10) || reflection, created_at, created_at, NULL, NULL, true,
       event_id, namespace
FROM episode_memory
UNION ALL
SELECT 'wm-' || id, 'working_memory', 'cognitive_memory', NULL, content, created_at, created_at, NULL, NULL, true, event_id, namespace
FROM working_memory
UNION ALL
SELECT 'stale-' || id, 'working_memory', 'cognitive_memory', NULL, original_content, created_at, created_at, archived_at, NULL, false,
       event_id, namespace
FROM stale_memory;
