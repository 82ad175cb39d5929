"""From the tables to the indexes: opening what is on disk, and adding what it lacks, so that index = table."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import numpy as np

from storage.search.entries import DocumentEntry
from storage.search.files.sealed import sealed_facts
from storage.search.records.passages import FIRST_PASSAGES, MIN_LONG_CHARS, Passage, PassageIndex, split_passages
from storage.search.vectors.vector_index import VectorIndex, VectorModel
from storage.search.words.keyword_index import KeywordIndex
from storage.statements import marks
from storage.vector_codec import read_vectors
from streams.failpoints import hit

Item = TypeVar("Item")
FETCH_ROWS = 8_192
YIELD_EACH = 16
"""Documents, about a millisecond of analysis, between two pauses."""
TOKEN_ROWS = 512
"""Token vectors are some kilobytes a row."""
KEPT_BUFFERS = "96MB"
SURELY_LONG_CHARS = 2_000
_VECTORS = ("embeddings", "passages")
_OF_MODEL = "WHERE space = ? AND model_id = ? AND dim = ?"
CATCH_UP_ROWS = 5_000
"""Up to this many missing documents are added while opening (a quarter of a second); more are a rebuild."""


def load_vectors(
    cursor: duckdb.DuckDBPyConnection, directory: Path, model: VectorModel, positions: Mapping[str, int]
) -> VectorIndex:
    """The tables' vectors of this space and model, with the saved graph when it is whole and not ahead of the table."""
    parameters = _parameters(model)
    cursor.execute("BEGIN")  # labels and rows of one snapshot
    try:
        labels = [
            cursor.execute(f"SELECT label FROM {table} {_OF_MODEL}", parameters).fetchnumpy()["label"]
            for table in _VECTORS
        ]
        chunks = chain.from_iterable(_read_vectors(cursor, table, parameters) for table in _VECTORS)
        usable = None if is_ahead(directory, positions) else directory
        return VectorIndex.load(usable, model, np.concatenate(labels).astype(np.int64), chunks, directory)
    finally:
        cursor.execute("ROLLBACK")


def catch_up_vectors(cursor: duckdb.DuckDBPyConnection, index: VectorIndex) -> None:
    """Add every vector of the index's space and model that the tables have."""
    for table in _VECTORS:
        for labels, vectors in _read_vectors(cursor, table, _parameters(index.model)):
            index.add(labels, vectors)


def _read_vectors(
    cursor: duckdb.DuckDBPyConnection, table: str, parameters: list[Any]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(labels, rows) a chunk: the whole table as NumPy arrays would need its memory twice."""
    for chunk in _in_chunks(cursor, table, "label, vector", _OF_MODEL, parameters):
        yield np.asarray(chunk["label"], np.int64), read_vectors(chunk["vector"].tolist())


def token_labels(cursor: duckdb.DuckDBPyConnection, model: VectorModel) -> np.ndarray:
    """Every text and passage of which the tables have this model's token vectors, sorted."""
    found = [
        cursor.execute(
            f"SELECT label FROM {table} {_OF_MODEL} AND tokens IS NOT NULL", _parameters(model)
        ).fetchnumpy()["label"]
        for table in _VECTORS
    ]
    return np.sort(np.concatenate(found).astype(np.int64))


def read_tokens(
    cursor: duckdb.DuckDBPyConnection, model: VectorModel, wanted: np.ndarray
) -> Iterator[list[tuple[int, str]]]:
    """(label, packed token vectors) of the (n,) sorted labels, a chunk at a time: from the first of their rows to the last."""
    for table in _VECTORS:
        first = cursor.execute(
            f"SELECT min(rowid) FROM {table} WHERE label IN (SELECT unnest(?::BIGINT[]))", [wanted.tolist()]
        ).fetchone()
        if first is None or first[0] is None:
            continue
        condition = f"{_OF_MODEL} AND tokens IS NOT NULL"
        for chunk in _in_chunks(
            cursor, table, "label, tokens", condition, _parameters(model), int(first[0]), TOKEN_ROWS
        ):
            labels = np.asarray(chunk["label"], np.int64)
            chosen = np.flatnonzero(np.isin(labels, wanted))
            if len(chosen):
                yield list(zip(labels[chosen].tolist(), chunk["tokens"][chosen].tolist(), strict=True))


def read_token_samples(
    cursor: duckdb.DuckDBPyConnection, model: VectorModel, labels: np.ndarray
) -> list[tuple[int, bytes]]:
    """(label, token vectors as they are stored) of a few labels."""
    rows = [
        row
        for table in _VECTORS
        if len(labels)
        for row in cursor.execute(
            f"SELECT label, tokens FROM {table} {_OF_MODEL} AND label IN ({marks(labels)})",
            [*_parameters(model), *labels.tolist()],
        ).fetchall()
    ]
    return [(label, base64.b64decode(packed)) for label, packed in rows if packed is not None]


def _parameters(model: VectorModel) -> list[Any]:
    return [model.space, model.model_id, model.dim]


def _in_chunks(
    cursor: duckdb.DuckDBPyConnection,
    table: str,
    columns: str,
    condition: str,
    parameters: list[Any],
    first: int = 0,
    rows: int = FETCH_ROWS,
) -> Iterator[dict[str, np.ndarray]]:
    last = cursor.execute(f"SELECT coalesce(max(rowid), -1) FROM {table}").fetchone()
    for start in range(first, int(last[0]) + 1 if last else 0, rows):
        chunk = cursor.execute(
            f"SELECT {columns} FROM {table} {condition} AND rowid >= ? AND rowid < ?",
            [*parameters, start, start + rows],
        ).fetchnumpy()
        if len(chunk["label"]):
            yield chunk


def release_buffers(cursor: duckdb.DuckDBPyConnection) -> None:
    """Give back what DuckDB keeps in memory of the vectors that were read: the indexes hold them now (200 MB per 100,000)."""
    limit = cursor.execute("SELECT current_setting('memory_limit')").fetchone()
    try:
        cursor.execute(f"SET memory_limit = '{KEPT_BUFFERS}'")
    except duckdb.OutOfMemoryException:
        pass  # somebody reads at the moment: what could go has gone
    finally:
        if limit is not None:
            cursor.execute(f"SET memory_limit = '{limit[0]}'")


def read_places(cursor: duckdb.DuckDBPyConnection) -> Iterator[DocumentEntry]:
    """Every document that belongs to a session, without its text."""
    cursor.execute("SELECT label, namespace, session_id, created_at FROM documents WHERE session_id IS NOT NULL")
    while rows := cursor.fetchmany(FETCH_ROWS):
        for label, namespace, session_id, created_at in rows:
            yield DocumentEntry(label, namespace, "", session_id, created_at)


def read_asking(cursor: duckdb.DuckDBPyConnection) -> Iterator[tuple[int, str]]:
    """(label, text) of every document with a question mark."""
    cursor.execute("SELECT label, text FROM documents WHERE regexp_matches(text, '[?？؟]')")
    while rows := cursor.fetchmany(FETCH_ROWS):
        yield from rows


def read_passages(cursor: duckdb.DuckDBPyConnection) -> Iterator[tuple[int, list[Passage]]]:
    """(document, passages): as embedded, and of long texts that no model has read whole, as they are cut."""
    rows = cursor.execute("SELECT DISTINCT owner_label, number, char_start, char_end FROM passages").fetchall()
    for owner, *place in rows:
        yield owner, [Passage(*place)]
    cursor.execute(
        "SELECT label, text FROM documents WHERE length(text) > ? AND (label IN (SELECT label FROM embeddings WHERE passages > ?) "
        "OR label NOT IN (SELECT owner_label FROM passages) AND (length(text) > ? OR label NOT IN (SELECT label FROM embeddings)))",
        [MIN_LONG_CHARS, FIRST_PASSAGES, SURELY_LONG_CHARS],
    )
    while rows := cursor.fetchmany(FETCH_ROWS):
        for label, text in rows:
            yield label, split_passages(text)


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
    foreign = np.setdiff1d(present, stored, assume_unique=True)
    missing = len(stored) - (len(present) - len(foreign))
    if len(foreign) or missing > CATCH_UP_ROWS:
        index.close()
        return None
    if missing:
        catch_up_keywords(cursor, index, passages)
    return index


def catch_up_keywords(
    cursor: duckdb.DuckDBPyConnection,
    index: KeywordIndex,
    passages: PassageIndex,
    *,
    below: int | None = None,
    stopped: Callable[[], bool] = lambda: False,
    reached: Callable[[int], None] = lambda rowid: None,
    pause: Callable[[], None] = lambda: None,
) -> None:
    """Add every document and passage that the index lacks, the newest first, committing as it goes; returns early when `stopped`
    says so. Of rows from the rowid `below` on the index is told by others. `reached` is told the rowid from which on all are in it;
    `pause` is called after every millisecond of work."""
    lacking = np.setdiff1d(_labels(cursor, passages), index.labels(), assume_unique=True)
    missing = np.unique(np.array([passages.owner(label) for label in lacking.tolist()], np.int64))
    first, last = rowids(cursor, missing)
    end = last + 1 if below is None else min(last + 1, below)
    for stop in range(end, first, -FETCH_ROWS):
        if stopped():
            return
        start = max(first, stop - FETCH_ROWS)
        rows = cursor.execute(
            "SELECT label, namespace, text FROM documents WHERE rowid >= ? AND rowid < ?", [start, stop]
        ).fetchall()
        chosen = set(missing[np.isin(missing, np.array([row[0] for row in rows], np.int64))].tolist())
        index.build(pausing(with_passages((DocumentEntry(*row) for row in rows if row[0] in chosen), passages), pause))
        reached(start)
        hit("mid_index_rebuild")


def rowids(cursor: duckdb.DuckDBPyConnection, labels: np.ndarray) -> tuple[int, int]:
    """The first and the last row of `documents` that has one of the labels; (0, -1) when none has."""
    row = cursor.execute(
        "SELECT coalesce(min(rowid), 0), coalesce(max(rowid), -1) FROM documents WHERE label IN (SELECT unnest(?::BIGINT[]))",
        [labels.tolist()],
    ).fetchone()
    assert row is not None
    return row


def pausing(items: Iterable[Item], pause: Callable[[], None]) -> Iterator[Item]:
    """The items, with a pause after each few."""
    for number, item in enumerate(items):
        yield item
        if number % YIELD_EACH == 0:
            pause()


def is_much(missing: np.ndarray) -> bool:
    """Whether adding so many is work for the background."""
    return len(missing) > CATCH_UP_ROWS


def with_passages(entries: Iterable[DocumentEntry], passages: PassageIndex) -> Iterator[tuple[int, str, str]]:
    """(label, namespace, text) of each document and of each of its passages."""
    for label, namespace, text, *_ in entries:
        yield label, namespace, text
        for part in passages.parts(label):
            if (passage := passages.passage(part)) is not None:
                yield part, namespace, text[passage.start : passage.end]


def _labels(cursor: duckdb.DuckDBPyConnection, passages: PassageIndex) -> np.ndarray:
    stored = np.asarray(cursor.execute("SELECT label FROM documents").fetchnumpy()["label"], np.int64)
    return np.sort(np.concatenate([stored, passages.labels()]))


def is_ahead(directory: Path, positions: Mapping[str, int]) -> bool:
    """Whether what is sealed there covers more than the table has applied: then it belongs to another table."""
    facts = sealed_facts(directory) or {}
    return any(offset > positions.get(at, 0) for at, offset in facts.get("covered", {}).items())
