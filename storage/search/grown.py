"""What is new in a table to which rows are only added: whatever was computed from it goes on from there.

The tables of memories are such tables: the first row of a key stays (processors/reducers). Should rows have gone all
the same, the numbers do not agree, and the caller computes anew.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import duckdb


class Mark(NamedTuple):
    """How far a table was read: so many rows, the last of them with this rowid."""

    rows: int
    last: int


NOTHING = Mark(0, -1)


def counts(cursor: duckdb.DuckDBPyConnection, *tables: str) -> tuple[int, ...]:
    """The number of rows of each table: half a millisecond for a few of them."""
    row = cursor.execute("SELECT " + ", ".join(f"(SELECT count(*) FROM {table})" for table in tables)).fetchone()
    assert row is not None
    return row


def mark(cursor: duckdb.DuckDBPyConnection, table: str) -> Mark:
    """Where the table ends now. What is read after this may hold more."""
    row = cursor.execute(f"SELECT count(*), coalesce(max(rowid), -1) FROM {table}").fetchone()
    assert row is not None
    return Mark(*row)


def new_rows(
    cursor: duckdb.DuckDBPyConnection, table: str, columns: str, known: Mark, count: int, parameters: list[Any] | None = None
) -> tuple[list[tuple[Any, ...]], Mark] | None:
    """The columns of the rows after `known`, in the order in which they came, and the mark then; None when the table, which
    has `count` rows, has not simply grown. `parameters` are those of `columns`."""
    rows = cursor.execute(
        f"SELECT rowid, {columns} FROM {table} d WHERE rowid > ? ORDER BY rowid", [*(parameters or ()), known.last]
    ).fetchall()
    if known.rows + len(rows) != count:
        return None
    return [row[1:] for row in rows], Mark(count, rows[-1][0] if rows else known.last)
