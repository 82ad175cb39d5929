-- Which of a session's persona, protocol and human its caller did not name: they are the node's settings.
ALTER TABLE talos_sessions ADD COLUMN defaulted VARCHAR[];

-- What the tools of core call the memories of every toolset: `remember` keeps goals and questions as journal entries
-- that are tagged so, preferences as beliefs whose domain path says so.
CREATE VIEW plain_kinds AS
SELECT j.namespace, j.entry_id AS record_id,
       coalesce(t.tag, CASE j.category WHEN 'insight' THEN 'lesson' ELSE j.category END) AS kind
FROM journal j
LEFT JOIN journal_versions v ON v.namespace = j.namespace AND v.entry_id = j.entry_id
LEFT JOIN document_tags t ON t.namespace = j.namespace AND t.record_id = coalesce(v.root_id, j.entry_id)
                         AND t.tag IN ('goal', 'question')
UNION ALL
SELECT namespace, belief_id, CASE WHEN list_contains(domain_path, 'preference') THEN 'preference' ELSE 'fact' END
FROM valence_beliefs
UNION ALL
SELECT namespace, record_id, CASE WHEN kind = 'Insight' THEN 'lesson' WHEN kind = 'Belief' THEN 'fact' ELSE lower(kind) END
FROM documents WHERE (toolset, kind) NOT IN (('talos', 'JournalEntry'), ('valence', 'Belief'));
