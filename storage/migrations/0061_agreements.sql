-- Pairs of memories that hold both, as a resolution says (`keep_both`), although one was found to change the other. thalweg.memory.v1.
CREATE TABLE agreements (
    one_id VARCHAR NOT NULL, other_id VARCHAR NOT NULL, agreed_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL);
INSERT INTO agreements
SELECT belief_a_id, belief_b_id, resolved_at, namespace, topic, partition, "offset", event_id FROM tension_resolutions WHERE action = 'keep_both';
