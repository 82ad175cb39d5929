"""From the tables to the indexes: opening what is on disk, and adding what it lacks, so that index = table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from storage.search.keyword import KeywordIndex
from storage.search.sealed import sealed_facts
from storage.search.vector import VectorIndex, VectorModel
from streams.failpoints import hit

FETCH_ROWS = 8_192
_OF_MODEL = "FROM embeddings WHERE space = ? AND model_id = ? AND dim = ?"
CATCH_UP_ROWS = 5_000
"""Up to this many missing documents are added while opening (a quarter of a second); more are a rebuild."""


def load_vectors(cursor: duckdb.DuckDBPyConnection, directory: Path, model: VectorModel, positions: Mapping[str, int]) -> VectorIndex:
    """The table's vectors of this space and model, with the saved graph when it is whole and not ahead of the table."""
    parameters: list[Any] = [model.space, model.model_id, model.dim]
    cursor.execute("BEGIN")  # labels and rows of one snapshot
    try:
        labels = cursor.execute(f"SELECT label {_OF_MODEL}", parameters).fetchnumpy()["label"]
        chunks = _read_vectors(cursor, _OF_MODEL, parameters)
        usable = None if is_ahead(directory, positions) else directory
        return VectorIndex.load(usable, model, np.asarray(labels, np.int64), chunks)
    finally:
        cursor.execute("ROLLBACK")


def catch_up_vectors(cursor: duckdb.DuckDBPyConnection, index: VectorIndex) -> None:
    """Add every vector of the index's space and model that the table has."""
    model = index.model
    for labels, vectors in _read_vectors(cursor, _OF_MODEL, [model.space, model.model_id, model.dim]):
        index.add(labels, vectors)


def _read_vectors(cursor: duckdb.DuckDBPyConnection, condition: str, parameters: list[Any]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(labels, rows) a chunk: the whole table as NumPy arrays would need its memory twice."""
    last = cursor.execute("SELECT coalesce(max(rowid), -1) FROM embeddings").fetchone()
    for start in range(0, int(last[0]) + 1 if last else 0, FETCH_ROWS):
        chunk = cursor.execute(
            f"SELECT label, vector {condition} AND rowid >= ? AND rowid < ?", [*parameters, start, start + FETCH_ROWS]
        ).fetchnumpy()
        if len(chunk["label"]):
            yield np.asarray(chunk["label"], np.int64), np.stack(list(chunk["vector"]))


def load_keywords(cursor: duckdb.DuckDBPyConnection, directory: Path, positions: Mapping[str, int]) -> KeywordIndex | None:
    """The saved index, caught up with the table; None when it must be built anew."""
    index = None if is_ahead(directory, positions) else KeywordIndex.load(directory)
    if index is None:
        counted = cursor.execute("SELECT count(*) FROM documents").fetchone()
        if counted is None or counted[0] > CATCH_UP_ROWS:
            return None
        index = KeywordIndex(directory)
    stored = _labels(cursor)
    present = index.labels()
    foreign = np.setdiff1d(present, stored, assume_unique=True)
    missing = len(stored) - (len(present) - len(foreign))
    if len(foreign) or missing > CATCH_UP_ROWS:
        index.close()
        return None
    if missing:
        catch_up_keywords(cursor, index, lambda: False)
    return index


def catch_up_keywords(cursor: duckdb.DuckDBPyConnection, index: KeywordIndex, stopped: Callable[[], bool]) -> None:
    """Add every document that the index lacks, committing as it goes; returns early when `stopped` says so."""
    missing = np.setdiff1d(_labels(cursor), index.labels(), assume_unique=True)
    for start in range(0, len(missing), FETCH_ROWS):
        if stopped():
            return
        chosen = missing[start : start + FETCH_ROWS].tolist()
        rows = cursor.execute(
            "SELECT label, namespace, text FROM documents WHERE label IN (SELECT unnest(?::BIGINT[]))", [chosen]
        ).fetchall()
        index.add(rows)
        index.commit()
        hit("mid_index_rebuild")


def _labels(cursor: duckdb.DuckDBPyConnection) -> np.ndarray:
    return np.sort(np.asarray(cursor.execute("SELECT label FROM documents").fetchnumpy()["label"], np.int64))


def is_ahead(directory: Path, positions: Mapping[str, int]) -> bool:
    """Whether what is sealed there covers more than the table has applied: then it belongs to another table."""
    facts = sealed_facts(directory) or {}
    return any(offset > positions.get(at, 0) for at, offset in facts.get("covered", {}).items())
