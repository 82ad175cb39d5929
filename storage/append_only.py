"""The new rows of an append-only table: what was computed from it goes on from there.

The tables of memories are such tables: the first row of a key stays (the reducers see to it). Should rows have gone all
the same, the numbers do not agree, and the caller computes anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import duckdb

from storage.statements import execute


class Mark(NamedTuple):
    """How far a table was read: this many rows, the last of them with this rowid."""

    rows: int
    last: int


NOTHING = Mark(0, -1)
BATCH_ROWS = 1_024
"""Rows that are taken before other threads get their turn."""


def counts(cursor: duckdb.DuckDBPyConnection, *tables: str) -> tuple[int, ...]:
    """The number of rows of each table: half a millisecond for a few of them."""
    # as rows of one statement: as its columns they are joined, which takes half as long again
    parts = (f"SELECT {number} AS number, count(*) AS rows FROM {table}" for number, table in enumerate(tables))
    rows = execute(cursor, " UNION ALL ".join(parts), []).fetchall()
    return tuple(count for _, count in sorted(rows))


def mark(cursor: duckdb.DuckDBPyConnection, table: str) -> Mark:
    """Where the table ends now. What is read after this may hold more."""
    row = execute(cursor, f"SELECT count(*), coalesce(max(rowid), -1) FROM {table}", []).fetchone()
    assert row is not None
    return Mark(*row)


class TableCounts:
    """The number of rows of some tables, read once a generation."""

    def __init__(self, *tables: str) -> None:
        self._tables = tables
        self._cached: tuple[int, dict[str, int]] = -1, {}

    def at(self, cursor: duckdb.DuckDBPyConnection, generation: int) -> dict[str, int]:
        """table -> rows; `generation` changes with every commit that may matter (read it before asking)."""
        cached = self._cached
        if cached[0] != generation:
            cached = self._cached = generation, dict(zip(self._tables, counts(cursor, *self._tables), strict=True))
        return cached[1]


def follow_rows(
    cursor: duckdb.DuckDBPyConnection,
    table: str,
    columns: str,
    start: Mark,
    count: int,
    take: Callable[[list[tuple[Any, ...]]], None],
) -> Mark | None:
    """Give the columns of the rows after `start` to `take` in batches, oldest first.

    Returns the mark reached; None when the table, which had `count` rows, has lost rows.
    """
    reached, last = start
    result = execute(cursor, f"SELECT rowid, {columns} FROM {table} d WHERE rowid > ? ORDER BY rowid", [start.last])
    while rows := result.fetchmany(BATCH_ROWS):
        take([row[1:] for row in rows])
        reached, last = reached + len(rows), rows[-1][0]
        time.sleep(0)  # the first time there are many, and searches wait for the interpreter
    # rows that were committed since `count` may be among them, and others may have come after they were read
    if reached != count and not count < reached <= counts(cursor, table)[0]:
        return None
    return Mark(reached, last)


def new_rows(
    cursor: duckdb.DuckDBPyConnection, table: str, columns: str, start: Mark, count: int
) -> tuple[list[tuple[Any, ...]], Mark] | None:
    """The rows that `follow_rows` gives, as one list."""
    rows: list[tuple[Any, ...]] = []
    reached = follow_rows(cursor, table, columns, start, count, rows.extend)
    return None if reached is None else (rows, reached)
