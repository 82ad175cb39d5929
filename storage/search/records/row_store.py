"""What searches show of a table's rows, by label, in a nameless file.

It is in the page cache, not in the memory of the process, and goes with it. The table has all of it, and gives a row by
its key in 0.1 ms.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import duckdb
import numpy as np
import orjson

from storage.search.files.row_file import write_all
from storage.search.records.label_map import ABSENT, LabelMap
from storage.statements import execute, marks

LOADED_ROWS = 5_000
"""This many rows are in memory at once while all are read."""
_LENGTH_BITS = 22
_MAX_LENGTH = (1 << _LENGTH_BITS) - 1
"""A longer row is read from the table each time."""
_EPOCH, _MICROSECOND = datetime(1970, 1, 1), timedelta(microseconds=1)


class DocumentRow(NamedTuple):
    """The columns of `documents` that a search shows. `created_at` is UTC without a zone."""

    record_id: str
    kind: str
    toolset: str
    session_id: str | None
    domain: str | None
    text: str
    created_at: datetime
    event_id: str
    namespace: str


Row = TypeVar("Row", bound=tuple[Any, ...])


@dataclass(frozen=True)
class Shown(Generic[Row]):
    """The columns of a table that a search shows: the fields of a NamedTuple.

    `moment`: the one that is a timestamp.
    """

    table: str
    row: type[Row]
    moment: str | None = None

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the columns."""
        names: tuple[str, ...] = self.row._fields  # type: ignore[attr-defined]  # of a NamedTuple
        return names

    def by_label(self, count: int) -> str:
        """The SELECT of the rows with this many labels."""
        columns = ", ".join(("label", *self.fields))
        return f"SELECT {columns} FROM {self.table} WHERE label IN ({marks(range(count))})"

    def as_json(self) -> str:
        """The SELECT of every label with its columns as a JSON array."""
        columns = ", ".join(f"epoch_us({name})" if name == self.moment else name for name in self.fields)
        return f"SELECT label, json_array({columns})::VARCHAR FROM {self.table}"

    def body(self, row: Row) -> bytes:
        columns = list(row)
        if self.moment is not None:
            at = self.fields.index(self.moment)
            columns[at] = (columns[at] - _EPOCH) // _MICROSECOND
        return orjson.dumps(columns)

    def of_body(self, body: bytes) -> Row:
        columns = orjson.loads(body)
        if self.moment is not None:
            at = self.fields.index(self.moment)
            columns[at] = _EPOCH + timedelta(microseconds=columns[at])
        return self.row(*columns)


DOCUMENTS = Shown("documents", DocumentRow, moment="created_at")


class RowStore(Generic[Row]):
    """Rows by label. Any number of threads, each with a cursor of its own."""

    def __init__(self, shown: Shown[Row], directory: Path | None = None) -> None:
        """`directory`: on which disk; by default the system's place for temporary files."""
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
        self._shown = shown
        self._file = tempfile.TemporaryFile(dir=directory, buffering=0)  # noqa: SIM115 (open as long as the index)
        self._places = LabelMap()
        self._changed: set[int] = set()
        """Of these the table alone knows what holds."""
        self._end = 0
        self._changing = threading.Lock()

    def load(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Take in every row of the table: a third of a second per 100,000."""
        result = cursor.execute(self._shown.as_json())
        while rows := result.fetchmany(LOADED_ROWS):
            self._append({label: body.encode() for label, body in rows})

    def read(self, cursor: duckdb.DuckDBPyConnection, labels: Iterable[int]) -> dict[int, Row]:
        """label -> its row, of those that the table has, of any namespace.

        From the table by key alone: DuckDB evaluates further conditions on all rows first (11 ms instead of 1 at
        100,000).
        """
        asked = list(dict.fromkeys(labels))
        found = self._known(asked)
        missing = [label for label in asked if label not in found]
        if missing:
            padded = _padded(missing)
            rows = execute(cursor, self._shown.by_label(len(padded)), padded)
            read = {label: self._shown.row(*columns) for label, *columns in rows.fetchall()}
            self.keep(read)
            found |= read
        return found

    def _known(self, labels: Sequence[int]) -> dict[int, Row]:
        """label -> its row, of those that are in the file."""
        places = self._places.find(np.array(labels, np.int64)).tolist()
        file, found = self._file.fileno(), {}
        for label, place in zip(labels, places, strict=True):
            if place == ABSENT or label in self._changed:
                continue
            try:
                found[label] = self._shown.of_body(os.pread(file, place & _MAX_LENGTH, place >> _LENGTH_BITS))
            except orjson.JSONDecodeError:
                pass  # it was removed since its place was looked up
        return found

    def keep(self, rows: Mapping[int, Row]) -> None:
        """Have rows that the table has, by label. On a full disk they go on being read from the table."""
        self._append({label: self._shown.body(row) for label, row in rows.items()})

    def changed(self, labels: Iterable[int]) -> None:
        """From now on these rows are read from the table."""
        self._changed.update(labels)

    def _append(self, bodies: Mapping[int, bytes]) -> None:
        with self._changing:
            known = self._places.find(np.fromiter(bodies, np.int64, len(bodies))) != ABSENT
            fresh = {
                label: body
                for (label, body), is_known in zip(bodies.items(), known.tolist(), strict=True)
                if not is_known and len(body) <= _MAX_LENGTH
            }
            try:
                write_all(self._file.fileno(), b"".join(fresh.values()), self._end)
            except OSError:
                return
            lengths = np.fromiter(map(len, fresh.values()), np.int64, len(fresh))
            starts = self._end + np.cumsum(lengths) - lengths
            self._end += int(lengths.sum())
            labels = np.fromiter(fresh, np.int64, len(fresh))
            self._places.extend(labels, starts << _LENGTH_BITS | lengths)  # last: readers look for places first

    def remove(self, labels: Sequence[int]) -> None:
        """Forget rows: they are overwritten with zeros."""
        with self._changing:
            places = self._places.find(np.array(labels, np.int64))
            self._places.remove(labels)
            for place in places[places != ABSENT].tolist():
                write_all(self._file.fileno(), bytes(place & _MAX_LENGTH), place >> _LENGTH_BITS)


def _padded(labels: list[int]) -> list[int]:
    """The labels, the last one repeated up to a power of two: then few statements are parsed, each once."""
    return labels + labels[-1:] * ((1 << (len(labels) - 1).bit_length()) - len(labels))
