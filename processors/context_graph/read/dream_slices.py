"""The reads of a dream, each short, on a reader thread between the calls of others.

Times are compared with the dream's beginning, so that what comes meanwhile is the next dream's.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from processors.context_graph.read.edges import OF_FORMER_SPACE, edges_of
from processors.context_graph.rules.co_recall import Recall
from processors.context_graph.rules.hebb import (
    FULL_RECALLS,
    HALF_LIFE_H,
    RECENCY_SHARE,
    REPLAYED,
    Replayed,
    activation_of,
    replay_score,
)
from processors.context_graph.rules.hyperbolic import to_ball
from processors.context_graph.rules.leaps import MAX_CHARS, RARE_UP_TO, Bond
from processors.context_graph.rules.shortcuts import MIN_HOPS, MIN_TRAVERSALS, SHORTCUT, Traversal
from storage.statements import execute
from streams.ids import document_label

if TYPE_CHECKING:
    import duckdb

    from storage.search.index_set import IndexSet

NEAR_RANK = 3
"""Results of one search that are recalled together: the first ones."""
MOST_BONDS = 1000
MOST_MEASURED = 2000
"""Edges of a former model that one dream measures again."""
MOST_POINTS = 200
"""Memories that are projected into the ball at once."""
_REPLAYED = f"""
SELECT m.memory_id, coalesce(r.recalls, 0),
       epoch($2::TIMESTAMP - greatest(m.last_stored_at, r.recalled_at)) / 3600 AS age_h
FROM context_memories m LEFT JOIN (
    SELECT memory_id, count(*) FILTER (recalled_at > $2::TIMESTAMP - INTERVAL 1 DAY) AS recalls,
           max(recalled_at) AS recalled_at
    FROM context_recalls WHERE namespace = $1 AND recalled_at <= $2 GROUP BY memory_id) r USING (memory_id)
WHERE m.namespace = $1 AND m.created_at <= $2
  AND NOT EXISTS (FROM context_ends e WHERE e.namespace = $1 AND e.memory_id = m.memory_id)
ORDER BY {RECENCY_SHARE} * pow(0.5, greatest(age_h, 0) / {HALF_LIFE_H})
    + {1 - RECENCY_SHARE} * least(1, coalesce(r.recalls, 0) / {FULL_RECALLS}) DESC, m.memory_id LIMIT {REPLAYED}"""
_STARTS = """
SELECT memory_id, left(coalesce(searched, content), $3) FROM context_memories
WHERE namespace = $1 AND memory_id IN (SELECT unnest($2::VARCHAR[]))
ORDER BY coalesce(entropy, 0) > 0.5 DESC, list_position($2::VARCHAR[], memory_id)"""
_NAMED = """
SELECT m.memory_id FROM context_memories m WHERE m.namespace = $1 AND m.created_at <= $3
  AND contains(lower(coalesce(m.searched, m.content)), $2)
  AND NOT EXISTS (FROM context_ends e WHERE e.namespace = $1 AND e.memory_id = m.memory_id)
ORDER BY m.memory_id LIMIT $4"""
_FORMER = f"SELECT source_id, target_id {OF_FORMER_SPACE} ORDER BY ALL LIMIT ?"
_RECALLED_TOGETHER = """
WITH near AS (
    SELECT DISTINCT query_vector_id, memory_id FROM context_recalls
    WHERE namespace = $1 AND rank <= $4 AND recalled_at <= $3)
SELECT a.memory_id, b.memory_id, min(a.query_vector_id)
FROM near a JOIN near b ON b.query_vector_id = a.query_vector_id AND b.memory_id <> a.memory_id
WHERE a.memory_id IN (SELECT unnest($2::VARCHAR[]))
  AND (b.memory_id > a.memory_id OR b.memory_id NOT IN (SELECT unnest($2::VARCHAR[])))
  AND NOT EXISTS (FROM context_ends e WHERE e.namespace = $1 AND e.memory_id = b.memory_id)
GROUP BY ALL ORDER BY ALL LIMIT $5"""


def read_replayed(cursor: duckdb.DuckDBPyConnection, namespace: str, as_of: datetime) -> list[Replayed]:
    """The living memories that are replayed, the most urgent first."""
    rows = execute(cursor, _REPLAYED, [namespace, as_of]).fetchall()
    return [
        Replayed(memory_id, activation := activation_of(recalls), replay_score(age_h, activation))
        for memory_id, recalls, age_h in rows
    ]


def read_starts(cursor: duckdb.DuckDBPyConnection, namespace: str, ids: Sequence[str]) -> list[tuple[str, str]]:
    """Id and text of these memories: first those that were new when they came (Blind, Unknown)."""
    return execute(cursor, _STARTS, [namespace, list(ids), MAX_CHARS]).fetchall()


def read_shared_causes(cursor: duckdb.DuckDBPyConnection, namespace: str, ids: Collection[str]) -> list[Bond]:
    """Which memories have a cause in common with these."""
    causes = {edge.source_id for edge in edges_of(cursor, namespace, ids, {"causal"}) if edge.target_id in ids}
    effects: dict[str, list[str]] = {}
    for edge in edges_of(cursor, namespace, causes, {"causal"}) if causes else ():
        if edge.source_id in causes:
            effects.setdefault(edge.source_id, []).append(edge.target_id)
    return [
        Bond(one, other, "cause", cause)
        for cause, some in sorted(effects.items())
        for one in some
        for other in some
        if one in ids and one != other
    ][:MOST_BONDS]


def read_recalled_together(
    cursor: duckdb.DuckDBPyConnection, namespace: str, ids: Collection[str], as_of: datetime
) -> list[Bond]:
    """Which memories stood with these among the first results of one search."""
    rows = execute(cursor, _RECALLED_TOGETHER, [namespace, sorted(ids), as_of, NEAR_RANK, MOST_BONDS]).fetchall()
    return [Bond(one, other, "recall", query_id) for one, other, query_id in rows]


def read_named(
    cursor: duckdb.DuckDBPyConnection, namespace: str, names: Sequence[tuple[str, str]], as_of: datetime
) -> list[Bond]:
    """Which memories have a rare name in common; of (memory, name) pairs."""
    bonds = []
    for memory_id, name in names:
        rows = execute(cursor, _NAMED, [namespace, name, as_of, RARE_UP_TO + 1]).fetchall()
        if len(rows) <= RARE_UP_TO:
            bonds += [Bond(memory_id, other, "name", name) for (other,) in rows if other != memory_id]
    return bonds


def read_points(indexes: IndexSet, namespace: str, ids: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """Those of the first memories that have a vector, and their (n, up to 64) points of the Poincaré ball."""
    live = indexes.spaces.live
    labels = {document_label(namespace, one): one for one in ids[:MOST_POINTS]}
    vectors = {} if live is None else live.vectors(np.array(list(labels), np.int64))
    found = [(one, vectors[label]) for label, one in labels.items() if label in vectors]
    points = to_ball(np.array([vector for _, vector in found])) if found else np.zeros((0, 1))
    return [one for one, _ in found], points


def read_measured(
    indexes: IndexSet, cursor: duckdb.DuckDBPyConnection, namespace: str, space: str
) -> list[tuple[str, str, float]]:
    """Source, target and cosine in this space of edges that were measured in another one.

    Those without both vectors are left out: they wait for the next dream.
    """
    rows = execute(cursor, _FORMER, [namespace, space, MOST_MEASURED]).fetchall()
    pairs = [[document_label(namespace, one) for one in row] for row in rows]
    held = indexes.space(space).vectors(np.array(sorted({label for pair in pairs for label in pair}), np.int64))
    return [
        (*row, float(np.dot(held[pair[0]], held[pair[1]])))
        for row, pair in zip(rows, pairs, strict=True)
        if pair[0] in held and pair[1] in held
    ]


def read_traversals(cursor: duckdb.DuckDBPyConnection, namespace: str, as_of: datetime) -> list[Traversal]:
    """The walks of searches until then, along paths that were walked often enough."""
    rows = execute(
        cursor,
        "SELECT path, traversed_at FROM context_traversals WHERE namespace = ? AND traversed_at <= ? AND hops >= ? "
        "QUALIFY count(*) OVER (PARTITION BY path) >= ?",
        [namespace, as_of, MIN_HOPS, MIN_TRAVERSALS],
    ).fetchall()
    return [Traversal(tuple(path.split(" ")), at) for path, at in rows]


def read_shortcut_times(cursor: duckdb.DuckDBPyConnection, namespace: str) -> dict[tuple[str, str], datetime]:
    """When a dream made the shortcut between two ends last."""
    rows = execute(
        cursor,
        "SELECT source_id, target_id, max(changed_at) FROM context_edge_changes "
        "WHERE namespace = ? AND kind = ? AND weight_before IS NULL AND NOT is_removed GROUP BY ALL",
        [namespace, SHORTCUT],
    ).fetchall()
    return {(source, target): at for source, target, at in rows}


def read_recalls(cursor: duckdb.DuckDBPyConnection, namespace: str, as_of: datetime) -> list[Recall]:
    """What each request of a search returned until then, best first."""
    rows = execute(
        cursor,
        "SELECT any_value(query_vector_id), list(memory_id ORDER BY rank), "
        "list(coalesce(similarity, 0) ORDER BY rank), max(recalled_at) FROM context_recalls "
        "WHERE namespace = ? AND recalled_at <= ? GROUP BY event_id ORDER BY event_id",
        [namespace, as_of],
    ).fetchall()
    return [Recall(query_id, tuple(ids), tuple(similarities), at) for query_id, ids, similarities, at in rows]
