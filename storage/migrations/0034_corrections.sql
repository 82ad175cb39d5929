-- A journal entry can be corrected and retracted. What ended is a row of `corrections`, appended once; the text that
-- takes its place is an entry of its own in `journal_versions`. Both are the memory topic's.

CREATE TABLE corrections (
    record_id VARCHAR NOT NULL, change VARCHAR NOT NULL, successor_id VARCHAR, reason VARCHAR, changed_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL,
    event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, record_id));

CREATE TABLE journal_versions (
    entry_id VARCHAR NOT NULL, root_id VARCHAR NOT NULL, corrects_id VARCHAR NOT NULL, content VARCHAR NOT NULL,
    session_id VARCHAR, domain VARCHAR, created_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL,
    event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, entry_id));

-- entries and what they were corrected to; a correction has the category of the entry that was written
CREATE OR REPLACE VIEW journal AS
SELECT entry_id, category, content, session_id, domain, confidence, created_at, namespace, event_id, topic, partition,
       "offset"
FROM talos_journal
UNION ALL
SELECT v.entry_id, j.category, v.content, v.session_id, v.domain, NULL, v.created_at, v.namespace, v.event_id, v.topic,
       v.partition, v."offset"
FROM journal_versions v
JOIN talos_journal j ON j.namespace = v.namespace AND j.entry_id = v.root_id;

-- every version of the entries that were corrected or retracted, as it began and ended
CREATE VIEW journal_history AS
SELECT coalesce(v.root_id, j.entry_id) AS root_id, j.entry_id, j.content, j.created_at,
       coalesce(c.change, 'current') AS status, c.successor_id, c.reason, c.changed_at, j.namespace
FROM journal j
LEFT JOIN journal_versions v ON v.namespace = j.namespace AND v.entry_id = j.entry_id
LEFT JOIN corrections c ON c.namespace = j.namespace AND c.record_id = j.entry_id
WHERE v.entry_id IS NOT NULL OR c.record_id IS NOT NULL;

CREATE OR REPLACE VIEW talos_memories AS
SELECT j.entry_id AS memory_id, j.category AS kind, 'talos' AS toolset, j.session_id, j.content AS text, j.created_at,
       j.created_at AS valid_from, c.changed_at AS valid_until, c.successor_id AS superseded_by,
       c.record_id IS NULL AS is_live, j.event_id AS source_event_id, j.namespace
FROM journal j
LEFT JOIN corrections c ON c.namespace = j.namespace AND c.record_id = j.entry_id
UNION ALL
SELECT e.entity_id, e.label, 'talos', e.session_id, e.text, e.created_at, e.created_at, coalesce(m.merged_at, p.pruned_at),
       m.into_id, m.record_id IS NULL AND p.record_id IS NULL, e.source_event_id, e.namespace
FROM entities e
LEFT JOIN merges m ON m.namespace = e.namespace AND m.record_id = e.entity_id
LEFT JOIN prunes p ON p.namespace = e.namespace AND p.record_id = e.entity_id;
