"""Counts what steering is about: edges, duplicates, quality and judgements of a namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from processors.context_graph.rules.steering import DUPLICATE, LEAST_WEIGHT, LOW_QUALITY, QUALITY_WEIGHTS, Facts
from storage.statements import execute

if TYPE_CHECKING:
    import duckdb

RECENT = 20
"""The last learning scores, which tell where they go."""
_LEARNED, _MATTERS = QUALITY_WEIGHTS["learning_score"], QUALITY_WEIGHTS["importance"]
_QUALITY = (
    f"CASE WHEN learning_score IS NULL THEN importance ELSE ({_LEARNED} * learning_score + {_MATTERS} * importance) "
    f"/ {_LEARNED + _MATTERS} END"
)
_FACTS = f"""
WITH living AS (
    SELECT m.memory_id, {_QUALITY} AS quality FROM context_memories m
    WHERE m.namespace = $1 AND NOT EXISTS
        (FROM context_ends e WHERE e.namespace = m.namespace AND e.memory_id = m.memory_id)),
edges AS (
    SELECT source_id, target_id, kind, weight FROM context_edge_states
    WHERE namespace = $1 AND weight >= {LEAST_WEIGHT}),
connected AS (SELECT source_id AS memory_id FROM edges UNION SELECT target_id FROM edges),
duplicates AS (
    SELECT DISTINCT greatest(source_id, target_id) AS memory_id FROM edges
    WHERE kind = 'similar' AND weight >= {DUPLICATE})
SELECT count(*), count(c.memory_id), count(d.memory_id), count(*) FILTER (quality < {LOW_QUALITY}),
       coalesce(avg(quality), 0.0), coalesce(avg(quality) FILTER (d.memory_id IS NOT NULL), 0.0)
FROM living l LEFT JOIN connected c USING (memory_id) LEFT JOIN duplicates d USING (memory_id)"""
_JUDGED = "SELECT count(*), count(*) FILTER (is_relevant) FROM context_judgements WHERE namespace = ?"
_LAST = (
    "SELECT avg(learning_score) FROM (SELECT learning_score FROM context_memories WHERE namespace = ? "
    f'AND learning_score IS NOT NULL ORDER BY "offset" DESC, idx DESC LIMIT {RECENT})'
)
_CHANGED = (
    "SELECT (SELECT count(*) FROM context_edge_changes WHERE namespace = $1 AND is_removed), "
    "(SELECT count(*) FROM context_ends WHERE namespace = $1)"
)


def read_facts(cursor: duckdb.DuckDBPyConnection, namespace: str, learning: float) -> Facts:
    """What is counted now. `learning`: the running mean of the learning scores."""
    memories, connected, duplicates, low, quality, of_duplicates = _row(cursor, _FACTS, namespace)
    judged, relevant = _row(cursor, _JUDGED, namespace)
    (recent,) = _row(cursor, _LAST, namespace)
    pruned, merged = _row(cursor, _CHANGED, namespace)
    return Facts(
        memories, connected, duplicates, low, quality, of_duplicates, relevant, judged, learning, recent, pruned, merged
    )


def _row(cursor: duckdb.DuckDBPyConnection, sql: str, namespace: str) -> tuple[Any, ...]:
    row = execute(cursor, sql, [namespace]).fetchone()
    assert row is not None
    return tuple(row)
