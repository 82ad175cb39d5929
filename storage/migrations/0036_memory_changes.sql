-- A memory that changes what an earlier one says, of whatever kinds the two are. Found by the stage `changes`, each pair
-- once, so that a rebuild has the same pairs.

CREATE TABLE memory_changes (
    newer_id VARCHAR NOT NULL, older_id VARCHAR NOT NULL, cosine DOUBLE, model_id VARCHAR, found_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL,
    event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, newer_id, older_id));
