-- Which belief holds in the place of another one: what states the same as the earlier one, of whatever kind, is changed by the later
-- one too. thalweg.memory.v1.
CREATE TABLE supersessions (
    record_id VARCHAR NOT NULL, successor_id VARCHAR NOT NULL, superseded_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL);
INSERT INTO supersessions
SELECT belief_id, superseded_by_id, closed_at, namespace, topic, partition, "offset", event_id
FROM valence_beliefs WHERE superseded_by_id IS NOT NULL AND closed_at IS NOT NULL;

-- turns are in none of these
CREATE VIEW captured.restatements AS SELECT * FROM main.restatements WHERE false;
CREATE VIEW captured.agreements AS SELECT * FROM main.agreements WHERE false;
CREATE VIEW captured.supersessions AS SELECT * FROM main.supersessions WHERE false;
