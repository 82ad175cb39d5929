"""The edges between the memories of a namespace, as they are now."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from processors.context_graph.rules.edges import KINDS, Edge, Key, ends_of, living
from storage.statements import execute, marks

if TYPE_CHECKING:
    import duckdb

EDGES = "context_edges"
OF_FORMER_SPACE = (
    "FROM context_edges WHERE namespace = ? AND kind = 'similar' AND NOT is_removed AND weight > 0 AND space <> ?"
)
"""Edges of meaning that a former model measured: of a namespace, in another space than this."""
_EDGES = (
    "SELECT source_id, target_id, kind, weight, confidence, evidence::VARCHAR FROM context_edges "
    "WHERE namespace = ? AND NOT is_removed AND weight > 0"
)


def read_edges(cursor: duckdb.DuckDBPyConnection, namespace: str, kinds: Collection[str] | None = None) -> list[Edge]:
    """The edges between living memories, neither removed nor withdrawn; of these kinds, or of all. Ordered by ends."""
    rows = execute(cursor, f"{_EDGES} ORDER BY source_id, target_id, kind", [namespace]).fetchall()
    edges = [edge for edge in map(_edge, rows) if kinds is None or edge.kind in kinds]
    return living(edges, read_successors(cursor, namespace))


def edges_of(
    cursor: duckdb.DuckDBPyConnection,
    namespace: str,
    memory_ids: Collection[str],
    kinds: Collection[str] | None = None,
) -> list[Edge]:
    """The edges at these memories, or at those that stand for them, as `read_edges` gives them."""
    successors = read_successors(cursor, namespace)
    return _read_at(cursor, namespace, memory_ids, kinds, ("source_id", "target_id"), successors)


def edges_among(
    cursor: duckdb.DuckDBPyConnection, namespace: str, memory_ids: Collection[str], *, has_ends: bool = True
) -> list[Edge]:
    """The edges with both ends among these memories, as `edges_of` gives them: a millisecond for ten.

    `has_ends`: whether any memory has ended; where none has, it is not asked which.
    """
    successors = read_successors(cursor, namespace) if has_ends else {}
    return _read_at(cursor, namespace, memory_ids, None, ("source_id",), successors, is_within=True)


def may_be_joined(
    namespace: str, memory_id: str, others: Collection[str], may_hold: Callable[[str, tuple[str, ...]], bool]
) -> bool:
    """Whether there may be an edge between a memory and one of the others.

    `may_hold`: False of a table and a primary key that the store surely has no row for. Merges are not considered.
    """
    pairs = [pair for other in others for pair in ((memory_id, other), (other, memory_id))]
    keys = {(namespace, *ends_of(*pair, kind), kind) for kind in KINDS for pair in pairs}
    return any(may_hold(EDGES, key) for key in keys)


def may_lead_on(namespace: str, ids: Sequence[str], may_hold: Callable[[str, tuple[str, ...]], bool]) -> bool:
    """Whether a path may lead from the first of these memories over another one to a third. `may_hold`: as above."""
    first, *others = ids
    return any(
        may_be_joined(namespace, one, [other for other in others if other != one], may_hold)
        for one in others
        if may_be_joined(namespace, first, [one], may_hold)
    )


def _read_at(
    cursor: duckdb.DuckDBPyConnection,
    namespace: str,
    memory_ids: Collection[str],
    kinds: Collection[str] | None,
    columns: Sequence[str],
    successors: Mapping[str, str],
    *,
    is_within: bool = False,
) -> list[Edge]:
    """The edges that have one of these memories in one of the columns, each of which has an index."""
    asked = {successors.get(one, one) for one in memory_ids}
    ends = asked.union(one for one, successor in successors.items() if successor in asked)
    if not ends:
        return []
    found: dict[Key, Edge] = {}
    for column in columns:
        # as a list of constants: of a subquery DuckDB asks no index
        rows = execute(cursor, f"{_EDGES} AND {column} IN ({marks(ends)})", [namespace, *ends]).fetchall()
        found |= {edge.key: edge for edge in map(_edge, rows)}
    chosen = [
        found[key] for key in sorted(found) if (kinds is None or key[2] in kinds) and (not is_within or key[1] in ends)
    ]
    return living(chosen, successors)


def count_former(cursor: duckdb.DuckDBPyConnection, namespace: str, space: str) -> int:
    """How many edges of meaning were measured by a former model: in another space than this."""
    row = execute(cursor, f"SELECT count(*) {OF_FORMER_SPACE}", [namespace, space]).fetchone()
    return 0 if row is None else int(row[0])


def read_successors(cursor: duckdb.DuckDBPyConnection, namespace: str) -> dict[str, str]:
    """By memory that was merged the one that stands for it now."""
    if execute(cursor, "FROM context_ends WHERE namespace = ? LIMIT 1", [namespace]).fetchone() is None:
        return {}
    rows = execute(
        cursor, "SELECT memory_id, successor_id FROM context_successors WHERE namespace = ?", [namespace]
    ).fetchall()
    return dict(rows)


def _edge(row: Sequence[Any]) -> Edge:
    source_id, target_id, kind, weight, confidence, evidence = row
    known = None if evidence is None else orjson.loads(evidence)
    return Edge(source_id, target_id, kind, weight, confidence, known)
