"""The edges between the memories of a namespace, as they are now."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from processors.context_graph.rules.edges import Edge, living
from storage.statements import execute

if TYPE_CHECKING:
    import duckdb

_EDGES = (
    "SELECT source_id, target_id, kind, weight, confidence, evidence::VARCHAR FROM context_edges "
    "WHERE namespace = ? AND NOT is_removed AND (?::VARCHAR[] IS NULL OR kind IN (SELECT unnest(?::VARCHAR[]))) "
    "AND {condition} ORDER BY source_id, target_id, kind"
)
_AT = "(source_id IN (SELECT unnest(?::VARCHAR[])) OR target_id IN (SELECT unnest(?::VARCHAR[])))"


def read_edges(cursor: duckdb.DuckDBPyConnection, namespace: str, kinds: Collection[str] | None = None) -> list[Edge]:
    """Every edge that is not removed, between living memories; of these kinds, or of all."""
    wanted = None if kinds is None else sorted(kinds)
    rows = execute(cursor, _EDGES.format(condition="true"), [namespace, wanted, wanted]).fetchall()
    return living(map(_edge, rows), _read_successors(cursor, namespace))


def edges_of(
    cursor: duckdb.DuckDBPyConnection,
    namespace: str,
    memory_ids: Collection[str],
    kinds: Collection[str] | None = None,
) -> list[Edge]:
    """The edges at these memories, or at those that stand for them, as `read_edges` gives them."""
    successors = _read_successors(cursor, namespace)
    asked = {successors.get(one, one) for one in memory_ids}
    ends = sorted(asked.union(one for one, successor in successors.items() if successor in asked))
    wanted = None if kinds is None else sorted(kinds)
    rows = execute(cursor, _EDGES.format(condition=_AT), [namespace, wanted, wanted, ends, ends]).fetchall()
    return living(map(_edge, rows), successors)


def _read_successors(cursor: duckdb.DuckDBPyConnection, namespace: str) -> dict[str, str]:
    rows = execute(
        cursor, "SELECT memory_id, successor_id FROM context_successors WHERE namespace = ?", [namespace]
    ).fetchall()
    return dict(rows)


def _edge(row: Sequence[Any]) -> Edge:
    source_id, target_id, kind, weight, confidence, evidence = row
    known = None if evidence is None else orjson.loads(evidence)
    return Edge(source_id, target_id, kind, weight, confidence, known)
