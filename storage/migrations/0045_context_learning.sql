-- What each namespace of Context Graph has learned. thalweg.memory.v1: running means over its memories, and how often it was used.
CREATE TABLE context_utl (
    interactions BIGINT NOT NULL, entropy DOUBLE NOT NULL, coherence DOUBLE NOT NULL, learning_score DOUBLE NOT NULL, novel_since TIMESTAMP,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace));
