-- The spine. Every table is written by the materialiser only, and a table that a reducer reads back is fed by one
-- topic, so that the state does not depend on how topics interleave. What crosses topics is a view (0002).
-- Times are UTC. Every row keeps where it comes from: namespace, topic, partition, offset, event_id.

CREATE TABLE progress (
    place INTEGER PRIMARY KEY, stage VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, next_offset BIGINT NOT NULL);

CREATE TABLE events (
    event_key UUID PRIMARY KEY, event_id VARCHAR NOT NULL, source VARCHAR NOT NULL, event_type VARCHAR NOT NULL,
    subject VARCHAR, occurred_at TIMESTAMP NOT NULL, digest BIGINT NOT NULL, traceparent VARCHAR,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, idx INTEGER NOT NULL);
CREATE TABLE duplicates (
    event_key UUID NOT NULL, event_id VARCHAR NOT NULL, same_body BOOLEAN NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, idx INTEGER NOT NULL);
CREATE TABLE outcomes (
    request_id VARCHAR NOT NULL, status VARCHAR NOT NULL, code VARCHAR, message VARCHAR, result JSON, decided_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, request_id));
CREATE TABLE dead_letters (
    dead_letter_id VARCHAR PRIMARY KEY, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL,
    stage VARCHAR NOT NULL, attempt INTEGER NOT NULL, error_type VARCHAR NOT NULL, error_message VARCHAR NOT NULL,
    first_failed_at TIMESTAMP NOT NULL, record_key VARCHAR, value_bytes BIGINT NOT NULL,
    dlq_topic VARCHAR NOT NULL, dlq_partition INTEGER NOT NULL, dlq_offset BIGINT NOT NULL);
CREATE TABLE invocations (
    invocation_id VARCHAR NOT NULL, tool_name VARCHAR NOT NULL, toolset VARCHAR, outcome VARCHAR NOT NULL, error_code VARCHAR,
    request_id VARCHAR, session_id VARCHAR, client VARCHAR, started_at TIMESTAMP NOT NULL, duration_ms DOUBLE,
    input_bytes BIGINT, output_bytes BIGINT,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL);

-- thalweg.memory.v1
CREATE TABLE talos_sessions (
    session_id VARCHAR NOT NULL, goal VARCHAR NOT NULL, goal_id VARCHAR NOT NULL, persona VARCHAR, protocol VARCHAR, human VARCHAR,
    status VARCHAR NOT NULL, started_at TIMESTAMP NOT NULL, ended_at TIMESTAMP, duration_seconds BIGINT,
    goal_achieved BOOLEAN, summary VARCHAR,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, session_id));
CREATE TABLE talos_journal (
    entry_id VARCHAR NOT NULL, content VARCHAR NOT NULL, category VARCHAR NOT NULL, session_id VARCHAR, domain VARCHAR,
    confidence DOUBLE, created_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL);

-- thalweg.derived.v1
CREATE TABLE entities (
    entity_id VARCHAR NOT NULL, label VARCHAR NOT NULL, text VARCHAR NOT NULL, canonical_form VARCHAR NOT NULL,
    category VARCHAR, session_id VARCHAR, domain VARCHAR, confidence DOUBLE, is_blocking BOOLEAN, properties JSON,
    created_at TIMESTAMP NOT NULL, source_event_id VARCHAR NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, idx INTEGER NOT NULL,
    event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, entity_id));
CREATE TABLE relations (
    relation_id VARCHAR NOT NULL, relation_type VARCHAR NOT NULL, from_id VARCHAR NOT NULL, to_id VARCHAR NOT NULL, properties JSON,
    created_at TIMESTAMP NOT NULL, source_event_id VARCHAR NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, relation_id));
CREATE TABLE merges (
    record_id VARCHAR NOT NULL, into_id VARCHAR NOT NULL, label VARCHAR NOT NULL, category VARCHAR, how VARCHAR NOT NULL, cosine DOUBLE,
    merge_count INTEGER NOT NULL, merged_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, record_id));
CREATE TABLE clusters (
    canonical_id VARCHAR NOT NULL, label VARCHAR NOT NULL, record_count INTEGER NOT NULL, last_merged_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, canonical_id));
CREATE TABLE embeddings (
    label BIGINT NOT NULL, space VARCHAR NOT NULL, record_id VARCHAR NOT NULL, model_id VARCHAR NOT NULL, dtype VARCHAR NOT NULL,
    dim INTEGER NOT NULL, is_trained BOOLEAN NOT NULL, vector BLOB NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (label, space));
CREATE TABLE pattern_signals (
    signal_id VARCHAR NOT NULL, session_id VARCHAR NOT NULL, description VARCHAR NOT NULL, indicators JSON, signalled_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, signal_id, session_id));

-- what can be searched: appended from memory and derived events, never read back by a reducer.
-- label = 63-bit hash of (namespace, record_id): the record's number in every index.
CREATE TABLE documents (
    label BIGINT PRIMARY KEY, record_id VARCHAR NOT NULL, toolset VARCHAR NOT NULL, kind VARCHAR NOT NULL, session_id VARCHAR,
    domain VARCHAR, text VARCHAR NOT NULL, created_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL);

-- thalweg.telemetry.v1
CREATE TABLE telemetry_sessions (
    session_id VARCHAR NOT NULL, parent_session_id VARCHAR, source VARCHAR, project VARCHAR, agent VARCHAR, model VARCHAR,
    goal VARCHAR, summary VARCHAR, started_at TIMESTAMP NOT NULL, ended_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, session_id));
CREATE TABLE session_events (
    event_id VARCHAR NOT NULL, session_id VARCHAR NOT NULL, parent_event_id VARCHAR, event_type VARCHAR NOT NULL, role VARCHAR,
    occurred_at TIMESTAMP NOT NULL, text VARCHAR, payload JSON,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, idx INTEGER NOT NULL);
CREATE TABLE tool_calls (
    tool_call_id VARCHAR NOT NULL, session_id VARCHAR NOT NULL, event_id VARCHAR NOT NULL, tool_name VARCHAR, started_at TIMESTAMP,
    duration_ms DOUBLE, is_error BOOLEAN, error_type VARCHAR, input JSON, output_bytes BIGINT, ended_at TIMESTAMP,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL,
    PRIMARY KEY (namespace, tool_call_id));
CREATE TABLE model_calls (
    message_id VARCHAR NOT NULL, session_id VARCHAR NOT NULL, model VARCHAR, occurred_at TIMESTAMP NOT NULL,
    input_tokens BIGINT, output_tokens BIGINT, cache_read_tokens BIGINT, cache_creation_tokens BIGINT, cost_usd DOUBLE, latency_ms DOUBLE,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, message_id));
CREATE TABLE state_changes (
    session_id VARCHAR NOT NULL, from_state VARCHAR, to_state VARCHAR, category VARCHAR, "trigger" VARCHAR, intensity DOUBLE,
    occurred_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL);
CREATE TABLE otel_spans (
    trace_id VARCHAR NOT NULL, span_id VARCHAR NOT NULL, parent_span_id VARCHAR, name VARCHAR NOT NULL, kind VARCHAR, scope VARCHAR,
    started_at TIMESTAMP, ended_at TIMESTAMP, duration_ms DOUBLE, status VARCHAR, status_message VARCHAR,
    attributes JSON, resource JSON, span_events JSON, links JSON,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL);
CREATE TABLE otel_logs (
    trace_id VARCHAR, span_id VARCHAR, event_name VARCHAR, severity VARCHAR, body JSON, scope VARCHAR, occurred_at TIMESTAMP NOT NULL,
    attributes JSON, resource JSON,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL);
CREATE TABLE otel_metrics (
    name VARCHAR NOT NULL, kind VARCHAR NOT NULL, unit VARCHAR, value DOUBLE, "count" BIGINT, "sum" DOUBLE, scope VARCHAR,
    started_at TIMESTAMP, occurred_at TIMESTAMP NOT NULL, attributes JSON, resource JSON, point JSON,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL);
