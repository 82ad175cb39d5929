"""Reads from the store the counts from which significance is rated.

The consolidate stage and `pattern_check` use them.
"""

from __future__ import annotations

import duckdb

from processors.talos.rules.significance import SignificanceCounts

_COUNTS = """
WITH hidden AS MATERIALIZED (
    SELECT record_id FROM merges WHERE namespace = $1 UNION ALL SELECT record_id FROM prunes WHERE namespace = $1),
f AS (SELECT count(*) FILTER (record_count >= 5) AS high, count(*) FILTER (record_count IN (3, 4)) AS recurring
      FROM clusters WHERE namespace = $1 AND label = 'Friction'
         AND canonical_id NOT IN (SELECT record_id FROM prunes WHERE namespace = $1)),
p AS (SELECT count(*) FILTER (status = 'emerging') AS emerging, count(*) FILTER (status = 'confirmed') AS confirmed
      FROM patterns WHERE namespace = $1),
r AS MATERIALIZED (SELECT relation_type, from_id, to_id FROM relations
      WHERE namespace = $1 AND relation_type IN ('CONTRADICTS', 'RESOLVED_BY')),
c AS (SELECT count(*) AS contradictions FROM r WHERE relation_type = 'CONTRADICTS'
      AND from_id NOT IN (SELECT record_id FROM hidden) AND to_id NOT IN (SELECT record_id FROM hidden)),
q AS (SELECT count(*) AS questions FROM entities WHERE namespace = $1 AND label = 'Question'
      AND entity_id NOT IN (SELECT record_id FROM hidden)
      AND entity_id NOT IN (SELECT from_id FROM r WHERE relation_type = 'RESOLVED_BY'))
SELECT high, recurring, emerging, confirmed, contradictions, questions FROM f, p, c, q"""


def count_significance(cursor: duckdb.DuckDBPyConnection, namespace: str) -> SignificanceCounts:
    """What of the namespace's live knowledge counts towards its significance."""
    row = cursor.execute(_COUNTS, [namespace]).fetchone()
    assert row is not None, "a query of aggregates has one row"
    return SignificanceCounts(*(int(value) for value in row))
