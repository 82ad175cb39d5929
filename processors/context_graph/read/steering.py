"""Counts what steering is about: edges, duplicates, quality and judgements of a namespace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from processors.context_graph.rules.steering import (
    DUPLICATE,
    LEAST_WEIGHT,
    LOW_QUALITY,
    QUALITY_WEIGHTS,
    Counted,
    Facts,
)
from storage.followers import Follower
from storage.statements import execute
from streams.event_types.context_graph import MEMORY_RECALLED
from streams.event_types.context_state import (
    COUPLING_ADJUSTED,
    MEMORY_MISSED,
    MODULATOR_ADJUSTED,
    WORKSPACE_BROADCAST,
)

if TYPE_CHECKING:
    import duckdb

_CONTEXT = "thalweg.context."
RECENT = 20
"""The last learning scores, which tell where they go."""
_LEARNED, _MATTERS = QUALITY_WEIGHTS["learning_score"], QUALITY_WEIGHTS["importance"]
_QUALITY = (
    f"CASE WHEN learning_score IS NULL THEN importance ELSE ({_LEARNED} * learning_score + {_MATTERS} * importance) "
    f"/ {_LEARNED + _MATTERS} END"
)
_COUNTED = f"""
WITH moved AS MATERIALIZED (
    SELECT memory_id, successor_id FROM context_successors WHERE namespace = $1 AND memory_id <> successor_id),
living AS (
    SELECT hash(memory_id) AS place, {_QUALITY} AS quality FROM context_memories
    WHERE namespace = $1 AND memory_id NOT IN (SELECT memory_id FROM moved)),
edges AS (
    SELECT coalesce(s.successor_id, e.source_id) AS one, coalesce(t.successor_id, e.target_id) AS other,
           e.kind = 'similar' AND e.weight >= {DUPLICATE} AS is_same
    FROM context_edges e LEFT JOIN moved s ON s.memory_id = e.source_id LEFT JOIN moved t ON t.memory_id = e.target_id
    WHERE e.namespace = $1 AND NOT e.is_removed AND e.weight >= {LEAST_WEIGHT} AND one <> other),
connected AS (SELECT DISTINCT unnest([hash(one), hash(other)]) AS place FROM edges),
duplicates AS (SELECT DISTINCT hash(greatest(one, other)) AS place FROM edges WHERE is_same)
SELECT count(*), count(c.place), count(d.place), count(*) FILTER (quality < {LOW_QUALITY}),
       coalesce(avg(quality), 0.0), coalesce(avg(quality) FILTER (d.place IS NOT NULL), 0.0)
FROM living LEFT JOIN connected c USING (place) LEFT JOIN duplicates d USING (place)"""
"""Of the edges as `context_edge_states` has them, whose order and columns nothing here needs; ids by their hashes."""
_JUDGED = "SELECT count(*), count(*) FILTER (is_relevant) FROM context_judgements WHERE namespace = ?"
_LAST = (
    "SELECT avg(learning_score) FROM (SELECT learning_score FROM context_memories WHERE namespace = ? "
    f'AND learning_score IS NOT NULL ORDER BY "offset" DESC, idx DESC LIMIT {RECENT})'
)
_CHANGED = (
    "SELECT (SELECT count(*) FROM context_edge_changes WHERE namespace = $1 AND is_removed), "
    "(SELECT count(*) FROM context_ends WHERE namespace = $1)"
)


_UNCOUNTED = frozenset({MEMORY_RECALLED, MEMORY_MISSED, COUPLING_ADJUSTED, MODULATOR_ADJUSTED, WORKSPACE_BROADCAST})


class CountedFollower(Follower[Counted]):
    """The counts of each namespace, made anew once an event may have changed them."""

    table = "events"
    columns = "event_type"

    def load(self, cursor: duckdb.DuckDBPyConnection, namespace: str) -> Counted:
        return Counted(*_row(cursor, _COUNTED, namespace))

    def update(
        self, cursor: duckdb.DuckDBPyConnection, namespace: str, view: Counted, rows: Sequence[tuple[Any, ...]]
    ) -> Counted:
        is_changed = any(kind.startswith(_CONTEXT) and kind not in _UNCOUNTED for (kind,) in rows)
        return self.load(cursor, namespace) if is_changed else view


def read_facts(cursor: duckdb.DuckDBPyConnection, follower: CountedFollower, namespace: str, learning: float) -> Facts:
    """What is counted now. `learning`: the running mean of the learning scores."""
    judged, relevant = _row(cursor, _JUDGED, namespace)
    (recent,) = _row(cursor, _LAST, namespace)
    pruned, merged = _row(cursor, _CHANGED, namespace)
    return Facts(
        **asdict(follower.view(cursor, namespace)),
        relevant=relevant,
        judged=judged,
        learning=learning,
        recent_learning=recent,
        edges_pruned=pruned,
        merged=merged,
    )


def _row(cursor: duckdb.DuckDBPyConnection, sql: str, namespace: str) -> tuple[Any, ...]:
    row = execute(cursor, sql, [namespace]).fetchone()
    assert row is not None
    return tuple(row)
