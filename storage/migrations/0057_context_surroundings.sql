-- What a dream made of memories and of questions. thalweg.derived.v1: one row a memory and space, the first stays.
CREATE TABLE context_surroundings (
    memory_id VARCHAR NOT NULL, label BIGINT NOT NULL, space VARCHAR NOT NULL, vector BLOB NOT NULL, dream_id VARCHAR NOT NULL,
    embedded_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, memory_id, space));
-- questions that had been asked again and again when a dream began
CREATE TABLE context_repeated_questions (
    query_vector_id VARCHAR NOT NULL, dream_id VARCHAR NOT NULL, repeated_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, query_vector_id));

-- searches of captured sessions ask tables of these names; nothing of Context Graph is in them
CREATE VIEW captured.context_surroundings AS
SELECT memory_id, label, space, vector, dream_id, embedded_at, namespace, topic, partition, "offset", event_id
FROM main.context_surroundings WHERE false;
