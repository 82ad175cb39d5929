-- Token vectors of a text (late interaction), beside its vector: base64 of n ids (uint16) and n rows of 128 int8.
ALTER TABLE embeddings ADD COLUMN tokens VARCHAR;

-- Texts longer than the model's window, in overlapping passages. label = the passage's number in every index.
CREATE TABLE passages (
    label BIGINT NOT NULL, space VARCHAR NOT NULL, owner_label BIGINT NOT NULL, record_id VARCHAR NOT NULL, number INTEGER NOT NULL,
    char_start INTEGER NOT NULL, char_end INTEGER NOT NULL, model_id VARCHAR NOT NULL, dim INTEGER NOT NULL, vector BLOB NOT NULL,
    tokens VARCHAR,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (label, space));

-- words that a record was given to be found by
CREATE TABLE document_tags (
    record_id VARCHAR NOT NULL, tag VARCHAR NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, record_id, tag));
