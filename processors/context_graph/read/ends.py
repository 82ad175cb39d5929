"""Reads what became of memories that were merged."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from storage.statements import execute

if TYPE_CHECKING:
    import duckdb


def followed(cursor: duckdb.DuckDBPyConnection, namespace: str, memory_id: str) -> str:
    """The id of the memory that stands for this one now; its own where it was not merged, or is not there."""
    return followed_all(cursor, namespace, [memory_id]).get(memory_id, memory_id)


def followed_all(cursor: duckdb.DuckDBPyConnection, namespace: str, memory_ids: Collection[str]) -> dict[str, str]:
    """By memory that was merged the living one that stands for it, over any number of merges. Others are left out."""
    if not memory_ids:
        return {}
    rows = execute(
        cursor,
        "WITH RECURSIVE chain(memory_id, successor_id) AS ("
        "SELECT memory_id, merged_into FROM context_ends WHERE namespace = $1 "
        "AND memory_id IN (SELECT unnest($2::VARCHAR[])) "
        "UNION SELECT c.memory_id, e.merged_into FROM chain c "
        "JOIN context_ends e ON e.namespace = $1 AND e.memory_id = c.successor_id) "
        "SELECT memory_id, successor_id FROM chain c WHERE NOT EXISTS "
        "(FROM context_ends e WHERE e.namespace = $1 AND e.memory_id = c.successor_id)",
        [namespace, list(memory_ids)],
    ).fetchall()
    return dict(rows)
