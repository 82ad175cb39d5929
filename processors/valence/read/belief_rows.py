"""Rows of a few beliefs by their ids: looked up by their labels, which have an index."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from storage.statements import execute, marks
from streams.ids import document_label

if TYPE_CHECKING:
    import duckdb


def read_beliefs(
    cursor: duckdb.DuckDBPyConnection, columns: str, namespace: str, ids: Collection[str]
) -> list[tuple[Any, ...]]:
    """These columns of those of the beliefs that there are, in no order."""
    return read_labelled(cursor, columns, namespace, [document_label(namespace, belief_id) for belief_id in ids])


def read_labelled(
    cursor: duckdb.DuckDBPyConnection, columns: str, namespace: str, labels: Collection[int]
) -> list[tuple[Any, ...]]:
    """The same for labels. A condition on a column besides these two would read the whole table, not its index."""
    if not labels:
        return []
    where = f"WHERE label IN ({marks(labels)}) AND namespace = ?"
    return execute(cursor, f"SELECT {columns} FROM valence_beliefs {where}", [*labels, namespace]).fetchall()
