"""The edges between the memories of a namespace, as they are now."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from processors.context_graph.rules.edges import Edge, living
from storage.statements import execute

if TYPE_CHECKING:
    import duckdb

_COLUMNS = "source_id, target_id, kind, weight, confidence, evidence::VARCHAR"
_KINDS = "(?::VARCHAR[] IS NULL OR kind IN (SELECT unnest(?::VARCHAR[])))"


def read_edges(cursor: duckdb.DuckDBPyConnection, namespace: str, kinds: Collection[str] | None = None) -> list[Edge]:
    """Every edge that is not removed, between living memories; of these kinds, or of all."""
    wanted = None if kinds is None else sorted(kinds)
    rows = execute(
        cursor,
        f"SELECT {_COLUMNS} FROM context_edges WHERE namespace = ? AND NOT is_removed AND {_KINDS} "
        "ORDER BY source_id, target_id, kind",
        [namespace, wanted, wanted],
    ).fetchall()
    return living(map(_edge, rows), {})


def edges_of(
    cursor: duckdb.DuckDBPyConnection,
    namespace: str,
    memory_ids: Collection[str],
    kinds: Collection[str] | None = None,
) -> list[Edge]:
    """The edges at these memories, as `read_edges` gives them."""
    asked, wanted = sorted(memory_ids), None if kinds is None else sorted(kinds)
    rows = execute(
        cursor,
        f"SELECT {_COLUMNS} FROM context_edges WHERE namespace = ? AND NOT is_removed AND {_KINDS} "
        "AND (source_id IN (SELECT unnest(?::VARCHAR[])) OR target_id IN (SELECT unnest(?::VARCHAR[]))) "
        "ORDER BY source_id, target_id, kind",
        [namespace, wanted, wanted, asked, asked],
    ).fetchall()
    return living(map(_edge, rows), {})


def _edge(row: Sequence[Any]) -> Edge:
    *values, evidence = row
    return Edge(*values, evidence=None if evidence is None else orjson.loads(evidence))
