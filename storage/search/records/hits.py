"""What a search gives, and reading it from `documents`.

Only labels that the table gave for the filter get here (`filter_cache`), so that no index can leak a record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import duckdb

from storage.search.entries import DocumentEntry
from storage.search.records.passages import Passage
from storage.search.records.row_store import DOCUMENTS, DocumentRow, RowStore

TIE_DIGITS = 12
"""Scores that agree to this many digits are tied: sums in another order differ in the last bits."""


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A document that was found.

    `sides`: side -> (rank from 1, raw score: cosine, BM25, weighted mean of token cosines, place of its best parent).
    `parts`: side -> what it adds to the score; their sum is the score. `passage`: of a long text the best one.
    `also`: (kind, id) of other records that state the same, newest first; `times`: how often it was stated.
    `earlier`: (kind, id) of records of which it changes what they say; `disputed_by`: of those that change what it
    says, or are in an open tension with it, whose ids `tensions` has. `superseded_by`: what holds in its place now.
    `coverage`: how much of the query it says, None where its token vectors were not compared.
    """

    label: int
    record_id: str
    kind: str
    toolset: str
    session_id: str | None
    domain: str | None
    text: str
    created_at: datetime
    event_id: str = ""
    score: float = 0.0
    sides: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    parts: Mapping[str, float] = field(default_factory=dict)
    passage: Passage | None = None
    also: Sequence[tuple[str, str]] = ()
    times: int = 1
    earlier: Sequence[tuple[str, str]] = ()
    disputed_by: Sequence[tuple[str, str]] = ()
    tensions: Mapping[tuple[str, str], str] = field(default_factory=dict)
    superseded_by: tuple[str, str] | None = None
    coverage: float | None = None


@dataclass(frozen=True, slots=True)
class SearchResult:
    """`total`: matches before the limit, of all sides' pools. `degraded`: what was missing, as a sentence, or None."""

    hits: list[SearchHit]
    total: int
    degraded: str | None = None


class DocumentRows:
    """What searches read of `documents`: whole hits, and the names of other records."""

    def __init__(self, directory: Path | None = None) -> None:
        """`directory`: on which disk rows are kept; by default the system's place for temporary files."""
        self._rows = RowStore(DOCUMENTS, directory)

    def load(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Read all rows, so that searches need not."""
        self._rows.load(cursor)

    def add(self, entries: Iterable[DocumentEntry]) -> None:
        """Take in committed documents. What an entry does not tell is read when it is asked for."""
        self._rows.keep({entry.label: row for entry in entries if (row := _row(entry)) is not None})

    def remove(self, labels: Sequence[int]) -> None:
        """Forget documents."""
        self._rows.remove(labels)

    def hits(
        self,
        cursor: duckdb.DuckDBPyConnection,
        namespace: str,
        labels: Sequence[int],
        known: Mapping[int, Mapping[str, Any]] = MappingProxyType({}),
    ) -> dict[int, SearchHit]:
        """The documents of a namespace with these labels. `known`: by label what a search knows of a hit beside."""
        rows = self._rows.read(cursor, labels)
        return {
            label: SearchHit(label, *row[:-1], **known.get(label, {}))
            for label, row in rows.items()
            if row.namespace == namespace
        }

    def names(self, cursor: duckdb.DuckDBPyConnection, labels: Sequence[int]) -> list[tuple[str, str]]:
        """(kind, record id) of the documents with these labels, in their order."""
        return self.names_of(cursor, [labels])[0]

    def names_of(
        self, cursor: duckdb.DuckDBPyConnection, groups: Sequence[Sequence[int]]
    ) -> list[list[tuple[str, str]]]:
        """(kind, record id) of the documents of each group of labels, in its order, read at once.

        What is not there any more is left out.
        """
        rows = self._rows.read(cursor, [label for group in groups for label in group])
        return [[(rows[label].kind, rows[label].record_id) for label in group if label in rows] for group in groups]

    def rows(self, cursor: duckdb.DuckDBPyConnection, labels: Iterable[int]) -> dict[int, DocumentRow]:
        """label -> its row, of those that are documents, of any namespace."""
        return self._rows.read(cursor, labels)

    def dates(self, cursor: duckdb.DuckDBPyConnection, labels: Sequence[int]) -> dict[int, tuple[datetime, str]]:
        """label -> (created_at, record id) of those that are documents."""
        return {label: (row.created_at, row.record_id) for label, row in self._rows.read(cursor, labels).items()}


def _row(entry: DocumentEntry) -> DocumentRow | None:
    """The row of `documents` as it is read; None where the entry does not tell it."""
    if entry.record_id is None or entry.created_at is None or entry.kind is None or entry.event_id is None:
        return None
    moment, (toolset, kind) = entry.created_at, entry.kind
    created_at = moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
    about = (entry.record_id, kind, toolset, entry.session_id, entry.domain)
    return DocumentRow(*about, entry.text, created_at, entry.event_id, entry.namespace)
