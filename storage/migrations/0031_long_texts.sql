-- What a long text should have, and what could not be embedded: neither is tried again for ever. thalweg.derived.v1 only.

-- how many passages of a long text have vectors of their own; until all are there it is not embedded yet
ALTER TABLE embeddings ADD COLUMN passages INTEGER;

CREATE TABLE embedding_failures (
    record_id VARCHAR NOT NULL, space VARCHAR NOT NULL, reason VARCHAR NOT NULL, failed_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, record_id, space));
