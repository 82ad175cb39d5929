"""The counts from which significance is rated, read from the store by the consolidate stage and by `pattern_check`."""

from __future__ import annotations

import duckdb

from processors.talos.significance import Counts

_COUNTS = """
WITH f AS (SELECT c.record_count FROM clusters c JOIN entities_live e ON e.namespace = c.namespace AND e.entity_id = c.canonical_id
           WHERE c.namespace = $1 AND c.label = 'Friction')
SELECT (SELECT count(*) FROM f WHERE record_count >= 5),
       (SELECT count(*) FROM f WHERE record_count IN (3, 4)),
       (SELECT count(*) FROM patterns WHERE namespace = $1 AND status = 'emerging'),
       (SELECT count(*) FROM patterns WHERE namespace = $1 AND status = 'confirmed'),
       (SELECT count(*) FROM relations r JOIN entities_live a ON a.namespace = $1 AND a.entity_id = r.from_id
        JOIN entities_live b ON b.namespace = $1 AND b.entity_id = r.to_id
        WHERE r.namespace = $1 AND r.relation_type = 'CONTRADICTS'),
       (SELECT count(*) FROM entities_live q WHERE q.namespace = $1 AND q.label = 'Question' AND NOT EXISTS (
            FROM relations r WHERE r.namespace = $1 AND r.relation_type = 'RESOLVED_BY' AND r.from_id = q.entity_id))"""


def count_significance(cursor: duckdb.DuckDBPyConnection, namespace: str) -> Counts:
    """What of the namespace's live knowledge counts towards its significance."""
    row = cursor.execute(_COUNTS, [namespace]).fetchone()
    assert row is not None, "a query of scalar subqueries has one row"
    return Counts(*(int(value) for value in row))
