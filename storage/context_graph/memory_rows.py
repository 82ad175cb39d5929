"""What searches show of memories beside their documents, kept beside the table.

DuckDB takes 1.7 ms to give ten rows by their keys, a seventh of a search of 100,000 memories; from the file they take
0.1 ms.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import duckdb

from storage.search.records.row_store import RowStore, Shown
from storage.writer import Row
from streams.ids import document_label


class MemoryRow(NamedTuple):
    """The columns of `context_memories` that a search shows. `times`: how often its content was stored."""

    content: str
    importance: float
    tags: list[str]
    rationale: str | None
    times: int
    namespace: str


SHOWN = Shown("context_memories", MemoryRow)


class MemoryRows:
    """A `RowCopy` of `context_memories`. One that no writer tells of its commits reads the table each time."""

    table = SHOWN.table

    def __init__(self, directory: Path | None = None) -> None:
        """`directory`: on which disk; by default the system's place for temporary files."""
        self._rows = RowStore(SHOWN, directory)

    def load(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Take in every row, while the writer tells of its commits already."""
        self._rows.load(cursor)

    def written(self, fresh: Sequence[Row], changed: Sequence[Row]) -> None:
        self._rows.keep({row["label"]: MemoryRow(*(row[name] for name in MemoryRow._fields)) for row in fresh})
        self._rows.changed(row["label"] for row in changed)

    def read(self, cursor: duckdb.DuckDBPyConnection, namespace: str, ids: Iterable[str]) -> dict[str, MemoryRow]:
        """Memory id -> its row, of those that the namespace has."""
        labels = {document_label(namespace, one): one for one in ids}
        rows = self._rows.read(cursor, labels)
        return {labels[label]: row for label, row in rows.items() if row.namespace == namespace}
