"""From the tables to the indexes: opening what is on disk, and adding what it lacks, so that index = table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from storage.search.entries import DocumentEntry
from storage.search.keyword import KeywordIndex
from storage.search.passages import MIN_LONG_CHARS, Passage, PassageIndex, split_passages
from storage.search.sealed import sealed_facts
from storage.search.vector import VectorIndex, VectorModel
from streams.failpoints import hit

FETCH_ROWS = 8_192
KEPT_BUFFERS = "96MB"
SURELY_LONG_CHARS = 2_000
_VECTORS = ("embeddings", "passages")
_OF_MODEL = "WHERE space = ? AND model_id = ? AND dim = ?"
CATCH_UP_ROWS = 5_000
"""Up to this many missing documents are added while opening (a quarter of a second); more are a rebuild."""


def load_vectors(cursor: duckdb.DuckDBPyConnection, directory: Path, model: VectorModel, positions: Mapping[str, int]) -> VectorIndex:
    """The tables' vectors of this space and model, with the saved graph when it is whole and not ahead of the table."""
    parameters: list[Any] = [model.space, model.model_id, model.dim]
    cursor.execute("BEGIN")  # labels and rows of one snapshot
    try:
        labels = [cursor.execute(f"SELECT label FROM {table} {_OF_MODEL}", parameters).fetchnumpy()["label"] for table in _VECTORS]
        chunks = chain.from_iterable(_read_vectors(cursor, table, parameters) for table in _VECTORS)
        usable = None if is_ahead(directory, positions) else directory
        return VectorIndex.load(usable, model, np.concatenate(labels).astype(np.int64), chunks)
    finally:
        cursor.execute("ROLLBACK")


def catch_up_vectors(cursor: duckdb.DuckDBPyConnection, index: VectorIndex) -> None:
    """Add every vector of the index's space and model that the tables have."""
    model = index.model
    for table in _VECTORS:
        for labels, vectors in _read_vectors(cursor, table, [model.space, model.model_id, model.dim]):
            index.add(labels, vectors)


def _read_vectors(cursor: duckdb.DuckDBPyConnection, table: str, parameters: list[Any]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(labels, rows) a chunk: the whole table as NumPy arrays would need its memory twice."""
    for chunk in _in_chunks(cursor, table, "label, vector", _OF_MODEL, parameters):
        yield np.asarray(chunk["label"], np.int64), np.stack(list(chunk["vector"]))


def read_tokens(cursor: duckdb.DuckDBPyConnection, model: VectorModel) -> Iterator[tuple[int, str]]:
    """(label, packed token vectors) of every text and passage that this model has read."""
    for table in _VECTORS:
        condition = f"{_OF_MODEL} AND tokens IS NOT NULL"
        for chunk in _in_chunks(cursor, table, "label, tokens", condition, [model.space, model.model_id, model.dim]):
            yield from zip(chunk["label"].tolist(), chunk["tokens"].tolist(), strict=True)


def _in_chunks(
    cursor: duckdb.DuckDBPyConnection, table: str, columns: str, condition: str, parameters: list[Any]
) -> Iterator[dict[str, np.ndarray]]:
    last = cursor.execute(f"SELECT coalesce(max(rowid), -1) FROM {table}").fetchone()
    for start in range(0, int(last[0]) + 1 if last else 0, FETCH_ROWS):
        chunk = cursor.execute(
            f"SELECT {columns} FROM {table} {condition} AND rowid >= ? AND rowid < ?", [*parameters, start, start + FETCH_ROWS]
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
    """(document, passages): as embedded, and of long texts that no model has read, as they are cut."""
    rows = cursor.execute("SELECT DISTINCT owner_label, number, char_start, char_end FROM passages").fetchall()
    for owner, *place in rows:
        yield owner, [Passage(*place)]
    cursor.execute(
        "SELECT label, text FROM documents WHERE length(text) > ? AND label NOT IN (SELECT owner_label FROM passages) "
        "AND (length(text) > ? OR label NOT IN (SELECT label FROM embeddings))",
        [MIN_LONG_CHARS, SURELY_LONG_CHARS],
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
        catch_up_keywords(cursor, index, passages, lambda: False)
    return index


def catch_up_keywords(cursor: duckdb.DuckDBPyConnection, index: KeywordIndex, passages: PassageIndex, stopped: Callable[[], bool]) -> None:
    """Add every document and passage that the index lacks, committing as it goes; returns early when `stopped` says so."""
    lacking = np.setdiff1d(_labels(cursor, passages), index.labels(), assume_unique=True)
    missing = np.unique(np.array([passages.owner(label) for label in lacking.tolist()], np.int64))
    for start in range(0, len(missing), FETCH_ROWS):
        if stopped():
            return
        chosen = missing[start : start + FETCH_ROWS].tolist()
        rows = cursor.execute(
            "SELECT label, namespace, text FROM documents WHERE label IN (SELECT unnest(?::BIGINT[]))", [chosen]
        ).fetchall()
        index.add(with_passages((DocumentEntry(*row) for row in rows), passages))
        index.commit()
        hit("mid_index_rebuild")


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
