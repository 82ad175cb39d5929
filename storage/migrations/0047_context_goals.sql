-- Goals of Context Graph, as they were found in its memories. thalweg.memory.v1: one North Star a namespace, and themes under goals.
CREATE TABLE context_goals (
    goal_id VARCHAR NOT NULL, level VARCHAR NOT NULL, goal_text VARCHAR NOT NULL, medoid_id VARCHAR NOT NULL, member_ids VARCHAR[] NOT NULL,
    parent_goal_id VARCHAR, parent_alignment DOUBLE, confidence DOUBLE NOT NULL, coherence DOUBLE NOT NULL,
    dominant_embedders VARCHAR[] NOT NULL, is_strong BOOLEAN NOT NULL, created_at TIMESTAMP NOT NULL, updated_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, goal_id));
