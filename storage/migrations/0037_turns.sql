-- What people and agents said to each other in captured sessions, to be searched beside the memories (`documents`), and
-- its vectors. Tables of their own: nothing of them counts in a search of memories. turns: fed by thalweg.telemetry.v1.

CREATE TABLE turns (
    label BIGINT PRIMARY KEY, record_id VARCHAR NOT NULL, session_id VARCHAR NOT NULL, role VARCHAR NOT NULL, source VARCHAR,
    text VARCHAR NOT NULL, created_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL);

-- thalweg.derived.v1: as embeddings and passages
CREATE TABLE turn_embeddings (
    label BIGINT NOT NULL, space VARCHAR NOT NULL, record_id VARCHAR NOT NULL, model_id VARCHAR NOT NULL, dtype VARCHAR NOT NULL,
    dim INTEGER NOT NULL, is_trained BOOLEAN NOT NULL, vector BLOB NOT NULL, tokens VARCHAR, passages INTEGER,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (label, space));
CREATE TABLE turn_passages (
    label BIGINT NOT NULL, space VARCHAR NOT NULL, owner_label BIGINT NOT NULL, record_id VARCHAR NOT NULL, number INTEGER NOT NULL,
    char_start INTEGER NOT NULL, char_end INTEGER NOT NULL, model_id VARCHAR NOT NULL, dim INTEGER NOT NULL, vector BLOB NOT NULL,
    tokens VARCHAR,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (label, space));

-- A search reads its records under the names documents, embeddings and passages. With `captured` as its schema these are
-- the turns; nothing is merged with a turn, related to it, or ends it.
CREATE SCHEMA captured;
CREATE VIEW captured.documents AS
SELECT rowid AS rowid, label, record_id, 'telemetry' AS toolset, 'Turn' AS kind, session_id, NULL::VARCHAR AS domain, text,
       created_at, namespace, topic, partition, "offset", event_id, NULL::VARCHAR AS connection
FROM main.turns;
CREATE VIEW captured.embeddings AS
SELECT rowid AS rowid, label, space, record_id, model_id, dtype, dim, is_trained, vector, tokens, passages,
       namespace, topic, partition, "offset", event_id
FROM main.turn_embeddings;
CREATE VIEW captured.passages AS
SELECT rowid AS rowid, label, space, owner_label, record_id, number, char_start, char_end, model_id, dim, vector, tokens,
       namespace, topic, partition, "offset", event_id
FROM main.turn_passages;
CREATE VIEW captured.document_tags AS
SELECT record_id, tag, namespace, topic, partition, "offset", event_id
FROM main.document_tags WHERE false;
CREATE VIEW captured.merges AS
SELECT record_id, into_id, label, category, how, cosine, merge_count, merged_at, namespace, topic, partition,
       "offset", event_id
FROM main.merges WHERE false;
CREATE VIEW captured.prunes AS
SELECT record_id, reason, pruned_at, namespace, topic, partition, "offset", event_id
FROM main.prunes WHERE false;
CREATE VIEW captured.corrections AS
SELECT record_id, change, successor_id, reason, changed_at, namespace, topic, partition, "offset", event_id
FROM main.corrections WHERE false;
CREATE VIEW captured.relations AS
SELECT relation_id, relation_type, from_id, to_id, properties, created_at, source_event_id, namespace, topic,
       partition, "offset", event_id
FROM main.relations WHERE false;
CREATE VIEW captured.entities AS
SELECT entity_id, label, text, canonical_form, category, session_id, domain, confidence, is_blocking, properties,
       created_at, source_event_id, namespace, topic, partition, "offset", idx, event_id
FROM main.entities WHERE false;
CREATE VIEW captured.memory_changes AS
SELECT newer_id, older_id, cosine, model_id, found_at, namespace, topic, partition, "offset", event_id
FROM main.memory_changes WHERE false;
