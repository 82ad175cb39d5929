-- Records that lie on another partition than their key's: their producer chooses by another rule, and their order among the
-- namespace's other records is lost. Counted by the materialiser, in the transaction of their rows; each row is fed by one topic.
CREATE TABLE misplaced_records (
    namespace VARCHAR NOT NULL, source VARCHAR NOT NULL, topic VARCHAR NOT NULL, records BIGINT NOT NULL,
    PRIMARY KEY (namespace, source, topic));
