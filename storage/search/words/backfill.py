"""Opening the keyword index from disk, and adding the rows of `documents` that it lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import duckdb
import numpy as np

from storage.search.entries import DocumentEntry
from storage.search.files.sealed import is_ahead
from storage.search.pace import pausing
from storage.search.records.passages import PassageIndex
from storage.search.words.keyword_index import KeywordIndex
from streams.failpoints import hit

FETCH_ROWS = 8_192
CATCH_UP_ROWS = 5_000
"""Up to this many missing documents are added while opening (a quarter of a second); more are a rebuild."""


def load_keywords(
    cursor: duckdb.DuckDBPyConnection, directory: Path, positions: Mapping[str, int], passages: PassageIndex
) -> KeywordIndex | None:
    """The saved index, caught up with the table; None when it must be built anew."""
    index = None if is_ahead(directory, positions) else KeywordIndex.load(directory)
    if index is None:
        counted = cursor.execute("SELECT count(*) FROM documents").fetchone()
        if counted is None or counted[0] > CATCH_UP_ROWS:
            return None
        index = KeywordIndex(directory)
    stored = _labels(cursor, passages)
    present = index.labels()
    unknown = np.setdiff1d(present, stored, assume_unique=True)
    missing = len(stored) - (len(present) - len(unknown))
    if len(unknown) or missing > CATCH_UP_ROWS:
        index.close()
        return None
    if missing:
        for _ in catch_up_keywords(cursor, index, passages):
            pass
    return index


def catch_up_keywords(
    cursor: duckdb.DuckDBPyConnection,
    index: KeywordIndex,
    passages: PassageIndex,
    *,
    below: int | None = None,
    pause: Callable[[], None] = lambda: None,
) -> Iterator[int]:
    """Add every document and passage that the index lacks, the newest first, committing as it goes.

    Yields after each commit the rowid from which on all are in the index. Rows from the rowid `below` on are left to
    the caller. `pause` is called after every millisecond of work.
    """
    lacking = np.setdiff1d(_labels(cursor, passages), index.labels(), assume_unique=True)
    missing = np.unique(np.array([passages.owner(label) for label in lacking.tolist()], np.int64))
    first, last = _rowids(cursor, missing)
    end = last + 1 if below is None else min(last + 1, below)
    for stop in range(end, first, -FETCH_ROWS):
        start = max(first, stop - FETCH_ROWS)
        rows = cursor.execute(
            "SELECT label, namespace, text FROM documents WHERE rowid >= ? AND rowid < ?", [start, stop]
        ).fetchall()
        chosen = set(missing[np.isin(missing, np.array([row[0] for row in rows], np.int64))].tolist())
        index.build(pausing(with_passages((DocumentEntry(*row) for row in rows if row[0] in chosen), passages), pause))
        yield start
        hit("mid_index_rebuild")


def with_passages(entries: Iterable[DocumentEntry], passages: PassageIndex) -> Iterator[tuple[int, str, str]]:
    """(label, namespace, text) of each document and of each of its passages."""
    for label, namespace, text, *_ in entries:
        yield label, namespace, text
        for part in passages.parts(label):
            if (passage := passages.passage(part)) is not None:
                yield part, namespace, text[passage.start : passage.end]


def _rowids(cursor: duckdb.DuckDBPyConnection, labels: np.ndarray) -> tuple[int, int]:
    """The first and the last row of `documents` that has one of the labels; (0, -1) when none has."""
    row = cursor.execute(
        "SELECT coalesce(min(rowid), 0), coalesce(max(rowid), -1) FROM documents "
        "WHERE label IN (SELECT unnest(?::BIGINT[]))",
        [labels.tolist()],
    ).fetchone()
    assert row is not None
    return row


def _labels(cursor: duckdb.DuckDBPyConnection, passages: PassageIndex) -> np.ndarray:
    stored = np.asarray(cursor.execute("SELECT label FROM documents").fetchnumpy()["label"], np.int64)
    return np.sort(np.concatenate([stored, passages.labels()]))
