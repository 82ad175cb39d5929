-- When a record was stated again that is kept once for one content: a belief, a memory of Context Graph. thalweg.memory.v1.
-- A journal entry has no row here, because each time it is written it is a record of its own.
CREATE TABLE restatements (
    record_id VARCHAR NOT NULL, stated_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL);
