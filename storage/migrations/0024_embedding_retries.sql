-- Vectors that took more than one try, because the model did not answer at first. thalweg.derived.v1 only.
CREATE TABLE embedding_retries (
    record_id VARCHAR NOT NULL, space VARCHAR NOT NULL, tries INTEGER NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, record_id, space));
