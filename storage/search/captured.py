"""Turns of captured sessions are searched as memories are, in tables and indexes of their own.

The schema `captured` has the turns under the names that a search reads (`storage/migrations/0037_turns.sql`). So no
turn counts among the words, the neighbours or the nearest of a memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb

from storage.search.index_set import IndexSet
from storage.search.query import Query
from storage.search.records.hits import SearchHit
from streams.ids import document_label

CAPTURED, MEMORIES = "captured", "main"
TOOLSET = "telemetry"
"""What the schema says of each turn."""
_SAID = ("session_id", "role", "source", "event_id")


def captured_cursor(cursor: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """A new cursor that reads turns for good."""
    return cursor.execute(f"SET schema = '{CAPTURED}'")


@contextmanager
def reading(cursor: duckdb.DuckDBPyConnection, schema: str) -> Iterator[None]:
    """Read turns (`CAPTURED`) or memories (`MEMORIES`) while the block runs, then what was read before."""
    row = cursor.execute("SELECT current_schema()").fetchone()
    assert row is not None
    cursor.execute(f"SET schema = '{schema}'")
    try:
        yield
    finally:
        cursor.execute(f"SET schema = '{row[0]}'")


def turns_asked(indexes: IndexSet, query: Query) -> IndexSet | None:
    """The indexes of the turns, where the query asks for them and its namespace has not opted out."""
    return indexes.searched_turns(query.filter.namespace) if query.with_turns else None


def is_turn(cursor: duckdb.DuckDBPyConnection, namespace: str, record_id: str) -> bool:
    """Whether a turn of the namespace has this id."""
    label = document_label(namespace, record_id)
    return cursor.execute("SELECT 1 FROM turns WHERE label = ?", [label]).fetchone() is not None


def read_turns(cursor: duckdb.DuckDBPyConnection, labels: Sequence[int]) -> dict[int, dict[str, Any]]:
    """By label, of those that are turns: `session_id`, `role` (`user`, `assistant`), `source`, `event_id`.

    The source is the agent (`claude-code`); the event is a row of `session_events`, the place in the session.
    """
    if not labels:
        return {}
    rows = cursor.execute(
        f"SELECT label, {', '.join(_SAID)} FROM turns WHERE label IN (SELECT unnest(?::BIGINT[]))", [list(labels)]
    ).fetchall()
    named = {label: dict(zip(_SAID, values, strict=True)) for label, *values in rows}
    return {label: {name: value for name, value in row.items() if value is not None} for label, row in named.items()}


def turns_among(hits: Iterable[SearchHit]) -> list[int]:
    """The labels of those hits that are turns."""
    return [hit.label for hit in hits if hit.toolset == TOOLSET]
