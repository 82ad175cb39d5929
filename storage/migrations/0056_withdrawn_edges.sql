-- each edge between living memories that was neither removed nor withdrawn (weight 0); of a merged memory the one that stands for it
CREATE OR REPLACE VIEW context_edge_states AS
WITH living AS (
    SELECT e.namespace, coalesce(s.successor_id, e.source_id) AS one, coalesce(t.successor_id, e.target_id) AS other, e.*
               EXCLUDE (namespace, source_id, target_id)
    FROM context_edges e
    LEFT JOIN context_successors s ON s.namespace = e.namespace AND s.memory_id = e.source_id
    LEFT JOIN context_successors t ON t.namespace = e.namespace AND t.memory_id = e.target_id)
SELECT namespace, CASE WHEN kind IN ('causal', 'shortcut') THEN one ELSE least(one, other) END AS source_id,
       CASE WHEN kind IN ('causal', 'shortcut') THEN other ELSE greatest(one, other) END AS target_id,
       kind, weight, confidence, evidence, space, created_at, changed_at
FROM living
WHERE NOT is_removed AND weight > 0 AND one <> other
QUALIFY row_number() OVER (PARTITION BY namespace, kind, least(one, other), greatest(one, other), CASE WHEN one < other THEN kind END ORDER BY weight DESC, changed_at) = 1;
