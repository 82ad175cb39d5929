-- tensions, which begin when the later of two beliefs is stated: the event of the earlier one may find them too, where both were
-- stored before it was looked at, and has an earlier time.
CREATE OR REPLACE VIEW tensions AS
SELECT f.tension_id, f.belief_a_id, f.belief_b_id, f.type, f.description, f.severity,
       CASE WHEN r.action IS NOT NULL THEN r.status
            WHEN a.closed_at IS NOT NULL OR b.closed_at IS NOT NULL THEN 'resolved'
            ELSE coalesce(r.status, 'detected') END AS status,
       CASE WHEN r.action IS NOT NULL THEN r.resolution
            WHEN a.superseded_by_id IS NOT NULL THEN 'auto: superseded by ' || a.superseded_by_id
            WHEN b.superseded_by_id IS NOT NULL THEN 'auto: superseded by ' || b.superseded_by_id
            WHEN a.closed_at IS NOT NULL OR b.closed_at IS NOT NULL THEN 'auto: archived' END AS resolution,
       CASE WHEN r.action IS NOT NULL THEN r.resolved_at
            WHEN a.closed_at IS NOT NULL OR b.closed_at IS NOT NULL
            THEN greatest(f.detected_at, least(coalesce(a.closed_at, b.closed_at), coalesce(b.closed_at, a.closed_at))) END AS resolved_at,
       r.action, greatest(f.detected_at, a.created_at, b.created_at) AS detected_at, f.score, f.materiality, f.signal, f.cosine, f.consistency_a, f.consistency_b, f.suggested_action,
       a.content AS belief_a_content, b.content AS belief_b_content, f.model_id, f.is_trained, f.namespace, f.topic, f.partition, f."offset", f.event_id
FROM tension_findings f
JOIN valence_beliefs a ON a.namespace = f.namespace AND a.belief_id = f.belief_a_id
JOIN valence_beliefs b ON b.namespace = f.namespace AND b.belief_id = f.belief_b_id
LEFT JOIN tension_resolutions r ON r.namespace = f.namespace AND r.tension_id = f.tension_id;
