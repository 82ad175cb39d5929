-- what a dead letter is about, and what was done about it

ALTER TABLE dead_letters ADD COLUMN observation INTEGER;
ALTER TABLE dead_letters ADD COLUMN source VARCHAR;
ALTER TABLE dead_letters ADD COLUMN event_type VARCHAR;
ALTER TABLE dead_letters ADD COLUMN replay_of VARCHAR;

CREATE TABLE dead_letter_marks (
    dead_letter_id VARCHAR NOT NULL, mark VARCHAR NOT NULL, reason VARCHAR,
    to_topic VARCHAR, to_partition INTEGER, to_offset BIGINT, marked_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL);

-- the latest failure of each letter: a replay that fails again is the same letter
CREATE VIEW dead_letter_states AS
WITH failures AS (SELECT *, coalesce(replay_of, dead_letter_id) AS first_id FROM dead_letters),
     last_replays AS (
        SELECT * FROM dead_letter_marks WHERE mark = 'replayed'
        QUALIFY marked_at = max(marked_at) OVER (PARTITION BY dead_letter_id)),
     -- a record that is applied is an event, or a repeat of one; a stage has come past a record that it could read
     applied AS (
        SELECT DISTINCT topic, partition, "offset"
        FROM (FROM (SELECT topic, partition, "offset" FROM events) UNION ALL FROM (SELECT topic, partition, "offset" FROM duplicates))),
     replays AS (
        SELECT r.dead_letter_id, max(r.marked_at) AS replayed_at,
               bool_and(applied."offset" IS NOT NULL AND (own.next_offset IS NULL OR own.next_offset > r.to_offset)) AS is_read,
               count(again.dead_letter_id) > 0 AS has_failed
        FROM last_replays r
        LEFT JOIN dead_letters d ON d.dead_letter_id = r.dead_letter_id
        LEFT JOIN progress own ON own.stage = d.stage AND own.topic = r.to_topic AND own.partition = r.to_partition
        LEFT JOIN applied ON applied.topic = r.to_topic AND applied.partition = r.to_partition AND applied."offset" = r.to_offset
        LEFT JOIN failures again ON again.first_id = r.dead_letter_id AND again.topic = r.to_topic
            AND again.partition = r.to_partition AND again."offset" = r.to_offset
        GROUP BY r.dead_letter_id),
     drops AS (
        SELECT dead_letter_id, arg_min(reason, marked_at) AS reason, min(marked_at) AS dropped_at
        FROM dead_letter_marks WHERE mark = 'dropped' GROUP BY dead_letter_id)
SELECT f.dead_letter_id, f.first_id,
       CASE WHEN drops.dropped_at IS NOT NULL THEN 'dropped'
            WHEN replays.replayed_at IS NULL THEN 'new'
            WHEN replays.is_read AND NOT replays.has_failed THEN 'solved'
            ELSE 'replayed' END AS state,
       f.first_failed_at AS failed_at, f.record_key AS namespace, f.source, f.event_type, f.stage, f.error_type, f.error_message,
       f.topic, f.partition, f."offset", f.observation, f.value_bytes, replays.replayed_at, drops.dropped_at, drops.reason AS drop_reason,
       f.dlq_topic, f.dlq_partition, f.dlq_offset
FROM failures f
LEFT JOIN replays ON replays.dead_letter_id = f.first_id
LEFT JOIN drops ON drops.dead_letter_id = f.first_id
QUALIFY row_number() OVER (PARTITION BY f.first_id ORDER BY f.first_failed_at DESC, f.dlq_partition, f.dlq_offset DESC) = 1;
