"""The last rows of `documents` that came or were read, by label.

A row never changes, so none is read twice.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any

import duckdb

from storage.statements import execute, marks

MAX_ROWS = 16_384
MAX_CHARACTERS = 4_000_000
"""Of all texts in the cache."""
LOADED_CHARACTERS = 1_000
"""Longer texts are read when they are asked for: the start reads little that there is no room for."""


class RowCache:
    """Some columns of `documents`. Any number of threads, each with a cursor of its own.

    Rows that go (`Records.clear_caches`) take the whole cache with them.
    """

    def __init__(self, columns: str) -> None:
        self._columns = columns
        self._rows: dict[int, tuple[Any, ...]] = {}
        """In the order in which they were asked for, the latest last."""
        self._characters = 0
        self._changing = threading.Lock()

    def load(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Read the newest rows, but for long texts."""
        rows = cursor.execute(
            f"SELECT label, {self._columns} FROM documents WHERE rowid > (SELECT max(rowid) FROM documents) - ? "
            "AND length(text) <= ? ORDER BY rowid",
            [MAX_ROWS, LOADED_CHARACTERS],
        ).fetchall()
        self.keep({label: tuple(columns) for label, *columns in rows})

    def known(self, labels: Iterable[int]) -> dict[int, tuple[Any, ...]]:
        """label -> its columns, of those that are in the cache."""
        return {label: row for label in labels if (row := self._rows.get(label)) is not None}

    def read(self, cursor: duckdb.DuckDBPyConnection, labels: Iterable[int]) -> dict[int, tuple[Any, ...]]:
        """label -> its columns, of those that are documents, of any namespace.

        By key alone: DuckDB evaluates further conditions on all rows first (11 ms instead of 1 at 100,000).
        """
        asked = dict.fromkeys(labels)
        known = self.known(asked)
        missing = [label for label in asked if label not in known]
        if missing:
            query, asked_for = f"SELECT label, {self._columns} FROM documents WHERE label IN", _padded(missing)
            rows = execute(cursor, f"{query} ({marks(asked_for)})", asked_for).fetchall()
            known |= {label: tuple(columns) for label, *columns in rows}
        self.keep(known)
        return known

    def keep(self, rows: Mapping[int, tuple[Any, ...]]) -> None:
        """Keep rows, by label, as those that were asked for last."""
        with self._changing:
            for label, row in rows.items():
                if self._rows.pop(label, None) is None:
                    self._characters += _characters(row)
                self._rows[label] = row
            while len(self._rows) > MAX_ROWS or self._characters > MAX_CHARACTERS:
                self._characters -= _characters(self._rows.pop(next(iter(self._rows))))


def _padded(labels: list[int]) -> list[int]:
    """The labels, the last one repeated up to a power of two: then few statements are parsed, each once."""
    return labels + labels[-1:] * ((1 << (len(labels) - 1).bit_length()) - len(labels))


def _characters(row: tuple[Any, ...]) -> int:
    return sum(len(value) for value in row if isinstance(value, str))
