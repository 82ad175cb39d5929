-- How far the store and each stage have come: stage -> freshness token, in one row (before the first commit in none), because each
-- commit writes all of it and one value takes a third of the time of several rows (docs/adr/0006).
CREATE TABLE progress_tokens (tokens JSON NOT NULL);
INSERT INTO progress_tokens
WITH topics AS (
    SELECT stage, topic, json_group_object(partition::VARCHAR, next_offset) AS next_offsets FROM progress GROUP BY stage, topic),
     stages AS (SELECT stage, json_group_object(topic, next_offsets) AS token FROM topics GROUP BY stage)
SELECT json_group_object(stage, token) FROM stages HAVING count(*) > 0;

DROP TABLE progress;
CREATE VIEW progress AS
SELECT stages.key AS stage, topics.key AS topic, partitions.key::INTEGER AS partition, partitions.value::BIGINT AS next_offset
FROM progress_tokens, json_each(tokens) stages, json_each(stages.value) topics, json_each(topics.value) partitions;
