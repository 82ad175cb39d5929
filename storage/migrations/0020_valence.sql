-- Valence's beliefs. thalweg.memory.v1 only, so that every decision is a function of that topic's order.
CREATE TABLE valence_sources (
    source_id VARCHAR NOT NULL, type VARCHAR NOT NULL, title VARCHAR, url VARCHAR, session_id VARCHAR, content_hash VARCHAR, metadata JSON,
    created_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, source_id));
CREATE TABLE valence_beliefs (
    belief_id VARCHAR NOT NULL, label BIGINT NOT NULL, content VARCHAR NOT NULL, content_hash VARCHAR NOT NULL,
    overall DOUBLE NOT NULL, overall_origin VARCHAR NOT NULL,
    source_reliability DOUBLE, method_quality DOUBLE, internal_consistency DOUBLE, temporal_freshness DOUBLE, corroboration DOUBLE,
    domain_applicability DOUBLE, corroboration_count INTEGER NOT NULL, doubt DOUBLE NOT NULL,
    domain_path VARCHAR[] NOT NULL, links JSON NOT NULL, source_id VARCHAR, extraction_method VARCHAR NOT NULL, reason VARCHAR,
    status VARCHAR NOT NULL, supersedes_id VARCHAR, superseded_by_id VARCHAR, valid_from TIMESTAMP, valid_until TIMESTAMP,
    created_at TIMESTAMP NOT NULL, modified_at TIMESTAMP NOT NULL, closed_at TIMESTAMP, created_event_id VARCHAR NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, idx INTEGER NOT NULL,
    event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, belief_id));
-- every state that a belief was in; appended, never changed
CREATE TABLE valence_belief_changes (
    belief_id VARCHAR NOT NULL, change VARCHAR NOT NULL, content VARCHAR NOT NULL, overall DOUBLE NOT NULL,
    corroboration_count INTEGER NOT NULL, status VARCHAR NOT NULL, superseded_by_id VARCHAR, valid_from TIMESTAMP NOT NULL,
    valid_until TIMESTAMP, changed_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, idx INTEGER NOT NULL,
    event_id VARCHAR NOT NULL);
CREATE TABLE valence_belief_hashes (
    content_hash VARCHAR NOT NULL, belief_id VARCHAR NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, content_hash));
CREATE TABLE belief_corroborations (
    belief_id VARCHAR NOT NULL, source_id VARCHAR NOT NULL, how VARCHAR NOT NULL, cosine DOUBLE, content VARCHAR NOT NULL,
    created_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, belief_id, source_id));
CREATE TABLE valence_entities (
    entity_id VARCHAR NOT NULL, name VARCHAR NOT NULL, name_key VARCHAR NOT NULL, form VARCHAR NOT NULL, type VARCHAR NOT NULL,
    description VARCHAR, link_count BIGINT NOT NULL, created_at TIMESTAMP NOT NULL, modified_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, entity_id));
CREATE TABLE valence_entity_names (
    name_key VARCHAR NOT NULL, entity_ids JSON NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, name_key));
CREATE TABLE valence_belief_entities (
    belief_id VARCHAR NOT NULL, entity_id VARCHAR NOT NULL, role VARCHAR NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL);
CREATE TABLE tension_resolutions (
    tension_id VARCHAR NOT NULL, belief_a_id VARCHAR NOT NULL, belief_b_id VARCHAR NOT NULL, status VARCHAR NOT NULL, action VARCHAR,
    resolution VARCHAR, resolved_at TIMESTAMP,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, tension_id));

-- thalweg.derived.v1: what processors have found
CREATE TABLE entity_resolutions (
    entity_id VARCHAR NOT NULL, canonical_id VARCHAR NOT NULL, how VARCHAR NOT NULL, resolved_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, entity_id));
CREATE TABLE tension_findings (
    tension_id VARCHAR NOT NULL, belief_a_id VARCHAR NOT NULL, belief_b_id VARCHAR NOT NULL, type VARCHAR NOT NULL, severity VARCHAR NOT NULL,
    description VARCHAR NOT NULL, signal DOUBLE NOT NULL, score DOUBLE NOT NULL, materiality DOUBLE NOT NULL, cosine DOUBLE,
    model_id VARCHAR, is_trained BOOLEAN, consistency_a DOUBLE NOT NULL, consistency_b DOUBLE NOT NULL, suggested_action VARCHAR,
    detected_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    PRIMARY KEY (namespace, tension_id));

-- tensions as they stand: found by the detector, closed by a resolution or because one side is not held any more
CREATE VIEW tensions AS
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
       r.action, f.detected_at, f.score, f.materiality, f.signal, f.cosine, f.consistency_a, f.consistency_b, f.suggested_action,
       a.content AS belief_a_content, b.content AS belief_b_content, f.model_id, f.is_trained, f.namespace, f.topic, f.partition, f."offset", f.event_id
FROM tension_findings f
JOIN valence_beliefs a ON a.namespace = f.namespace AND a.belief_id = f.belief_a_id
JOIN valence_beliefs b ON b.namespace = f.namespace AND b.belief_id = f.belief_b_id
LEFT JOIN tension_resolutions r ON r.namespace = f.namespace AND r.tension_id = f.tension_id;

-- what the tensions of a belief leave of its consistency: of the open ones the least, .7 when none is open any more
CREATE VIEW belief_consistency AS
SELECT namespace, belief_id, count(*) FILTER (is_open) AS open_tensions, coalesce(bool_or(is_open AND severity IN ('high', 'critical')), false) AS is_disputed,
       coalesce(min(consistency) FILTER (is_open), 0.7) AS internal_consistency
FROM (SELECT namespace, belief_a_id AS belief_id, severity, consistency_a AS consistency, status IN ('detected', 'investigating') AS is_open FROM tensions
      UNION ALL
      SELECT namespace, belief_b_id, severity, consistency_b, status IN ('detected', 'investigating') FROM tensions)
GROUP BY namespace, belief_id;

-- beliefs as they stand now, tensions counted in
CREATE VIEW beliefs AS
WITH held AS (
    SELECT b.* REPLACE (
               coalesce(c.internal_consistency, b.internal_consistency) AS internal_consistency,
               CASE WHEN b.status = 'active' AND c.is_disputed THEN 'disputed' ELSE b.status END AS status),
           c.belief_id IS NOT NULL AS had_tensions, coalesce(c.open_tensions, 0) AS open_tensions
    FROM valence_beliefs b LEFT JOIN belief_consistency c ON c.namespace = b.namespace AND c.belief_id = b.belief_id)
SELECT belief_id, content,
       CASE WHEN NOT had_tensions OR overall_origin <> 'computed' THEN overall
            ELSE greatest(CASE WHEN corroboration_count < 2 THEN 0 WHEN corroboration_count = 2 THEN 0.65 ELSE 0.8 END,
                 least(1.0, exp((CASE WHEN source_reliability IS NULL THEN 0 ELSE .25 * ln(greatest(.001, source_reliability)) END + CASE WHEN method_quality IS NULL THEN 0 ELSE .15 * ln(greatest(.001, method_quality)) END
                      + CASE WHEN internal_consistency IS NULL THEN 0 ELSE .20 * ln(greatest(.001, internal_consistency)) END + CASE WHEN temporal_freshness IS NULL THEN 0 ELSE .15 * ln(greatest(.001, temporal_freshness)) END
                      + CASE WHEN corroboration IS NULL THEN 0 ELSE .15 * ln(greatest(.001, corroboration)) END + CASE WHEN domain_applicability IS NULL THEN 0 ELSE .10 * ln(greatest(.001, domain_applicability)) END)
                     / (CASE WHEN source_reliability IS NULL THEN 0 ELSE .25 END + CASE WHEN method_quality IS NULL THEN 0 ELSE .15 END
                        + CASE WHEN internal_consistency IS NULL THEN 0 ELSE .20 END + CASE WHEN temporal_freshness IS NULL THEN 0 ELSE .15 END
                        + CASE WHEN corroboration IS NULL THEN 0 ELSE .15 END + CASE WHEN domain_applicability IS NULL THEN 0 ELSE .10 END)))) END AS overall,
       overall_origin, source_reliability, method_quality, internal_consistency, temporal_freshness, corroboration, domain_applicability,
       corroboration_count, open_tensions, domain_path, source_id, extraction_method, reason, status, supersedes_id, superseded_by_id, valid_from, valid_until,
       created_at, modified_at, closed_at, created_event_id, label, namespace, topic, partition, "offset", event_id
FROM held;

-- entities under the id that stands for them; aliases are the names that were merged into it
CREATE VIEW knowledge_entities AS
SELECT e.entity_id, e.name, e.type, e.description,
       coalesce((SELECT list(DISTINCT m.name ORDER BY m.name) FROM entity_resolutions x
                 JOIN valence_entities m ON m.namespace = x.namespace AND m.entity_id = x.entity_id
                 WHERE x.namespace = e.namespace AND x.canonical_id = e.entity_id), []) AS aliases,
       r.canonical_id, e.created_at, greatest(e.modified_at, coalesce(r.resolved_at, e.modified_at)) AS modified_at, e.name_key, e.form,
       e.namespace, e.topic, e.partition, e."offset", e.event_id
FROM valence_entities e LEFT JOIN entity_resolutions r ON r.namespace = e.namespace AND r.entity_id = e.entity_id;

CREATE VIEW belief_entities AS
SELECT DISTINCT l.belief_id, coalesce(r.canonical_id, l.entity_id) AS entity_id, l.role, l.namespace
FROM valence_belief_entities l LEFT JOIN entity_resolutions r ON r.namespace = l.namespace AND r.entity_id = l.entity_id;

-- both times of a belief: when it holds (valid_from, valid_until), and when that was known (known_from, known_until)
CREATE VIEW belief_history AS
SELECT belief_id, change, content, overall, corroboration_count, status, superseded_by_id, valid_from, valid_until, changed_at AS known_from,
       lead(changed_at) OVER (PARTITION BY namespace, belief_id ORDER BY "offset", idx) AS known_until,
       namespace, topic, partition, "offset", idx, event_id
FROM valence_belief_changes;

-- what became of each belief: every later one in its line, nearest first
CREATE VIEW belief_successors AS
WITH RECURSIVE line(namespace, belief_id, successor_id, steps) AS (
    SELECT namespace, belief_id, superseded_by_id, 1 FROM valence_beliefs WHERE superseded_by_id IS NOT NULL
    UNION ALL
    SELECT l.namespace, l.belief_id, b.superseded_by_id, l.steps + 1
    FROM line l JOIN valence_beliefs b ON b.namespace = l.namespace AND b.belief_id = l.successor_id WHERE b.superseded_by_id IS NOT NULL)
SELECT l.belief_id, l.successor_id, l.steps, s.content AS successor_content, s.reason, s.superseded_by_id IS NULL AS is_current, l.namespace
FROM line l JOIN valence_beliefs s ON s.namespace = l.namespace AND s.belief_id = l.successor_id;
