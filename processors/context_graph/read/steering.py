"""Counts what steering is about: edges, duplicates, quality and judgements of a namespace."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from processors.context_graph.read.edges import edges_of, read_successors
from processors.context_graph.rules.steering import (
    DUPLICATE,
    LEAST_WEIGHT,
    LOW_QUALITY,
    QUALITY_WEIGHTS,
    Counted,
    Facts,
)
from storage.followers import EventFollower
from storage.statements import execute, marks
from streams.event_types.context_edges import EDGES_CHANGED, EDGES_FOUND
from streams.event_types.context_ends import MEMORIES_MERGED
from streams.event_types.context_graph import MEMORY_STORED
from streams.ids import document_label

if TYPE_CHECKING:
    import duckdb

MOST_TOUCHED = 500
"""Of more memories that events are about, all are read again."""
RECENT = 20
"""The last learning scores, which tell where they go."""
_LEARNED, _MATTERS = QUALITY_WEIGHTS["learning_score"], QUALITY_WEIGHTS["importance"]
_QUALITY = (
    f"CASE WHEN learning_score IS NULL THEN importance ELSE ({_LEARNED} * learning_score + {_MATTERS} * importance) "
    f"/ {_LEARNED + _MATTERS} END"
)
_EDGES = f"context_edges WHERE namespace = $1 AND NOT is_removed AND weight >= {LEAST_WEIGHT}"
_MOVED = f"""moved AS MATERIALIZED (
    SELECT memory_id, successor_id FROM context_successors WHERE namespace = $1),
edges AS MATERIALIZED (
    SELECT coalesce(s.successor_id, e.source_id) AS source_id, coalesce(t.successor_id, e.target_id) AS target_id,
           kind, weight
    FROM (FROM {_EDGES}) e LEFT JOIN moved s ON s.memory_id = e.source_id
    LEFT JOIN moved t ON t.memory_id = e.target_id),
"""


def _counting(moved: str, memories: str, edges: str) -> str:
    """The query of what `CountedMemories` has; ids by their hashes, which are joined in half the time."""
    return f"""
WITH {moved} living AS (
    SELECT hash(memory_id) AS place, label, {_QUALITY} AS quality FROM context_memories
    WHERE namespace = $1 {memories}),
sources AS (SELECT DISTINCT hash(source_id) AS place FROM {edges}),
targets AS (SELECT DISTINCT hash(target_id) AS place FROM {edges}),
repeated AS (
    SELECT DISTINCT hash(greatest(source_id, target_id)) AS place FROM {edges}
    AND kind = 'similar' AND weight >= {DUPLICATE})
SELECT label, quality, s.place IS NOT NULL OR t.place IS NOT NULL AS is_connected, r.place IS NOT NULL AS is_duplicate
FROM living LEFT JOIN sources s USING (place) LEFT JOIN targets t USING (place) LEFT JOIN repeated r USING (place)"""


_MERGED = _counting(_MOVED, "AND memory_id NOT IN (SELECT memory_id FROM moved)", "edges WHERE source_id <> target_id")
_UNMERGED = _counting("", "", _EDGES)
"""Where no memory was merged: to look for what stands for each end takes as long as the rest."""
_JUDGED = "SELECT count(*), count(*) FILTER (is_relevant) FROM context_judgements WHERE namespace = ?"
_LAST = (
    "SELECT avg(learning_score) FROM (SELECT learning_score FROM context_memories WHERE namespace = ? "
    f'AND learning_score IS NOT NULL ORDER BY "offset" DESC, idx DESC LIMIT {RECENT})'
)
_CHANGED = (
    "SELECT (SELECT count(*) FROM context_edge_changes WHERE namespace = $1 AND is_removed), "
    "(SELECT count(*) FROM context_ends WHERE namespace = $1)"
)


class CountedMemories(NamedTuple):
    """What is counted of each living memory, a column each.

    (n,) labels, sorted; quality; whether an edge connects it; whether it repeats one whose id is smaller.
    """

    labels: np.ndarray
    quality: np.ndarray
    is_connected: np.ndarray
    is_duplicate: np.ndarray

    @property
    def counted(self) -> Counted:
        """The counts of all."""
        quality, repeated = self.quality, self.quality[self.is_duplicate]
        return Counted(
            len(quality),
            int(self.is_connected.sum()),
            len(repeated),
            int((quality < LOW_QUALITY).sum()),
            float(quality.mean()) if len(quality) else 0.0,
            float(repeated.mean()) if len(repeated) else 0.0,
        )

    def changed(self, others: CountedMemories) -> CountedMemories:
        """These with others, which are in the place of those that have the same labels."""
        places = np.searchsorted(self.labels, others.labels)
        is_new = np.append(self.labels, -1)[places] != others.labels
        columns = []
        for column, other in zip(self, others, strict=True):
            changed = column.copy()
            changed[places[~is_new]] = other[~is_new]
            columns.append(np.insert(changed, places[is_new], other[is_new]))
        return CountedMemories(*columns)

    @property
    def ordered(self) -> CountedMemories:
        """These by label, so that the sums do not depend on how they were read."""
        order = np.argsort(self.labels)
        return CountedMemories(*(column[order] for column in self))


class CountedFollower(EventFollower[CountedMemories]):
    """Those of each namespace. What an event is about is read again; after a merge, all."""

    def load(self, cursor: duckdb.DuckDBPyConnection, namespace: str) -> CountedMemories:
        is_merged = execute(cursor, "FROM context_ends WHERE namespace = ? LIMIT 1", [namespace]).fetchone() is not None
        columns = execute(cursor, _MERGED if is_merged else _UNMERGED, [namespace]).fetchnumpy()
        return CountedMemories(*map(np.asarray, columns.values())).ordered

    def update(
        self, cursor: duckdb.DuckDBPyConnection, namespace: str, view: CountedMemories, rows: Sequence[tuple[Any, ...]]
    ) -> CountedMemories:
        if any(event_type == MEMORIES_MERGED for event_type, _ in rows):
            return self.load(cursor, namespace)
        stored = [event_id for event_type, event_id in rows if event_type == MEMORY_STORED]
        joined = [event_id for event_type, event_id in rows if event_type in (EDGES_FOUND, EDGES_CHANGED)]
        touched = _ids(cursor, namespace, "context_memories", "memory_id", stored)
        touched |= _ids(cursor, namespace, "context_edges", "unnest([source_id, target_id])", joined)
        if len(touched) > MOST_TOUCHED:
            return self.load(cursor, namespace)
        return view.changed(_counted_among(cursor, namespace, touched)) if touched else view


def _ids(
    cursor: duckdb.DuckDBPyConnection, namespace: str, table: str, column: str, event_ids: Sequence[str]
) -> set[str]:
    """What the rows name that these events wrote."""
    if not event_ids:
        return set()
    query = f"SELECT {column} FROM {table} WHERE namespace = ? AND event_id IN ({marks(event_ids)})"
    return {memory_id for (memory_id,) in execute(cursor, query, [namespace, *event_ids]).fetchall()}


def _counted_among(cursor: duckdb.DuckDBPyConnection, namespace: str, memory_ids: Collection[str]) -> CountedMemories:
    """Those of these memories, or of what stands for them."""
    successors = read_successors(cursor, namespace)
    living = {successors.get(one, one) for one in memory_ids}
    edges = [edge for edge in edges_of(cursor, namespace, living) if edge.weight >= LEAST_WEIGHT]
    connected = {end for edge in edges for end in (edge.source_id, edge.target_id)}
    same = [edge for edge in edges if edge.kind == "similar" and edge.weight >= DUPLICATE]
    duplicates = {max(edge.source_id, edge.target_id) for edge in same}
    ids = {document_label(namespace, one): one for one in sorted(living)}
    query = f"SELECT label, {_QUALITY} FROM context_memories WHERE namespace = ? AND label IN ({marks(ids)})"
    rows = execute(cursor, query, [namespace, *ids]).fetchall()
    rows.sort()
    return CountedMemories(
        np.array([label for label, _ in rows], np.int64),
        np.array([quality for _, quality in rows], np.float64),
        np.array([ids[label] in connected for label, _ in rows], bool),
        np.array([ids[label] in duplicates for label, _ in rows], bool),
    )


def read_facts(cursor: duckdb.DuckDBPyConnection, follower: CountedFollower, namespace: str, learning: float) -> Facts:
    """What is counted now. `learning`: the running mean of the learning scores."""
    judged, relevant = _row(cursor, _JUDGED, namespace)
    (recent,) = _row(cursor, _LAST, namespace)
    pruned, merged = _row(cursor, _CHANGED, namespace)
    return Facts(
        **asdict(follower.view(cursor, namespace).counted),
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
