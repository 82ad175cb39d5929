-- What a client was given without asking: one row for each context that a hook answered with, as it was on the log.

CREATE TABLE injections (
    session_id VARCHAR NOT NULL, hook VARCHAR NOT NULL, prompt_digest VARCHAR, record_ids VARCHAR[] NOT NULL,
    scores DOUBLE[] NOT NULL, tokens BIGINT NOT NULL, injected_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL,
    event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, event_id));
